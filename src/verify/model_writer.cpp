#include "src/verify/model_writer.h"

#include <algorithm>
#include <unordered_set>

#include "attn_opt/edit.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {
namespace {

std::string call_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain + '\n' + name + '\n' + overload;
}

onnx::GraphProto write_body(const Graph& body) {
  onnx::GraphProto proto;
  proto.set_name(body.proto()->name());
  *proto.mutable_input() = body.proto()->input();
  *proto.mutable_output() = body.proto()->output();
  const Cone cone = cone_of_body(body);
  for (const Value* leaf : cone.leaves)
    if (leaf->graph == &body && leaf->initializer) *proto.add_initializer() = *leaf->initializer;
  for (const Node* node : cone.nodes) *proto.add_node() = write_node(*node);
  return proto;
}

onnx::FunctionProto write_function(const Graph& graph) {
  const onnx::FunctionProto& function = *graph.function();
  onnx::FunctionProto proto;
  proto.set_name(function.name());
  proto.set_domain(function.domain());
  proto.set_overload(function.overload());
  *proto.mutable_input() = function.input();
  *proto.mutable_output() = function.output();
  *proto.mutable_attribute() = function.attribute();
  *proto.mutable_attribute_proto() = function.attribute_proto();
  *proto.mutable_opset_import() = function.opset_import();
  for (const Node* node : cone_of_body(graph).nodes) *proto.add_node() = write_node(*node);
  return proto;
}

/// Every function that NODES call, also from within bodies and functions.
std::vector<const Graph*> called_functions(const std::vector<Node*>& nodes, const LocalFunctionGraphs& functions) {
  std::vector<const Graph*> called;
  std::unordered_set<const Graph*> seen;
  std::vector<const Node*> pending(nodes.begin(), nodes.end());
  auto enter = [&](const Graph& graph) {
    for (const Node* node : cone_of_body(graph).nodes) pending.push_back(node);
  };
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const Graph* body : node->bodies) enter(*body);
    const Graph* function = functions.called_by(*node);
    if (!function || !seen.insert(function).second) continue;
    called.push_back(function);
    enter(*function);
  }
  return called;
}

/// The opset imports that nodes of GRAPH are read by.
const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports_of(const Graph& graph) {
  const onnx::FunctionProto* function = graph.outermost().function();
  return function ? function->opset_import() : graph.model().proto().opset_import();
}

constexpr const char* kOwnOpsetDomain = "attn_opt.own_opset";

/// NODE as the body of a function NAME that imports OPSET; inputs and outputs that NODE lacks the function lacks too.
onnx::FunctionProto function_of(const onnx::NodeProto& node, int opset, const std::string& name) {
  onnx::FunctionProto function;
  function.set_domain(kOwnOpsetDomain);
  function.set_name(name);
  auto* import = function.add_opset_import();
  import->set_version(opset);
  for (const auto& input : node.input())
    if (!input.empty() && std::ranges::find(function.input(), input) == function.input().end()) function.add_input(input);
  for (const auto& output : node.output())
    if (!output.empty()) function.add_output(output);
  *function.add_node() = node;
  return function;
}

onnx::NodeProto call_of(const onnx::FunctionProto& function, const std::string& name) {
  onnx::NodeProto call;
  call.set_domain(function.domain());
  call.set_op_type(function.name());
  call.set_name(name);
  *call.mutable_input() = function.input();
  *call.mutable_output() = function.output();
  return call;
}

}  // namespace

LocalFunctionGraphs::LocalFunctionGraphs(const ModelGraph& view) {
  for (const auto& graph : view.graphs())
    if (const auto* function = graph->function())
      graphs_[call_key(function->domain(), function->name(), function->overload())] = graph.get();
}

const Graph* LocalFunctionGraphs::called_by(const Node& node) const {
  if (graphs_.empty()) return nullptr;
  auto found = graphs_.find(call_key(node.proto->domain(), node.op(), node.proto->overload()));
  return found == graphs_.end() ? nullptr : found->second;
}

onnx::NodeProto write_node(const Node& node) {
  onnx::NodeProto proto;
  proto.set_name(node.proto->name());
  proto.set_op_type(node.op());
  proto.set_domain(node.proto->domain());
  proto.set_overload(node.proto->overload());
  for (const Value* input : node.inputs) proto.add_input(input ? input->name : "");
  for (const Value* output : node.outputs) proto.add_output(output ? output->name : "");
  size_t body = 0;
  for (const auto& attribute : node.proto->attribute()) {
    auto* copy = proto.add_attribute();
    if (attribute.has_g() && body < node.bodies.size()) {
      copy->set_name(attribute.name());
      copy->set_type(attribute.type());
      *copy->mutable_g() = write_body(*node.bodies[body++]);
    } else {
      *copy = attribute;
    }
  }
  return proto;
}

onnx::ModelProto write_model(const Cone& cone, const std::vector<Value*>& outputs, const Graph& graph,
                             const LocalFunctionGraphs& functions) {
  onnx::ModelProto model;
  model.set_ir_version(graph.model().proto().ir_version());
  *model.mutable_opset_import() = imports_of(graph);
  for (const Graph* function : called_functions(cone.nodes, functions)) *model.add_functions() = write_function(*function);
  auto& proto = *model.mutable_graph();
  proto.set_name("site");
  for (const Value* leaf : cone.leaves) proto.add_input()->set_name(leaf->name);
  for (const Value* output : outputs) proto.add_output()->set_name(output->name);
  for (const Node* node : cone.nodes) {
    *proto.add_node() = write_node(*node);
    if (!node->domain().empty()) import_domain(node->proto->domain(), model);
  }
  return model;
}

void stand_at_own_opsets(const std::vector<Node*>& nodes, onnx::ModelProto& model) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    if (node.placement == Placement::kOfFile || !is_onnx(node.proto->domain())) continue;
    const int opset = node.graph->model().onnx_opset(node);
    if (opset == opset_version(model)) continue;
    onnx::NodeProto& proto = *model.mutable_graph()->mutable_node(static_cast<int>(i));
    const onnx::FunctionProto function = function_of(proto, opset, "Node" + std::to_string(i));
    enter_function(function, model);
    proto = call_of(function, proto.name());
  }
}

}  // namespace attn_opt
