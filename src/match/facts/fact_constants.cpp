// The second level: contents of constants.
#include <algorithm>
#include <limits>

#include "src/match/facts/fact_store.h"
#include "src/match/post_order.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// Elements of all constants that are held at one time; what would exceed it is not computed.
constexpr int64_t kMaxHeldElements = int64_t{1} << 26;

template <class T>
Tensor numbers_as(const IntegerData& data) {
  std::vector<T> values;
  for (const Dim& dim : data.values) {
    if (!dim.is_constant()) return {};
    if constexpr (!std::is_same_v<T, bool>) {
      if (!std::in_range<T>(dim.value())) return {};
    }
    values.push_back(static_cast<T>(dim.value()));
  }
  Tensor tensor(data_type_of<T>(), data.dims);
  std::copy(values.begin(), values.end(), tensor.mutable_data<T>().begin());
  return tensor;
}

template <class T>
std::optional<IntegerData> values_of(const Tensor& tensor) {
  IntegerData data{tensor.dims(), {}};
  for (const T value : tensor.data<T>()) {
    if (!std::in_range<int64_t>(static_cast<std::conditional_t<std::is_same_v<T, bool>, int, T>>(value))) {
      return std::nullopt;
    }
    data.values.push_back(static_cast<int64_t>(value));
  }
  return data;
}

template <class T, class Values>
Tensor list_tensor(const Values& values, bool scalar) {
  return Tensor::of<T>(scalar ? Dims{} : Dims{static_cast<int64_t>(values.size())},
                       std::vector<T>(values.begin(), values.end()));
}

}  // namespace

bool is_integer(DataType type) {
  switch (type) {
    case P::BOOL:
    case P::INT8:
    case P::INT16:
    case P::INT32:
    case P::INT64:
    case P::UINT8:
    case P::UINT16:
    case P::UINT32:
    case P::UINT64: return true;
    default: return false;
  }
}

Tensor tensor_of(const IntegerData& data, DataType type) {
  switch (type) {
    case P::BOOL: return numbers_as<bool>(data);
    case P::INT8: return numbers_as<int8_t>(data);
    case P::INT16: return numbers_as<int16_t>(data);
    case P::INT32: return numbers_as<int32_t>(data);
    case P::INT64: return numbers_as<int64_t>(data);
    case P::UINT8: return numbers_as<uint8_t>(data);
    case P::UINT16: return numbers_as<uint16_t>(data);
    case P::UINT32: return numbers_as<uint32_t>(data);
    case P::UINT64: return numbers_as<uint64_t>(data);
    default: return {};
  }
}

std::optional<IntegerData> integers_of(const Tensor& tensor) {
  switch (tensor.type()) {
    case P::BOOL: return values_of<bool>(tensor);
    case P::INT8: return values_of<int8_t>(tensor);
    case P::INT16: return values_of<int16_t>(tensor);
    case P::INT32: return values_of<int32_t>(tensor);
    case P::INT64: return values_of<int64_t>(tensor);
    case P::UINT8: return values_of<uint8_t>(tensor);
    case P::UINT16: return values_of<uint16_t>(tensor);
    case P::UINT32: return values_of<uint32_t>(tensor);
    case P::UINT64: return values_of<uint64_t>(tensor);
    default: return std::nullopt;
  }
}

std::optional<Tensor> constant_attribute(const Node& node, const TensorStore& tensors) {
  if (node.proto->attribute_size() != 1) return std::nullopt;
  const onnx::AttributeProto& attribute = node.proto->attribute(0);
  if (attribute.name() == "value") {
    Expected<Tensor> tensor = to_tensor(attribute.t(), tensors);
    return tensor ? std::optional(*std::move(tensor)) : std::nullopt;
  }
  if (attribute.name() == "value_float") return Tensor::scalar(attribute.f());
  if (attribute.name() == "value_int") return Tensor::scalar(int64_t{attribute.i()});
  if (attribute.name() == "value_floats") return list_tensor<float>(attribute.floats(), false);
  if (attribute.name() == "value_ints") return list_tensor<int64_t>(attribute.ints(), false);
  return std::nullopt;
}

const Tensor* FactStore::constant(const Value& value) {
  if (!fact(value).foldable) return nullptr;
  post_order(
      value, [&](const Value& v) { return constants_.find(v) || !computed(v).foldable; },
      [&](const Value& v, int stage) { return stage == 0 ? constant_inputs(v) : std::vector<const Value*>{}; },
      [&](const Value& v) { fold(v); });
  const Tensor& tensor = constants_[value];
  return tensor.has_value() ? &tensor : nullptr;
}

std::vector<const Value*> FactStore::constant_inputs(const Value& value) {
  const ValueFact& known = computed(value);
  if (known.same_as) return {known.same_as};
  std::vector<const Value*> inputs;
  if (!value.producer || (known.integers && tensor_of(*known.integers, known.type).has_value())) return inputs;
  for (const Value* input : value.producer->inputs) {
    if (input) inputs.push_back(input);
    if (value.producer->is("CastLike")) break;
  }
  return inputs;
}

void FactStore::fold(const Value& value) {
  Tensor tensor = constant_elements_ < kMaxHeldElements ? folded(value) : Tensor();
  if (tensor.has_value()) constant_elements_ += tensor.size();
  constants_[value] = std::move(tensor);
}

Tensor FactStore::folded(const Value& value) {
  const ValueFact& known = computed(value);
  if (known.integers) {
    Tensor tensor = tensor_of(*known.integers, known.type);
    if (tensor.has_value()) return tensor;
  }
  if (known.same_as) return constants_[*known.same_as];
  if (value.initializer) {
    Expected<Tensor> tensor = to_tensor(*value.initializer, tensors_);
    return tensor ? *std::move(tensor) : Tensor();
  }
  if (!value.producer) return {};
  const Node& node = *value.producer;
  if (node.is("Constant")) return constant_attribute(node, tensors_).value_or(Tensor());
  if (node.is("CastLike")) {
    const Expected<Tensor> cast = node.input(0) ? constants_[*node.inputs[0]].cast(known.type) : Tensor();
    return cast ? *cast : Tensor();
  }
  std::vector<Tensor> inputs;
  for (const Value* input : node.inputs) {
    inputs.push_back(input ? constants_[*input] : Tensor());
    if (input && !inputs.back().has_value()) return {};
  }
  Expected<std::vector<Tensor>> outputs = run_node(*node.proto, inputs, opsets(node));
  const size_t output = static_cast<size_t>(value.output);
  if (!outputs || output >= outputs->size()) return {};
  Tensor& result = (*outputs)[output];
  return result.has_value() && result.size() <= Facts::kMaxConstantElements ? std::move(result) : Tensor();
}

}  // namespace attn_opt
