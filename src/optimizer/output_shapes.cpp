#include "src/optimizer/output_shapes.h"

#include "src/match/facts/declared_type.h"

namespace attn_opt {
namespace {

bool is_body_of_scan(const Graph& graph) { return graph.owner() && graph.owner()->is("Scan") && !graph.owner()->removed; }

/// Declares the type of VALUE, an output of a body, where nothing is said of it.
void declare_element_type(const Value& value, onnx::TypeProto& type, Facts& facts) {
  if (type.value_case() == onnx::TypeProto::VALUE_NOT_SET && facts.type(value) != onnx::TensorProto::UNDEFINED)
    type.mutable_tensor_type()->set_elem_type(facts.type(value));
}

}  // namespace

void declare_output_shapes(ModelGraph& model, Facts& facts) {
  for (const auto& graph : model.graphs()) {
    const bool is_body = is_body_of_scan(*graph);
    if (!graph->proto() || !(is_body || graph.get() == &model.main())) continue;
    for (size_t i = 0; i < graph->outputs().size(); ++i) {
      const Value* output = graph->outputs()[i];
      if (!output) continue;
      auto* type = graph->proto()->mutable_output(static_cast<int>(i))->mutable_type();
      if (is_body) declare_element_type(*output, *type, facts);
      if (!type->has_tensor_type() || type->tensor_type().has_shape()) continue;
      if (const MaybeShape shape = facts.shape(*output)) declare_sizes(*shape, *type->mutable_tensor_type()->mutable_shape());
    }
  }
}

}  // namespace attn_opt
