#include "src/opset/onnx_conversion.h"

#include <onnx/shape_inference/implementation.h>
#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <exception>

#include "src/io/check/onnx_schemas.h"

namespace attn_opt {
namespace {

constexpr int kIrVersion = 8;  // which the converter knows whatever the opset

void describe_input(const RaiseSite& site, size_t i, onnx::GraphProto& graph) {
  if (const Tensor* constant = site.constant(i)) {
    *graph.add_initializer() = to_proto(*constant, draft_input(i));
    return;
  }
  auto* input = graph.add_input();
  input->set_name(draft_input(i));
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(site.type(i));
  if (const MaybeShape shape = site.shape(i)) {
    type->mutable_shape();
    for (const Dim& size : *shape) {
      auto* dim = type->mutable_shape()->add_dim();
      if (size.is_constant())
        dim->set_dim_value(size.value());
      else
        dim->set_dim_param(size.str());
    }
  }
}

onnx::ModelProto model_of(const onnx::NodeProto& node, int opset, const RaiseSite& site) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.add_opset_import()->set_version(opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("node");
  *graph.add_node() = node;
  for (int i = 0; i < node.input_size(); ++i) {
    if (!node.input(i).empty()) describe_input(site, static_cast<size_t>(i), graph);
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    auto* output = graph.add_output();
    output->set_name(node.output(i));
    output->mutable_type()->mutable_tensor_type()->set_elem_type(site.output_type(static_cast<size_t>(i)));
  }
  return model;
}

onnx::ModelProto converted(onnx::ModelProto model, int from, int to) {
  namespace conversion = onnx::version_conversion;
  static const conversion::DefaultVersionConverter converter;
  onnx::shape_inference::InferShapes(model);
  return converter.convert_version(model, onnx::OpSetID(from), onnx::OpSetID(to));
}

/// Names that are not those of drafts, given again so that equal conversions are equal.
class Renaming {
 public:
  void rename(std::string& name) {
    if (name.empty() || draft_number(name, "in.") >= 0 || draft_number(name, "out.") >= 0) return;
    name = names_.try_emplace(name, "t." + std::to_string(names_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::string> names_;
};

onnx::NodeProto constant_node(onnx::TensorProto tensor) {
  onnx::NodeProto node;
  node.set_op_type("Constant");
  node.add_output(tensor.name());
  tensor.clear_name();
  auto* value = node.add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  *value->mutable_t() = std::move(tensor);
  return node;
}

tl::expected<Draft, std::string> draft_of(onnx::GraphProto& graph, const std::string& op) {
  std::vector<onnx::NodeProto> nodes;
  for (auto& tensor : *graph.mutable_initializer()) {
    if (draft_number(tensor.name(), "in.") < 0) nodes.push_back(constant_node(std::move(tensor)));
  }
  for (auto& node : *graph.mutable_node()) nodes.push_back(std::move(node));
  Renaming renaming;
  for (auto& node : nodes) {
    node.clear_name();
    for (auto& name : *node.mutable_input()) renaming.rename(name);
    for (auto& name : *node.mutable_output()) renaming.rename(name);
  }
  const auto is_main = [&](const auto& node) { return node.op_type() == op; };
  const auto makes_result = [](const auto& node) {
    return std::ranges::find(node.output(), draft_output(0)) != node.output().end();
  };
  auto main = std::ranges::find_if(nodes, is_main);
  if (main == nodes.end()) main = std::ranges::find_if(nodes, makes_result);
  if (main == nodes.end()) return tl::unexpected<std::string>("it makes no node");
  const auto at = static_cast<size_t>(main - nodes.begin());
  return Draft(std::move(nodes), at);
}

}  // namespace

tl::expected<Draft, std::string> convert_with_onnx(const onnx::NodeProto& canonical, int from, int to, const RaiseSite& site) {
  try {
    const auto* schema = onnx_schema(canonical.op_type(), from, "");
    if (schema != nullptr) schema->Verify(canonical);
    onnx::ModelProto model = converted(model_of(canonical, from, site), from, to);
    return draft_of(*model.mutable_graph(), canonical.op_type());
  } catch (const std::exception& error) {
    std::string what = error.what();
    std::ranges::replace(what, '\n', ' ');
    return tl::unexpected<std::string>(std::move(what));
  }
}

}  // namespace attn_opt
