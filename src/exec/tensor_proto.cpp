#include <bit>
#include <cstring>

#include "attn_opt/tensor.h"
#include "src/exec/elementwise/cast_only.h"
#include "src/io/tensor_bytes.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

static_assert(std::endian::native == std::endian::little, "tensor bytes are little-endian");

template <class To, class Field>
Expected<Tensor> from_field(const onnx::TensorProto& proto, Dims dims, const Field& field) {
  if (static_cast<int64_t>(field.size()) != element_count(dims)) {
    return fail(
        ErrorCode::kInvalidInput, proto.name(),
        "tensor holds " + std::to_string(field.size()) + " values, its dims ask for " + std::to_string(element_count(dims)));
  }
  Tensor tensor(data_type_of<To>(), std::move(dims));
  auto data = tensor.mutable_data<To>();
  for (int i = 0; i < field.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>)
      data[at].bits = static_cast<uint16_t>(field[i]);
    else if constexpr (std::is_same_v<To, bool>)
      data[at] = field[i] != 0;
    else
      data[at] = static_cast<To>(field[i]);
  }
  return tensor;
}

bool is_packed(DataType type) { return is_cast_only(type) && bits_per_element(type) < 8; }

/// Codes in int32_data: one an entry, but as raw_data has them in those types of which a byte holds some.
Expected<Tensor> from_codes(const onnx::TensorProto& proto, Dims dims) {
  const auto type = static_cast<DataType>(proto.data_type());
  const int bits = 8 % bits_per_element(type) == 0 ? bits_per_element(type) : 8;
  const auto per_entry = static_cast<uint64_t>(8 / bits);
  const uint64_t entries = (static_cast<uint64_t>(element_count(dims)) + per_entry - 1) / per_entry;
  if (static_cast<uint64_t>(proto.int32_data_size()) != entries) {
    return wrong_size(proto, static_cast<uint64_t>(proto.int32_data_size()), entries);
  }
  Tensor tensor(type, std::move(dims));
  std::vector<std::byte> packed;
  packed.reserve(entries);
  for (const int32_t entry : proto.int32_data()) packed.push_back(static_cast<std::byte>(entry));
  unpack(packed, bits, tensor.mutable_bytes());
  return tensor;
}

Expected<Tensor> from_fields(const onnx::TensorProto& proto, Dims dims) {
  switch (proto.data_type()) {
    case P::FLOAT: return from_field<float>(proto, std::move(dims), proto.float_data());
    case P::DOUBLE: return from_field<double>(proto, std::move(dims), proto.double_data());
    case P::FLOAT16: return from_field<Half>(proto, std::move(dims), proto.int32_data());
    case P::BFLOAT16: return from_field<BFloat16>(proto, std::move(dims), proto.int32_data());
    case P::BOOL: return from_field<bool>(proto, std::move(dims), proto.int32_data());
    case P::INT8: return from_field<int8_t>(proto, std::move(dims), proto.int32_data());
    case P::INT16: return from_field<int16_t>(proto, std::move(dims), proto.int32_data());
    case P::INT32: return from_field<int32_t>(proto, std::move(dims), proto.int32_data());
    case P::UINT8: return from_field<uint8_t>(proto, std::move(dims), proto.int32_data());
    case P::UINT16: return from_field<uint16_t>(proto, std::move(dims), proto.int32_data());
    case P::INT64: return from_field<int64_t>(proto, std::move(dims), proto.int64_data());
    case P::UINT32: return from_field<uint32_t>(proto, std::move(dims), proto.uint64_data());
    case P::UINT64: return from_field<uint64_t>(proto, std::move(dims), proto.uint64_data());
    case P::STRING: return from_field<std::string>(proto, std::move(dims), proto.string_data());
    default: return from_codes(proto, std::move(dims));
  }
}

/// A byte of a BOOL tensor that is neither 0 nor 1 may not be read as a C++ bool.
bool holds_plain_bools(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) {
    if (std::to_integer<unsigned>(b) > 1) return false;
  }
  return true;
}

}  // namespace

Expected<Tensor> to_tensor(const onnx::TensorProto& proto, const TensorStore& store) {
  const auto type = static_cast<DataType>(proto.data_type());
  Dims dims(proto.dims().begin(), proto.dims().end());
  const int64_t count = element_count(dims);
  if (count < 0) return fail(ErrorCode::kInvalidInput, proto.name(), "tensor has invalid dims");
  const bool is_string = type == onnx::TensorProto::STRING;
  if (!is_string && element_size(type) == 0) {
    return fail(ErrorCode::kUnsupported, proto.name(), "unsupported element type " + type_name(type));
  }
  if (is_string) return from_fields(proto, std::move(dims));
  ATTN_OPT_TRY(const auto bytes, store.bytes(proto));
  if (bytes.empty()) return count == 0 ? Tensor(type, std::move(dims)) : from_fields(proto, std::move(dims));
  ATTN_OPT_TRY(const uint64_t size, raw_byte_size(proto));
  if (bytes.size() != size) return wrong_size(proto, bytes.size(), size);
  if (is_packed(type)) {
    Tensor tensor(type, std::move(dims));
    unpack(bytes, bits_per_element(type), tensor.mutable_bytes());
    return tensor;
  }
  if (type == onnx::TensorProto::BOOL && !holds_plain_bools(bytes)) {
    Tensor tensor(type, std::move(dims));
    const auto data = tensor.mutable_data<bool>();
    for (size_t i = 0; i < data.size(); ++i) data[i] = bytes[i] != std::byte{0};
    return tensor;
  }
  return Tensor::view(type, std::move(dims), bytes);
}

onnx::TensorProto to_proto(const Tensor& tensor, const std::string& name) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(tensor.type());
  for (const int64_t dim : tensor.dims()) proto.add_dims(dim);
  if (tensor.type() == onnx::TensorProto::STRING) {
    for (const auto& text : tensor.data<std::string>()) proto.add_string_data(text);
  } else {
    const auto bytes = tensor.bytes();
    if (is_packed(tensor.type()))
      proto.set_raw_data(pack(bytes, bits_per_element(tensor.type())));
    else
      proto.set_raw_data(bytes.data(), bytes.size());
  }
  return proto;
}

}  // namespace attn_opt
