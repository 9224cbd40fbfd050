#include "src/io/check/flat_check.h"

#include <onnx/checker.h>

#include <algorithm>
#include <exception>
#include <string>
#include <unordered_map>

#include "attn_opt/name_table.h"
#include "src/io/check/onnx_schemas.h"

namespace attn_opt {
namespace {

/// From here on an initializer need not be an input too.
constexpr int64_t kFirstIrVersionWithPlainInitializers = 4;

bool has_body(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return attribute.has_g() || attribute.graphs_size() > 0; });
}

bool is_plain(const onnx::ModelProto& model) {
  return model.ir_version() >= kFirstIrVersionWithPlainInitializers && model.functions_size() == 0 &&
         model.graph().sparse_initializer_size() == 0;
}

/// The names that are there so far, which stay where they are.
class KnownNames {
 public:
  void reserve(int count) { names_.reserve(static_cast<size_t>(count)); }
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

/// Do values have one definition each, above those who read them? To be asked from the top of GRAPH downwards.
class Definitions {
 public:
  bool hold_above_nodes(const onnx::GraphProto& graph) {
    KnownNames initializers;
    initializers.reserve(graph.initializer_size());
    values_.reserve(graph.input_size() + graph.initializer_size() + graph.node_size());
    for (const auto& input : graph.input())
      if (!values_.add(input.name())) return false;
    for (const auto& tensor : graph.initializer()) {
      if (tensor.name().empty() || !initializers.add(tensor.name())) return false;
      values_.add(tensor.name());
    }
    return true;
  }
  bool hold_at(const onnx::NodeProto& node) {
    for (const auto& name : node.input())
      if (!name.empty() && !values_.has(name)) return false;
    for (const auto& name : node.output())
      if (!name.empty() && !values_.add(name)) return false;
    return true;
  }
  bool hold_below_nodes(const onnx::GraphProto& graph) const {
    return std::all_of(graph.output().begin(), graph.output().end(),
                       [&](const auto& output) { return values_.has(output.name()); });
  }

 private:
  KnownNames values_;
};

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
  context.set_schema_registry(&onnx_schemas());
  context.set_ir_version(static_cast<int>(model.ir_version()));
  context.set_opset_imports(std::move(versions));
  return context;
}

/// Of what ATTRIBUTE holds, what the checker looks at if it holds no messages: its type, and where it has values.
uint32_t form_of(const onnx::AttributeProto& attribute) {
  auto form = static_cast<uint32_t>(attribute.type());
  for (const bool has :
       {attribute.has_type(), attribute.has_ref_attr_name(), attribute.has_f(), attribute.has_i(), attribute.has_s(),
        attribute.floats_size() > 0, attribute.ints_size() > 0, attribute.strings_size() > 0})
    form = 2 * form + (has ? 1 : 0);
  return form;
}

bool holds_messages(const onnx::AttributeProto& attribute) {
  return attribute.has_t() || attribute.has_g() || attribute.has_tp() || attribute.has_sparse_tensor() ||
         attribute.tensors_size() > 0 || attribute.graphs_size() > 0 || attribute.type_protos_size() > 0 ||
         attribute.sparse_tensors_size() > 0;
}

bool alike(const onnx::AttributeProto& one, const onnx::AttributeProto& other) {
  return form_of(one) == form_of(other) && one.name() == other.name();
}

/// Nodes are many, and most are alike in all that the checker looks at: the operator, how many inputs and outputs there
/// are and which are omitted, the names of attributes and what they hold.
bool alike(const onnx::NodeProto& one, const onnx::NodeProto& other) {
  const auto both_empty = [](const std::string& a, const std::string& b) { return a.empty() == b.empty(); };
  return one.op_type() == other.op_type() && one.domain() == other.domain() &&
         std::equal(one.input().begin(), one.input().end(), other.input().begin(), other.input().end(), both_empty) &&
         std::equal(one.output().begin(), one.output().end(), other.output().begin(), other.output().end(), both_empty) &&
         std::equal(one.attribute().begin(), one.attribute().end(), other.attribute().begin(), other.attribute().end(),
                    [](const auto& a, const auto& b) { return alike(a, b); });
}

/// Equal for nodes that are alike.
size_t likeness_hash(const onnx::NodeProto& node) {
  size_t hash = name_hash(node.op_type());
  const auto add = [&hash](size_t part) { hash = 31 * hash + part; };
  if (!node.domain().empty()) add(name_hash(node.domain()));
  for (const auto* names : {&node.input(), &node.output()}) {
    add(static_cast<size_t>(names->size()));
    for (const auto& name : *names) add(name.empty() ? 1 : 2);
  }
  for (const auto& attribute : node.attribute()) add(name_hash(attribute.name()) + form_of(attribute));
  return name_hash({reinterpret_cast<const char*>(&hash), sizeof hash});
}

class CheckedNodes {
 public:
  /// Does NODE have to be looked at, being the first of those that are alike, or holding messages?
  bool is_new(const onnx::NodeProto& node) {
    if (std::any_of(node.attribute().begin(), node.attribute().end(), holds_messages)) return true;
    return nodes_.insert(likeness_hash(node), &node, [&node](const onnx::NodeProto* known) { return alike(*known, node); });
  }

 private:
  NameTable<const onnx::NodeProto*> nodes_;
};

}  // namespace

bool is_valid_flat_model(const onnx::ModelProto& model) {
  Definitions definitions;
  if (!is_plain(model) || !definitions.hold_above_nodes(model.graph())) return false;
  try {
    check_around_nodes(model);
    const onnx::checker::CheckerContext context = context_of(model);
    const onnx::checker::LexicalScopeContext no_outer_names;
    for (const auto& output : model.graph().output()) onnx::checker::check_value_info(output, context);
    for (const auto& tensor : model.graph().initializer()) onnx::checker::check_tensor(tensor, context);
    CheckedNodes checked;
    for (const auto& node : model.graph().node()) {
      if (has_body(node) || !definitions.hold_at(node)) return false;
      if (checked.is_new(node)) onnx::checker::check_node(node, context, no_outer_names);
    }
  } catch (const std::exception&) {
    return false;
  }
  return definitions.hold_below_nodes(model.graph());
}

}  // namespace attn_opt
