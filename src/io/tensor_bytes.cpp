#include "src/io/tensor_bytes.h"

#include <algorithm>

#include "attn_opt/model.h"

namespace attn_opt {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 56;

/// -1: a negative dimension or too many elements.
int64_t count_elements(const onnx::TensorProto& tensor) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (const int64_t dim : tensor.dims()) {
    if (dim < 0) return -1;
    empty = empty || dim == 0;
    overflow = overflow || __builtin_mul_overflow(count, dim, &count) || count > kMaxElements;
  }
  if (empty) return 0;
  return overflow ? -1 : count;
}

bool has_typed_values(const onnx::TensorProto& tensor) {
  return tensor.float_data_size() + tensor.int32_data_size() + tensor.int64_data_size() + tensor.double_data_size() +
             tensor.uint64_data_size() + tensor.string_data_size() >
         0;
}

class InlineTensors final : public TensorStore {
 public:
  Expected<std::span<const std::byte>> bytes(const onnx::TensorProto& tensor) const override { return inline_bytes(tensor); }
};

}  // namespace

int bits_per_element(int data_type) {
  using onnx::TensorProto;
  switch (data_type) {
    case TensorProto::UINT2:
    case TensorProto::INT2: return 2;
    case TensorProto::UINT4:
    case TensorProto::INT4:
    case TensorProto::FLOAT4E2M1: return 4;
    case TensorProto::FLOAT6E2M3:
    case TensorProto::FLOAT6E3M2: return 6;
    case TensorProto::UINT8:
    case TensorProto::INT8:
    case TensorProto::BOOL:
    case TensorProto::FLOAT8E4M3FN:
    case TensorProto::FLOAT8E4M3FNUZ:
    case TensorProto::FLOAT8E5M2:
    case TensorProto::FLOAT8E5M2FNUZ:
    case TensorProto::FLOAT8E8M0: return 8;
    case TensorProto::UINT16:
    case TensorProto::INT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16: return 16;
    case TensorProto::FLOAT:
    case TensorProto::INT32:
    case TensorProto::UINT32: return 32;
    case TensorProto::DOUBLE:
    case TensorProto::INT64:
    case TensorProto::UINT64:
    case TensorProto::COMPLEX64: return 64;
    case TensorProto::COMPLEX128: return 128;
    default: return 0;
  }
}

std::string tensor_name(const onnx::TensorProto& tensor) { return "tensor '" + tensor.name() + "'"; }

Expected<uint64_t> raw_byte_size(const onnx::TensorProto& tensor) {
  const int bits = bits_per_element(tensor.data_type());
  if (bits == 0) {
    return fail(ErrorCode::kInvalidInput, tensor_name(tensor),
                "data type " + std::to_string(tensor.data_type()) + " has no raw bytes");
  }
  const int64_t elements = count_elements(tensor);
  if (elements < 0) return fail(ErrorCode::kInvalidInput, tensor_name(tensor), "dimensions are negative or too large");
  return static_cast<uint64_t>(elements) / 8 * bits + (static_cast<uint64_t>(elements) % 8 * bits + 7) / 8;
}

tl::unexpected<Error> wrong_size(const onnx::TensorProto& tensor, uint64_t size, uint64_t expected) {
  return fail(ErrorCode::kInvalidInput, tensor_name(tensor),
              "has " + std::to_string(size) + " bytes; its dimensions and type ask for " + std::to_string(expected));
}

Expected<std::span<const std::byte>> inline_bytes(const onnx::TensorProto& tensor) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    return fail(ErrorCode::kInvalidInput, tensor_name(tensor), "its external data is not part of the loaded model");
  }
  const std::string& raw = tensor.raw_data();
  if (raw.empty() && has_typed_values(tensor)) return std::span<const std::byte>();
  if (tensor.data_type() == onnx::TensorProto::STRING && raw.empty()) {
    if (count_elements(tensor) == 0) return std::span<const std::byte>();
    return fail(ErrorCode::kInvalidInput, tensor_name(tensor), "has no values");
  }
  ATTN_OPT_TRY(const uint64_t size, raw_byte_size(tensor));
  if (raw.size() != size) return wrong_size(tensor, raw.size(), size);
  return std::as_bytes(std::span(raw));
}

const TensorStore& inline_tensors() {
  static const InlineTensors store;
  return store;
}

int opset_version(const onnx::ModelProto& proto, const std::string& domain) {
  const auto canonical = [](const std::string& name) { return name == "ai.onnx" ? std::string() : name; };
  int version = 0;
  for (const auto& import : proto.opset_import()) {
    if (canonical(import.domain()) == canonical(domain))
      version = static_cast<int>(std::clamp<int64_t>(import.version(), 0, INT32_MAX));
  }
  return version;
}

}  // namespace attn_opt
