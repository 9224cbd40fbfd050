// A dense tensor in memory, as the executor computes with it.
#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "attn_opt/model.h"
#include "attn_opt/status.h"

namespace attn_opt {

/// Element type: onnx.TensorProto.DataType.
using DataType = onnx::TensorProto_DataType;
/// Sizes of the axes, outermost first.
using Dims = std::vector<int64_t>;

/// Product of DIMS; -1 if one is negative or the product passes 2^62.
int64_t element_count(std::span<const int64_t> dims);
/// Bytes per element in a Tensor; 0 for STRING, UNDEFINED and complex types.
size_t element_size(DataType type);
/// FLOAT8*, FLOAT6*, FLOAT4E2M1, INT4, UINT4, INT2, UINT2: operators only cast, quantize and move them. A Tensor holds each
/// element's code in a byte of its own.
bool is_cast_only(DataType type);
/// FLOAT, DOUBLE, FLOAT16, BFLOAT16.
bool is_floating(DataType type);
/// The largest finite value of a floating TYPE (of FLOAT, if it is none), as a double; infinity is above it.
double largest_finite(DataType type);
/// The lowest one, -largest_finite(TYPE); -inf is below it.
double lowest_finite(DataType type);
/// NUMBER as floating TYPE holds it.
double rounded(double number, DataType type);
/// "float32", "int64", ... for messages.
std::string type_name(DataType type);

/// IEEE half and bfloat16 as storage: arithmetic converts to float and rounds to nearest even on the way back.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  operator float() const;
};
/// A BFLOAT16 element: float with 7 bits of fraction.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  operator float() const;
};

/// The DataType whose elements C++ type T holds.
template <class T>
constexpr DataType data_type_of();

/// Attributes of ONNX Cast for types that it says more of.
struct CastRules {
  enum class ExponentRounding { kUp, kDown, kNearest };
  bool saturate = true;  ///< beyond the range of a FLOAT8 type: its largest value, else NaN or infinity
  ExponentRounding exponent_rounding = ExponentRounding::kUp;  ///< to FLOAT8E8M0
};

/// Row-major, contiguous. Copies share the buffer; a kernel writes only into tensors it made.
class Tensor {
 public:
  Tensor() = default;  ///< no value: an omitted optional input
  /// Zero-filled. DIMS must have a valid element_count (callers check against their limit first).
  Tensor(DataType type, Dims dims);
  /// As that, but what its elements are is not defined until they are written.
  static Tensor unset(DataType type, Dims dims);

  /// Elements that lie at BYTES, which must outlive every copy of the tensor; copied only when they are not aligned.
  /// BYTES must be of the size that TYPE and DIMS ask for. Not for strings.
  static Tensor view(DataType type, Dims dims, std::span<const std::byte> bytes);

  template <class T>
  static Tensor of(Dims dims, const std::vector<T>& values);
  template <class T>
  static Tensor scalar(T value);

  /// What sequence operators pass between each other: it has neither type nor data of its own.
  static Tensor sequence(std::vector<Tensor> elements);
  /// An optional that holds nothing; one that holds a tensor or a sequence is that tensor or sequence.
  static Tensor empty_optional();

  bool has_value() const { return type_ != onnx::TensorProto::UNDEFINED || is_sequence() || is_empty_optional(); }
  bool is_empty_optional() const { return is_empty_optional_; }
  bool is_sequence() const { return elements_ != nullptr; }
  const std::vector<Tensor>& elements() const { return *elements_; }  ///< of a sequence
  DataType type() const { return type_; }
  const Dims& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t size() const { return size_; }  ///< elements

  template <class T>
  std::span<const T> data() const;  ///< T must be the type's own C++ type (bool for BOOL)
  /// Tensors that share the buffer see what is written; a view gets a buffer of its own first.
  template <class T>
  std::span<T> mutable_data();
  std::span<const std::byte> bytes() const;
  std::span<std::byte> mutable_bytes();
  /// Bytes that go away with this tensor: 0 for a view and for a buffer that other tensors share.
  size_t exclusive_bytes() const;

  /// The same elements under other dims of the same element count; shares the buffer.
  Tensor reshaped(Dims dims) const;
  /// Converted element by element as ONNX Cast does; shares the buffer when the type is the same.
  Expected<Tensor> cast(DataType to, const CastRules& rules = {}) const;

 private:
  DataType type_ = onnx::TensorProto::UNDEFINED;
  Dims dims_;
  int64_t size_ = 0;
  std::shared_ptr<std::byte[]> buffer_;
  std::shared_ptr<std::vector<std::string>> strings_;
  std::shared_ptr<const std::vector<Tensor>> elements_;
  bool is_empty_optional_ = false;
};

template <class T>
constexpr DataType data_type_of() {
  using P = onnx::TensorProto;
  if constexpr (std::is_same_v<T, float>)
    return P::FLOAT;
  else if constexpr (std::is_same_v<T, double>)
    return P::DOUBLE;
  else if constexpr (std::is_same_v<T, Half>)
    return P::FLOAT16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return P::BFLOAT16;
  else if constexpr (std::is_same_v<T, bool>)
    return P::BOOL;
  else if constexpr (std::is_same_v<T, int8_t>)
    return P::INT8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return P::INT16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return P::INT32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return P::INT64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return P::UINT8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return P::UINT16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return P::UINT32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return P::UINT64;
  else {
    static_assert(std::is_same_v<T, std::string>, "not the element type of a tensor");
    return P::STRING;
  }
}

template <class T>
std::span<const T> Tensor::data() const {
  if constexpr (std::is_same_v<T, std::string>)
    return *strings_;
  else
    return {reinterpret_cast<const T*>(buffer_.get()), static_cast<size_t>(size_)};
}

template <class T>
std::span<T> Tensor::mutable_data() {
  if constexpr (std::is_same_v<T, std::string>)
    return *strings_;
  else
    return {reinterpret_cast<T*>(mutable_bytes().data()), static_cast<size_t>(size_)};
}

template <class T>
Tensor Tensor::of(Dims dims, const std::vector<T>& values) {
  Tensor tensor(data_type_of<T>(), std::move(dims));
  auto data = tensor.mutable_data<T>();
  std::copy_n(values.begin(), std::min(values.size(), data.size()), data.begin());
  return tensor;
}

template <class T>
Tensor Tensor::scalar(T value) {
  Tensor tensor(data_type_of<T>(), {});
  tensor.mutable_data<T>()[0] = std::move(value);
  return tensor;
}

/// Reads PROTO through STORE, typed fields and raw bytes alike.
Expected<Tensor> to_tensor(const onnx::TensorProto& proto, const TensorStore& store);
/// Writes raw_data (string_data for strings), packed where an element has less than 8 bits.
onnx::TensorProto to_proto(const Tensor& tensor, const std::string& name = {});

}  // namespace attn_opt
