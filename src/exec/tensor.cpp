#include "attn_opt/tensor.h"

#include <cstring>

#include "src/exec/spare_memory.h"

namespace attn_opt {
namespace {

/// At least 1: data() of an empty tensor is a valid pointer.
size_t bytes_for(int64_t count, DataType type) { return std::max<size_t>(1, static_cast<size_t>(count) * element_size(type)); }

}  // namespace

int64_t element_count(std::span<const int64_t> dims) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t count = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return -1;
    if (dim == 0)
      empty = true;
    else if (count > kMost / dim)
      return -1;
    else
      count *= dim;
  }
  return empty ? 0 : count;
}

size_t element_size(DataType type) {
  switch (type) {
    case onnx::TensorProto::BOOL:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8: return 1;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16: return 2;
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32: return 4;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64: return 8;
    default: return is_cast_only(type) ? 1 : 0;
  }
}

double largest_finite(DataType type) {
  switch (type) {
    case onnx::TensorProto::DOUBLE: return std::numeric_limits<double>::max();
    case onnx::TensorProto::FLOAT16: return 65504;
    case onnx::TensorProto::BFLOAT16: return 0x1.fep127;
    default: return std::numeric_limits<float>::max();
  }
}

double lowest_finite(DataType type) { return -largest_finite(type); }

double rounded(double number, DataType type) {
  if (type == onnx::TensorProto::FLOAT) return static_cast<float>(number);
  if (type == onnx::TensorProto::FLOAT16) return Half(static_cast<float>(number));
  if (type == onnx::TensorProto::BFLOAT16) return BFloat16(static_cast<float>(number));
  return number;
}

bool is_floating(DataType type) {
  return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::DOUBLE || type == onnx::TensorProto::FLOAT16 ||
         type == onnx::TensorProto::BFLOAT16;
}

std::string type_name(DataType type) {
  switch (type) {
    case onnx::TensorProto::FLOAT: return "float32";
    case onnx::TensorProto::DOUBLE: return "float64";
    default: break;
  }
  std::string name = onnx::TensorProto_DataType_IsValid(type) ? onnx::TensorProto_DataType_Name(type)
                                                              : "type " + std::to_string(static_cast<int>(type));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

Tensor::Tensor(DataType type, Dims dims) : type_(type), dims_(std::move(dims)), size_(element_count(dims_)) {
  if (type_ == onnx::TensorProto::STRING) {
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(size_));
  } else {
    buffer_ = SpareMemory::take_zeroed(bytes_for(size_, type_));
  }
}

Tensor Tensor::unset(DataType type, Dims dims) {
  if (type == onnx::TensorProto::STRING) return Tensor(type, std::move(dims));
  Tensor tensor;
  tensor.type_ = type;
  tensor.dims_ = std::move(dims);
  tensor.size_ = element_count(tensor.dims_);
  tensor.buffer_ = SpareMemory::take(bytes_for(tensor.size_, type));
  return tensor;
}

Tensor Tensor::view(DataType type, Dims dims, std::span<const std::byte> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % element_size(type) != 0 || bytes.empty()) {
    Tensor copy(type, std::move(dims));
    if (!bytes.empty()) std::memcpy(copy.buffer_.get(), bytes.data(), bytes.size());
    return copy;
  }
  Tensor tensor;
  tensor.type_ = type;
  tensor.dims_ = std::move(dims);
  tensor.size_ = element_count(tensor.dims_);
  // No owner: see mutable_bytes().
  tensor.buffer_ = std::shared_ptr<std::byte[]>(std::shared_ptr<std::byte[]>(), const_cast<std::byte*>(bytes.data()));
  return tensor;
}

Tensor Tensor::sequence(std::vector<Tensor> elements) {
  Tensor tensor;
  tensor.elements_ = std::make_shared<const std::vector<Tensor>>(std::move(elements));
  return tensor;
}

Tensor Tensor::empty_optional() {
  Tensor tensor;
  tensor.is_empty_optional_ = true;
  return tensor;
}

std::span<const std::byte> Tensor::bytes() const {
  return {buffer_.get(), buffer_ ? static_cast<size_t>(size_) * element_size(type_) : 0};
}

std::span<std::byte> Tensor::mutable_bytes() {
  const bool is_view = buffer_ && buffer_.use_count() == 0;
  if (is_view) {
    // What is viewed may be a model's weights.
    const std::span<const std::byte> viewed = bytes();
    const auto own = SpareMemory::take(viewed.size());
    std::ranges::copy(viewed, own.get());
    buffer_ = own;
  }
  return {buffer_.get(), buffer_ ? static_cast<size_t>(size_) * element_size(type_) : 0};
}

size_t Tensor::exclusive_bytes() const {
  if (strings_.use_count() != 1) return buffer_.use_count() == 1 ? bytes().size() : 0;
  size_t total = 0;
  for (const std::string& text : *strings_) total += sizeof(std::string) + text.size();
  return total;
}

Tensor Tensor::reshaped(Dims dims) const {
  Tensor tensor = *this;
  tensor.dims_ = std::move(dims);
  return tensor;
}

}  // namespace attn_opt
