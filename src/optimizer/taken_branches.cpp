#include "src/optimizer/taken_branches.h"

#include <algorithm>
#include <set>

#include "attn_opt/facts.h"

namespace attn_opt {
namespace {

constexpr int kFirstWithInitializersThatAreNoInputs = 4;  // ir_version

/// The attribute of NODE, an If, with the branch that its condition selects in every run, by the value of that name in PLAIN,
/// the main graph without calls; null if none is known to be.
const char* branch_taken(const Node& node, const Graph& plain, Facts& facts) {
  const Value* value = node.input(0) ? plain.find(node.inputs[0]->name) : nullptr;
  const IntegerData* condition = value ? facts.integers(*value) : nullptr;
  if (!condition || condition->values.size() != 1 || !condition->values[0].is_constant()) return nullptr;
  return condition->values[0].is(0) ? "else_branch" : "then_branch";
}

const Graph* body_in(const Node& node, const char* name) {
  const auto* attribute = name ? node.attribute(name) : nullptr;
  const auto body =
      std::ranges::find_if(node.bodies, [&](const Graph* graph) { return attribute && graph->proto() == &attribute->g(); });
  return body == node.bodies.end() ? nullptr : *body;
}

bool lies_in(const Graph& graph, const Graph& body) {
  for (const Graph* outer = &graph; outer; outer = outer->parent())
    if (outer == &body) return true;
  return false;
}

/// The names of what BODY, and what is nested in it, reads of the graph around it, each once.
std::vector<std::string> read_by(const Graph& body, const ModelGraph& view) {
  std::set<std::string> names;
  const auto add = [&](const Value* value) {
    if (value && !lies_in(*value->graph, body)) names.insert(value->name);
  };
  for (const auto& graph : view.graphs()) {
    if (!lies_in(*graph, body)) continue;
    for (const Node* node : graph->nodes()) std::ranges::for_each(node->inputs, add);
    std::ranges::for_each(graph->outputs(), add);
  }
  return {names.begin(), names.end()};
}

/// A function's outputs are values of its own, each another.
bool has_outputs_of_a_function(const Graph& body) {
  std::set<const Value*> outputs(body.outputs().begin(), body.outputs().end());
  return outputs.size() == body.outputs().size() &&
         std::ranges::all_of(outputs, [&](const Value* value) { return value && value->graph == &body && value->producer; });
}

const onnx::GraphProto& body_of(const TakenBranch& branch, const onnx::ModelProto& model) {
  return std::ranges::find(model.graph().node(branch.node).attribute(), branch.attribute, &onnx::AttributeProto::name)->g();
}

onnx::FunctionProto function_of(const TakenBranch& branch, const onnx::ModelProto& model) {
  onnx::FunctionProto function;
  function.set_domain(kBranchDomain);
  function.set_name(branch.function);
  *function.mutable_opset_import() = model.opset_import();
  for (const std::string& name : branch.reads) function.add_input(name);
  for (const auto& [own, outer] : branch.initializers) function.add_input(own);
  const onnx::GraphProto& body = body_of(branch, model);
  for (const onnx::ValueInfoProto& output : body.output()) function.add_output(output.name());
  *function.mutable_node() = body.node();
  return function;
}

}  // namespace

std::vector<TakenBranch> taken_branches(ModelGraph& view, ModelGraph& plain, const TensorStore& tensors) {
  std::vector<TakenBranch> branches;
  Facts facts(plain, tensors, false);
  for (const Node* node : view.main().nodes()) {
    const char* name = node->is("If") ? branch_taken(*node, plain.main(), facts) : nullptr;
    const Graph* body = body_in(*node, name);
    if (!body || !has_outputs_of_a_function(*body) || body->proto()->sparse_initializer_size() > 0) continue;
    TakenBranch branch{
        static_cast<int>(node->position), name, "branch_" + std::to_string(branches.size()), read_by(*body, view), {}};
    for (const onnx::TensorProto& initializer : body->proto()->initializer())
      branch.initializers.emplace_back(initializer.name(), view.fresh_name(initializer.name()));
    if (!branch.initializers.empty() && view.proto().ir_version() < kFirstWithInitializersThatAreNoInputs) continue;
    branches.push_back(std::move(branch));
  }
  return branches;
}

onnx::ModelProto with_calls_of(const std::vector<TakenBranch>& branches, const onnx::ModelProto& model) {
  onnx::ModelProto outlined = model;
  for (const TakenBranch& branch : branches) {
    *outlined.add_functions() = function_of(branch, model);
    onnx::NodeProto& call = *outlined.mutable_graph()->mutable_node(branch.node);
    call.set_domain(kBranchDomain);
    call.set_op_type(branch.function);
    call.clear_attribute();
    call.clear_input();
    for (const std::string& name : branch.reads) call.add_input(name);
    for (size_t i = 0; i < branch.initializers.size(); ++i) {
      onnx::TensorProto& initializer = *outlined.mutable_graph()->add_initializer();
      initializer = body_of(branch, model).initializer(static_cast<int>(i));
      initializer.set_name(branch.initializers[i].second);
      call.add_input(initializer.name());
    }
  }
  return outlined;
}

}  // namespace attn_opt
