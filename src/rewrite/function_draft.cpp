// Functions of a model that is being made.
#include <set>

#include "attn_opt/edit.h"
#include "src/rewrite/graph_draft.h"

namespace attn_opt {
namespace {

/// Adds the function's attributes that NODE, or a body in it, refers to.
void collect_parameters(const onnx::NodeProto& node, std::set<std::string>& parameters) {
  for (const auto& attribute : node.attribute()) {
    if (!attribute.ref_attr_name().empty()) parameters.insert(attribute.ref_attr_name());
    for (const auto& inner : attribute.g().node()) collect_parameters(inner, parameters);
  }
}

}  // namespace

GraphDraft& GraphDraft::function(const std::string& domain, const std::string& name, const Attributes& defaults) {
  GraphDraft& draft = model_.add(std::unique_ptr<GraphDraft>(new GraphDraft(model_, nullptr, Kind::kFunction, name)));
  draft.function_.set_domain(domain);
  draft.function_.set_name(name);
  for (const Attribute& attribute : defaults) *draft.function_.add_attribute_proto() = attribute.proto();
  import_domain(domain, model_.proto());
  const bool is_new =
      !model_.function(draft.function_.domain(), name) && model_.open_functions().emplace(domain + "::" + name, &draft).second;
  if (!is_new)
    model_.fail({ErrorCode::kUsage, "function '" + domain + "::" + name + "'", "the model has that function already",
                 "give it another name"});
  return draft;
}

bool GraphDraft::is_called_by(const onnx::NodeProto& call) const {
  return kind_ == Kind::kFunction && call.op_type() == name_ && call.domain() == function_.domain();
}

void GraphDraft::finish_function() {
  finished_ = true;
  model_.open_functions().erase(function_.domain() + "::" + function_.name());
  // Names of inputs and outputs are as they were asked for: nothing outside of a function can see them.
  NewNames names;
  std::set<std::string> taken;
  for (const Value* value : values_) taken.insert(value->name);
  for (const auto& [name, wanted] : wanted_names_)
    if (taken.insert(wanted).second) names[name] = wanted;
  const auto final_name = [&](const Value* value) { return names.contains(value->name) ? names.at(value->name) : value->name; };
  for (const Value* value : inputs_) function_.add_input(final_name(value));
  for (const Value* value : outputs_) function_.add_output(final_name(value));
  std::set<std::string> parameters;
  for (const Node* node : nodes_) {
    auto& written = *function_.add_node() = *node->proto;
    put_names(model_.new_names(), written);
    put_names(names, written);
    collect_parameters(written, parameters);
  }
  for (const auto& attribute : function_.attribute_proto()) parameters.erase(attribute.name());
  for (const std::string& parameter : parameters) function_.add_attribute(parameter);
  *function_.mutable_opset_import() = model_.proto().opset_import();
  *model_.proto().add_functions() = function_;
}

}  // namespace attn_opt
