#include "src/optimizer/output_shapes.h"

#include "src/match/facts/declared_type.h"

namespace attn_opt {
namespace {

bool is_body(const Graph& graph) { return graph.owner() && !graph.owner()->removed; }

/// The type of VALUE, an input or output of a body, where DECLARED says nothing of it.
void declare_element_type(const Value& value, onnx::ValueInfoProto& declared, Facts& facts) {
  const DataType type = facts.type(value);
  if (declared.type().value_case() != onnx::TypeProto::VALUE_NOT_SET || type == onnx::TensorProto::UNDEFINED) return;
  declared.mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

void declare_shape(const Value& value, onnx::ValueInfoProto& declared, Facts& facts) {
  if (!declared.type().has_tensor_type() || declared.type().tensor_type().has_shape()) return;
  if (const MaybeShape shape = facts.shape(value))
    declare_sizes(*shape, *declared.mutable_type()->mutable_tensor_type()->mutable_shape());
}

}  // namespace

void declare_output_shapes(ModelGraph& model, Facts& facts) {
  for (const auto& graph : model.graphs()) {
    if (!graph->proto() || !(is_body(*graph) || graph.get() == &model.main())) continue;
    const bool has_shapes = !is_body(*graph) || graph->owner()->is("Scan");
    for (size_t i = 0; is_body(*graph) && i < graph->inputs().size(); ++i)
      declare_element_type(*graph->inputs()[i], *graph->proto()->mutable_input(static_cast<int>(i)), facts);
    for (size_t i = 0; i < graph->outputs().size(); ++i) {
      const Value* output = graph->outputs()[i];
      if (!output) continue;
      auto& declared = *graph->proto()->mutable_output(static_cast<int>(i));
      if (is_body(*graph)) declare_element_type(*output, declared, facts);
      if (has_shapes) declare_shape(*output, declared, facts);
    }
  }
}

}  // namespace attn_opt
