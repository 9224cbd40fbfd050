#include "src/verify/value_draw.h"

#include <algorithm>
#include <array>

namespace attn_opt {
namespace {

/// Of rows. Squares of the largest are numbers of half precision.
constexpr std::array<double, 6> kRowSizes = {1, 1e-3, 30, 0, 1e-5, 50};
constexpr int64_t kMostInteger = 6;

}  // namespace

ValueDraw::ValueDraw(DrawKind kind, DataType type, const Dims& dims, RandomNumbers random)
    : kind_(kind), type_(type), columns_(dims.empty() ? 1 : std::max<int64_t>(1, dims.back())), random_(random) {}

double ValueDraw::operator()(int64_t index) {
  const bool is_wide = kind_ == DrawKind::kWide;
  if (is_floating(type_)) {
    const auto row = static_cast<size_t>(index / columns_);
    return random_.bell() * (is_wide ? kRowSizes[row % kRowSizes.size()] : 1);
  }
  const bool may_be_larger = is_wide && type_ != onnx::TensorProto::BOOL;
  const bool is_signed = type_ == onnx::TensorProto::INT64 || type_ == onnx::TensorProto::INT32 ||
                         type_ == onnx::TensorProto::INT16 || type_ == onnx::TensorProto::INT8;
  if (!may_be_larger) return static_cast<double>(random_.below(2));
  return static_cast<double>(is_signed ? random_.below(2 * kMostInteger + 1) - kMostInteger : random_.below(kMostInteger));
}

}  // namespace attn_opt
