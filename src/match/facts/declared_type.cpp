#include "src/match/facts/declared_type.h"

#include <string>

#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

/// The name of a symbol of the model's that SIZE is; empty if it is none.
std::string name_of(const Dim& size) {
  const Atom* atom = sole_atom(size);
  return atom && atom->kind == Atom::Kind::kSymbol && !atom->unknown ? atom->name : "";
}

}  // namespace

void declare_sizes(const Shape& shape, onnx::TensorShapeProto& declared) {
  for (const Dim& size : shape) {
    auto* dim = declared.add_dim();
    const std::string name = name_of(size);
    if (size.is_constant())
      dim->set_dim_value(size.value());
    else if (!name.empty())
      dim->set_dim_param(name);
  }
}

onnx::TypeProto declared_type(DataType type, const Shape& shape) {
  onnx::TypeProto declared;
  declared.mutable_tensor_type()->set_elem_type(type);
  declare_sizes(shape, *declared.mutable_tensor_type()->mutable_shape());
  return declared;
}

}  // namespace attn_opt
