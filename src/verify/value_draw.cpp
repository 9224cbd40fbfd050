#include "src/verify/value_draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "src/trial/infinity.h"

namespace attn_opt {
namespace {

/// Of rows. Squares of the largest are numbers of half precision.
constexpr std::array<double, 6> kRowSizes = {1, 1e-3, 30, 0, 1e-5, 50};
constexpr int64_t kMostInteger = 6;
/// Lesser numbers bound nothing that is drawn otherwise.
constexpr double kLeastLimit = 2;
/// Sums of what is drawn are numbers of the type.
constexpr double kFarFromEnd = 64;
/// Of so many elements one is NaN and one infinite.
constexpr int64_t kEach = 5;

}  // namespace

ValueDraw::ValueDraw(DrawKind kind, DataType type, const Dims& dims, const std::vector<double>& numbers, RandomNumbers random)
    : kind_(kind),
      type_(type),
      columns_(dims.empty() ? 1 : std::max<int64_t>(1, dims.back())),
      sizes_(kRowSizes.begin(), kRowSizes.end()),
      random_(random) {
  const double most = largest_finite(type) / kFarFromEnd;
  for (const double number : numbers)
    if (std::abs(number) >= kLeastLimit && std::abs(number) < most) sizes_.push_back(2 * std::abs(number));
}

double ValueDraw::number(int64_t index) {
  if (kind_ == DrawKind::kNoNumbers && index % kEach == 1) return std::numeric_limits<double>::quiet_NaN();
  if (kind_ == DrawKind::kNoNumbers && index % kEach == 3) return index % 2 ? kInfinity : -kInfinity;
  const auto row = static_cast<size_t>(index / columns_);
  const double size = kind_ == DrawKind::kWide        ? kRowSizes[row % kRowSizes.size()]
                      : kind_ == DrawKind::kScattered ? sizes_[static_cast<size_t>(random_.below(std::ssize(sizes_)))]
                                                      : 1;
  return random_.bell() * size;
}

double ValueDraw::operator()(int64_t index) {
  if (is_floating(type_)) return number(index);
  const bool is_wide = kind_ == DrawKind::kWide || kind_ == DrawKind::kScattered;
  const bool may_be_larger = is_wide && type_ != onnx::TensorProto::BOOL;
  const bool is_signed = type_ == onnx::TensorProto::INT64 || type_ == onnx::TensorProto::INT32 ||
                         type_ == onnx::TensorProto::INT16 || type_ == onnx::TensorProto::INT8;
  if (!may_be_larger) return static_cast<double>(random_.below(2));
  return static_cast<double>(is_signed ? random_.below(2 * kMostInteger + 1) - kMostInteger : random_.below(kMostInteger));
}

}  // namespace attn_opt
