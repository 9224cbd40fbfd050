#include "src/exec/value_proto.h"

#include <onnx/onnx-data.pb.h>

#include <limits>

namespace attn_opt {
namespace {

Expected<Tensor> owned(const onnx::TensorProto& proto) {
  if (proto.data_type() == onnx::TensorProto::UNDEFINED) {
    return fail(ErrorCode::kInvalidInput, proto.name(), "is not a TensorProto");
  }
  ATTN_OPT_TRY(Tensor view, to_tensor(proto, inline_tensors()));
  if (view.type() == onnx::TensorProto::STRING) return view;
  Tensor copy(view.type(), view.dims());
  std::ranges::copy(view.bytes(), copy.mutable_bytes().begin());
  return copy;
}

Expected<Tensor> owned(const onnx::SequenceProto& proto) {
  if (proto.elem_type() != onnx::SequenceProto::TENSOR && proto.elem_type() != onnx::SequenceProto::UNDEFINED) {
    return fail(ErrorCode::kUnsupported, proto.name(), "unsupported: a sequence of other things than tensors");
  }
  std::vector<Tensor> elements;
  for (const auto& element : proto.tensor_values()) {
    ATTN_OPT_TRY(Tensor tensor, owned(element));
    elements.push_back(std::move(tensor));
  }
  return Tensor::sequence(std::move(elements));
}

Expected<Tensor> owned(const onnx::OptionalProto& proto) {
  if (proto.has_tensor_value()) return owned(proto.tensor_value());
  if (proto.has_sequence_value()) return owned(proto.sequence_value());
  return Tensor::empty_optional();
}

template <class Proto>
Expected<NamedValue> parse_as(std::span<const std::byte> bytes) {
  constexpr size_t kMostBytes = std::numeric_limits<int>::max();  // that protobuf reads
  Proto proto;
  if (bytes.size() > kMostBytes || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(ErrorCode::kInvalidInput, "", "is not a " + Proto::descriptor()->name());
  }
  ATTN_OPT_TRY(Tensor value, owned(proto));
  return NamedValue{proto.name(), std::move(value)};
}

}  // namespace

Expected<NamedValue> parse_value(std::span<const std::byte> bytes, const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return parse_as<onnx::SequenceProto>(bytes);
  if (type.has_optional_type()) return parse_as<onnx::OptionalProto>(bytes);
  if (type.has_tensor_type()) return parse_as<onnx::TensorProto>(bytes);
  return fail(ErrorCode::kUnsupported, "", "unsupported: neither tensors nor sequences of them");
}

}  // namespace attn_opt
