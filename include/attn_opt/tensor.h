// A dense tensor in memory, as the executor computes with it.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attn_opt/model.h"
#include "attn_opt/status.h"

namespace attn_opt {

/// Element type: onnx.TensorProto.DataType.
using DataType = onnx::TensorProto_DataType;
using Dims = std::vector<int64_t>;

/// Product of DIMS; -1 if one is negative or the product passes 2^62.
int64_t element_count(std::span<const int64_t> dims);
/// Bytes per element; 0 for STRING and UNDEFINED; sub-byte types are not held in Tensors.
size_t element_size(DataType type);
/// FLOAT, DOUBLE, FLOAT16, BFLOAT16.
bool is_floating(DataType type);
/// "float32", "int64", ... for messages.
std::string type_name(DataType type);

/// IEEE half and bfloat16 as storage: arithmetic converts to float and rounds to nearest even on the way back.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  operator float() const;
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  operator float() const;
};

/// The DataType whose elements C++ type T holds.
template <class T>
constexpr DataType data_type_of();

/// Row-major, contiguous. Copies share the buffer; a kernel writes only into tensors it made.
class Tensor {
 public:
  Tensor() = default;  ///< no value: an omitted optional input
  /// Zero-filled. DIMS must have a valid element_count (callers check against their limit first).
  Tensor(DataType type, Dims dims);

  template <class T>
  static Tensor of(Dims dims, const std::vector<T>& values);
  template <class T>
  static Tensor scalar(T value);

  bool has_value() const { return type_ != onnx::TensorProto::UNDEFINED; }
  DataType type() const { return type_; }
  const Dims& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t size() const { return size_; }  ///< elements

  template <class T>
  std::span<const T> data() const;  ///< T must be the type's own C++ type (bool for BOOL)
  template <class T>
  std::span<T> mutable_data();
  std::span<const std::byte> bytes() const;
  std::span<std::byte> mutable_bytes();

  /// The same elements under other dims of the same element count; shares the buffer.
  Tensor reshaped(Dims dims) const;
  /// Converted element by element as ONNX Cast (saturate = 1) does; shares the buffer when the type is the same.
  Expected<Tensor> cast(DataType to) const;

 private:
  DataType type_ = onnx::TensorProto::UNDEFINED;
  Dims dims_;
  int64_t size_ = 0;
  std::shared_ptr<std::byte[]> buffer_;
  std::shared_ptr<std::vector<std::string>> strings_;
};

/// Reads PROTO through STORE, typed fields and raw bytes alike.
Expected<Tensor> to_tensor(const onnx::TensorProto& proto, const TensorStore& store);
/// Writes raw_data (string_data for strings).
onnx::TensorProto to_proto(const Tensor& tensor, const std::string& name = {});

}  // namespace attn_opt
