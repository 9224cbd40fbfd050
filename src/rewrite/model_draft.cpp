#include "src/rewrite/model_draft.h"

#include <algorithm>

#include "src/io/check/full_check.h"
#include "src/io/ir_version.h"
#include "src/io/onnx_domain.h"
#include "src/rewrite/graph_draft.h"

namespace attn_opt {

ModelDraft::ModelDraft(const BuilderOptions& options) : types_(proto_) {
  // A function, and an initializer that is no input, need so much.
  constexpr int64_t kOldestIrVersion = 8;
  proto_.set_ir_version(std::max(ir_version_of(options.opset), kOldestIrVersion));
  proto_.set_producer_name("attn-opt");
  proto_.mutable_graph()->set_name(options.name);
  import_opset("", options.opset);
  view_ = ModelGraph::create(proto_).value();
  view_->set_edit_opset(kOwnOpset);
}

ModelDraft::~ModelDraft() = default;

GraphDraft& ModelDraft::add(std::unique_ptr<GraphDraft> graph) { return *graphs_.emplace_back(std::move(graph)); }

Expected<Model> ModelDraft::whole() {
  while (!open_functions_.empty()) open_functions_.begin()->second->finish_function();
  if (error_) return tl::unexpected<Error>(*error_);
  Model made{proto_, {}, {&inline_tensors(), [](const TensorStore*) {}}};
  graphs_.front()->write(*made.proto.mutable_graph());
  put_names(new_names_, *made.proto.mutable_graph());
  if (const std::string wrong = full_check(made.proto); !wrong.empty())
    return attn_opt::fail(ErrorCode::kInvalidInput, "the model that was built", wrong);
  return made;
}

void ModelDraft::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

bool ModelDraft::take_name(const std::string& name, const std::string& what) {
  if (!name.empty() && view_->fresh_name(name) == name) return true;
  fail({ErrorCode::kUsage, what, name.empty() ? "it needs a name" : "the model has that name already", "give it another"});
  return false;
}

void ModelDraft::rename(Value& value, const std::string& name) {
  new_names_[value.name] = name;
  types_.rename(value.name, name);
  value.name = name;
}

const GraphDraft* ModelDraft::graph_of(const Value& value) const {
  const auto known = graph_of_.find(&value);
  return known == graph_of_.end() ? nullptr : known->second;
}

int ModelDraft::version_of(const std::string& domain, const std::string& where) {
  if (const int version = opset_version(proto_, domain)) return version;
  fail({ErrorCode::kUsage, where, "the model does not import the domain '" + domain + "'",
        "import_opset() says of which version its operators are"});
  return 0;
}

void ModelDraft::import_opset(const std::string& domain, int version) {
  auto& imports = *proto_.mutable_opset_import();
  const auto known = std::ranges::find_if(
      imports, [&](const auto& import) { return import.domain() == domain || (is_onnx(import.domain()) && is_onnx(domain)); });
  if (known == imports.end()) {
    auto* import = imports.Add();
    import->set_domain(domain);
    import->set_version(version);
  } else {
    known->set_version(version);
  }
  if (view_) view_->set_edit_opset(kOwnOpset);
}

const onnx::FunctionProto* ModelDraft::function(const std::string& domain, const std::string& name) {
  const auto is_it = [&](const auto& function) { return function.domain() == domain && function.name() == name; };
  const auto found = std::ranges::find_if(proto_.functions(), is_it);
  return found == proto_.functions().end() ? nullptr : &*found;
}

const onnx::FunctionProto* ModelDraft::called(const onnx::NodeProto& call) {
  if (const auto open = open_functions_.find(call.domain() + "::" + call.op_type()); open != open_functions_.end())
    open->second->finish_function();
  return function(call.domain(), call.op_type());
}

}  // namespace attn_opt
