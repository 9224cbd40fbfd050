// What a model declares of its values, beside what is computed of them.
#include <algorithm>

#include "src/match/facts/fact_store.h"
#include "src/match/sizes/input_size.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

const onnx::TypeProto_Tensor* tensor_type(const onnx::TypeProto* type) {
  return type && type->has_tensor_type() ? &type->tensor_type() : nullptr;
}

/// False of what tools write for any size that they leave open ("?", "-1", "*", "None"), and of a number: one is not another,
/// and a size that is called "3" may be any.
bool names_a_size(const std::string& dim_param) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80); };
  const auto is_of_name = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  if (dim_param.empty()) return false;
  const char first = dim_param.front();
  if (is_letter(first)) return first != 'N' || dim_param != "None";
  const bool may_be_name = first != '?' && first != '-' && std::ranges::any_of(dim_param, is_of_name);
  return may_be_name && !Dim::parse(dim_param).is_constant();
}

}  // namespace

Shape FactStore::declared_dims(const Value& value, const onnx::TensorShapeProto& shape) {
  Shape dims;
  for (int axis = 0; axis < shape.dim_size(); ++axis) {
    const auto& dim = shape.dim(axis);
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      dims.push_back(dim.dim_value());
    } else if (names_a_size(dim.dim_param()) && !value.graph->function()) {
      const Dim named = value.producer ? Dim::parse(dim.dim_param()) : input_size(dim.dim_param());
      dims.push_back(names_ ? renamed(named, *names_) : named);
    } else {
      dims.push_back(Dim::unknown(hint(value), axis));
    }
  }
  return dims;
}

const std::vector<Shape>& FactStore::input_shapes() {
  if (input_shapes_) return *input_shapes_;
  input_shapes_.emplace();
  for (const Value* input : view_.main().inputs()) {
    const onnx::TypeProto_Tensor* declared = tensor_type(input->declared_type);
    if (declared && declared->shape().dim_size() <= static_cast<int>(kMaxRank))
      input_shapes_->push_back(declared_dims(*input, declared->shape()));
  }
  return *input_shapes_;
}

/// Sizes of the model's inputs that have no name.
const std::set<std::string>& FactStore::open_sizes() {
  if (open_sizes_) return *open_sizes_;
  open_sizes_.emplace();
  for (const Shape& shape : input_shapes())
    for (const Dim& dim : shape)
      if (const Atom* atom = sole_atom(dim); atom && atom->unknown) open_sizes_->insert(atom->name);
  return *open_sizes_;
}

/// True if DIM is made of sizes that inputs have, or that the model names: nothing declared for a value behind them says more.
/// A number there is of when the inputs were numbers, or as small as the exporter's, and tools that make them symbols leave it.
/// One of two bounds may be known to it, and a quotient of sizes without a name be one that it has a name for.
bool FactStore::is_of_named_sizes(const Dim& dim) {
  const std::vector<AtomRef> atoms = dim.atoms();
  const bool may_divide = has_names_alone(dim);
  return std::ranges::all_of(atoms, [&](const AtomRef& atom) {
    if (atom->kind == Atom::Kind::kFloorDiv) return may_divide;
    return is_own_size(*atom) && (!atom->unknown || open_sizes().contains(atom->name));
  });
}

/// True if DIM is a size without a name that VALUE's node takes over from an input. By another name it would be another size
/// than that of the input's other readers, and no number of the input's would be one of it.
bool FactStore::is_open_size_of_input(const Value& value, const Dim& dim) {
  if (!value.producer || !sole_atom(dim)) return false;
  return std::ranges::any_of(value.producer->inputs, [&](const Value* input) {
    const ValueFact* known = input ? facts_.find(*input) : nullptr;
    return known && known->shape && std::ranges::find(*known->shape, dim) != known->shape->end();
  });
}

void FactStore::merge_declared(const Value& value, ValueFact& fact) {
  const onnx::TypeProto_Tensor* declared = tensor_type(value.declared_type);
  if (!declared) return;
  if (fact.type == onnx::TensorProto::UNDEFINED && onnx::TensorProto::DataType_IsValid(declared->elem_type())) {
    fact.type = static_cast<DataType>(declared->elem_type());
  }
  if (!declared->has_shape() || declared->shape().dim_size() > static_cast<int>(kMaxRank)) return;
  if (!fact.shape) {
    fact.shape = declared_dims(value, declared->shape());
    return;
  }
  if (fact.shape->size() != static_cast<size_t>(declared->shape().dim_size())) return;
  const Shape dims = declared_dims(value, declared->shape());
  // What is open after an If differs between its branches: a name declared for it is true of one of them at
  // most.
  const bool branches_differ = value.producer && value.producer->is("If");
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    Dim& dim = (*fact.shape)[axis];
    if (dim.is_constant() || is_of_named_sizes(dim)) continue;
    const bool named =
        !branches_differ && !has_names_alone(dim) && has_names_alone(dims[axis]) && !is_open_size_of_input(value, dim);
    if (dims[axis].is_constant() || named) dim = dims[axis];
  }
}

}  // namespace attn_opt
