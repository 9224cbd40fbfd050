#include "src/exec/attention/attention_rows.h"

#include <bit>

#include "src/exec/dispatch.h"
#include "src/exec/vector_clones.h"

namespace attn_opt {
namespace {

/// Without branches, unlike Half's own conversion: 2^112 takes the exponent from Half's bias to float's.
ATTN_OPT_VECTOR_CLONES void widen(const Half* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t magnitude = from[i].bits & 0x7fffu;
    const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
    const uint32_t special = 0x7f800000u | (magnitude << 13);
    const uint32_t sign = static_cast<uint32_t>(from[i].bits & 0x8000u) << 16;
    to[i] = std::bit_cast<float>((magnitude >= 0x7c00u ? special : finite) | sign);
  }
}

ATTN_OPT_VECTOR_CLONES void widen(const BFloat16* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i].bits) << 16);
}

template <class T, class C>
void convert(const T* from, int64_t count, C* to) {
  if constexpr (kIsHalf<T> && std::is_same_v<C, float>) {
    widen(from, count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(static_cast<Compute<T>>(from[i]));
  }
}

/// Calls visitor<T>() for the floating TYPE.
template <class Visitor>
void visit_floating(DataType type, Visitor&& visitor) {
  [&]<class... Ts>(TypeList<Ts...>) {
    (void)((data_type_of<Ts>() == type && (visitor.template operator()<Ts>(), true)) || ...);
  }(FloatTypes{});
}

}  // namespace

template <class C>
void convert_rows(const HeadRows& rows, int64_t offset, int64_t count, int64_t width, C* buffer) {
  visit_floating(rows.type, [&]<class T>() {
    const T* from = reinterpret_cast<const T*>(rows.data) + offset;
    for (int64_t i = 0; i < count; ++i) convert(from + i * rows.layout.row_stride, width, buffer + i * width);
  });
}

template <class C>
void store_row(const C* from, int64_t count, Tensor& to, int64_t offset) {
  visit_floating(to.type(), [&]<class T>() {
    T* row = to.mutable_data<T>().data() + offset;
    for (int64_t i = 0; i < count; ++i) row[i] = round_to<T>(from[i]);
  });
}

template void convert_rows(const HeadRows&, int64_t, int64_t, int64_t, float*);
template void convert_rows(const HeadRows&, int64_t, int64_t, int64_t, double*);
template void store_row(const float*, int64_t, Tensor&, int64_t);
template void store_row(const double*, int64_t, Tensor&, int64_t);

}  // namespace attn_opt
