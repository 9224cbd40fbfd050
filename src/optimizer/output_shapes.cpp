#include "src/optimizer/output_shapes.h"

#include "src/match/sole_atom.h"

namespace attn_opt {
namespace {

/// The name of a symbol of the model's that SIZE is; empty if it is none.
std::string name_of(const Dim& size) {
  const Atom* atom = sole_atom(size);
  return atom && atom->kind == Atom::Kind::kSymbol && !atom->unknown ? atom->name : "";
}

void declare(const Shape& shape, onnx::TensorShapeProto& declared) {
  for (const Dim& size : shape) {
    auto* dim = declared.add_dim();
    const std::string name = name_of(size);
    if (size.is_constant()) dim->set_dim_value(size.value());
    else if (!name.empty()) dim->set_dim_param(name);
  }
}

}  // namespace

void declare_output_shapes(ModelGraph& model, Facts& facts) {
  const Graph& main = *model.graphs().front();
  for (size_t i = 0; i < main.outputs().size(); ++i) {
    auto* type = model.proto().mutable_graph()->mutable_output(static_cast<int>(i))->mutable_type();
    if (!type->has_tensor_type() || type->tensor_type().has_shape()) continue;
    if (const Shape* shape = facts.shape(*main.outputs()[i])) declare(*shape, *type->mutable_tensor_type()->mutable_shape());
  }
}

}  // namespace attn_opt
