#include "src/optimizer/output_shapes.h"

#include "src/match/facts/declared_type.h"

namespace attn_opt {
void declare_output_shapes(ModelGraph& model, Facts& facts) {
  const Graph& main = *model.graphs().front();
  for (size_t i = 0; i < main.outputs().size(); ++i) {
    auto* type = model.proto().mutable_graph()->mutable_output(static_cast<int>(i))->mutable_type();
    if (!type->has_tensor_type() || type->tensor_type().has_shape()) continue;
    if (const MaybeShape shape = facts.shape(*main.outputs()[i]))
      declare_sizes(*shape, *type->mutable_tensor_type()->mutable_shape());
  }
}

}  // namespace attn_opt
