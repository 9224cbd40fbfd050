#include "src/io/flat_check.h"

#include <onnx/checker.h>

#include <algorithm>
#include <exception>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "attn_opt/name_table.h"

namespace attn_opt {
namespace {

/// From here on an initializer need not be an input too.
constexpr int64_t kFirstIrVersionWithPlainInitializers = 4;

bool has_body(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return attribute.has_g() || attribute.graphs_size() > 0; });
}

bool is_flat(const onnx::ModelProto& model) {
  const auto& nodes = model.graph().node();
  return model.ir_version() >= kFirstIrVersionWithPlainInitializers && model.functions_size() == 0 &&
         model.graph().sparse_initializer_size() == 0 && std::none_of(nodes.begin(), nodes.end(), has_body);
}

/// The names that are there so far, which stay where they are.
class Names {
 public:
  bool has(const std::string& name) const {
    return names_.find(name_hash(name), [&](const std::string* known) { return *known == name; });
  }
  /// False if it was there.
  bool add(const std::string& name) {
    return names_.insert(name_hash(name), &name, [&](const std::string* known) { return *known == name; });
  }

 private:
  NameTable<const std::string*> names_;
};

/// Every value has one definition, above those who read it.
bool names_hold(const onnx::GraphProto& graph) {
  Names values, initializers;
  for (const auto& input : graph.input())
    if (!values.add(input.name())) return false;
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name().empty() || !initializers.add(tensor.name())) return false;
    values.add(tensor.name());
  }
  for (const auto& node : graph.node()) {
    for (const auto& name : node.input())
      if (!name.empty() && !values.has(name)) return false;
    for (const auto& name : node.output())
      if (!name.empty() && !values.add(name)) return false;
  }
  return std::all_of(graph.output().begin(), graph.output().end(), [&](const auto& output) { return values.has(output.name()); });
}

/// Throws what the checker says of the model without its nodes, initializers and outputs.
void check_around_nodes(const onnx::ModelProto& model) {
  onnx::ModelProto around;
  around.set_ir_version(model.ir_version());
  *around.mutable_opset_import() = model.opset_import();
  *around.mutable_metadata_props() = model.metadata_props();
  around.mutable_graph()->set_name(model.graph().name());
  *around.mutable_graph()->mutable_input() = model.graph().input();
  onnx::checker::check_model(around);
}

onnx::checker::CheckerContext context_of(const onnx::ModelProto& model) {
  std::unordered_map<std::string, int> versions;
  for (const auto& import : model.opset_import()) versions[import.domain()] = static_cast<int>(import.version());
  onnx::checker::CheckerContext context;
  context.set_ir_version(static_cast<int>(model.ir_version()));
  context.set_opset_imports(std::move(versions));
  return context;
}

/// Nodes without attributes are many and alike: what the checker looks at in such a node is its operator, how many
/// inputs and outputs it has, and which of them are omitted.
class PlainNodes {
 public:
  /// True for the first of those that are alike.
  bool is_first(const onnx::NodeProto& node) {
    form_.assign(node.domain()).append(1, '\n').append(node.op_type()).append(1, '\n');
    for (const auto& name : node.input()) form_ += name.empty() ? '-' : 'i';
    form_ += '\n';
    for (const auto& name : node.output()) form_ += name.empty() ? '-' : 'o';
    return seen_.insert(form_).second;
  }

 private:
  std::string form_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

bool is_valid_flat_model(const onnx::ModelProto& model) {
  if (!is_flat(model) || !names_hold(model.graph())) return false;
  try {
    check_around_nodes(model);
    const onnx::checker::CheckerContext context = context_of(model);
    const onnx::checker::LexicalScopeContext no_outer_names;
    for (const auto& output : model.graph().output()) onnx::checker::check_value_info(output, context);
    for (const auto& tensor : model.graph().initializer()) onnx::checker::check_tensor(tensor, context);
    PlainNodes plain;
    for (const auto& node : model.graph().node())
      if (node.attribute_size() > 0 || plain.is_first(node)) onnx::checker::check_node(node, context, no_outer_names);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace attn_opt
