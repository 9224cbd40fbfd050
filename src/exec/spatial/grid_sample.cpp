// GridSample: values of X at the positions that a grid gives, from -1 to 1 along each axis.
#include <cmath>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/spatial/sampling.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct GridMode {
  Interpolation interpolation = Interpolation::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

Expected<GridMode> read_grid_mode(const KernelContext& context) {
  GridMode grid;
  const std::string mode = context.attribute_string("mode", "linear");
  if (mode == "nearest") {
    grid.interpolation = Interpolation::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    grid.interpolation = Interpolation::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return context.invalid("mode is " + mode);
  }
  const std::string padding = context.attribute_string("padding_mode", "zeros");
  if (padding == "border") {
    grid.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    grid.padding = Padding::kReflection;
  } else if (padding != "zeros") {
    return context.invalid("padding_mode is " + padding);
  }
  grid.align_corners = context.attribute_int("align_corners", 0) != 0;
  return grid;
}

/// One axis of X.
class GridAxis {
 public:
  GridAxis(const GridMode& mode, int64_t extent)
      : mode_(mode),
        extent_(extent),
        lowest_(mode.align_corners ? 0 : -0.5),
        highest_(static_cast<double>(extent) - (mode.align_corners ? 1 : 0.5)) {}

  /// The elements that NORMALIZED, a coordinate of the grid, lies between.
  AxisTaps taps(double normalized) const {
    const auto extent = static_cast<double>(extent_);
    double x = mode_.align_corners ? (normalized + 1) / 2 * (extent - 1) : ((normalized + 1) * extent - 1) / 2;
    if (mode_.interpolation == Interpolation::kNearest) x = std::nearbyint(x);
    if (!(x >= lowest_ && x <= highest_)) x = brought_in(x);
    AxisTaps taps;
    if (!(x > -2 && x < extent + 2)) return taps;
    const double below = std::floor(x);
    const auto index = static_cast<int64_t>(below);
    switch (mode_.interpolation) {
      case Interpolation::kNearest: add(taps, index, 1); break;
      case Interpolation::kLinear:
        add(taps, index, 1 - (x - below));
        add(taps, index + 1, x - below);
        break;
      case Interpolation::kCubic:
        for (int64_t i = -1; i <= 2; ++i) {
          add(taps, index + i, cubic_weight(x - below - static_cast<double>(i), -0.75));
        }
    }
    return taps;
  }

 private:
  /// X outside of the borders, as the padding takes it; what is not a number becomes the first element.
  double brought_in(double x) const {
    if (mode_.padding == Padding::kZeros) return x;
    if (mode_.padding == Padding::kReflection) return reflected(x);
    return x > 0 ? std::min(x, static_cast<double>(extent_ - 1)) : 0;
  }

  double reflected(double x) const {
    const double range = highest_ - lowest_;
    if (!std::isfinite(x) || range <= 0) return 0;
    const double past = std::fmod(std::abs(x - lowest_), 2 * range);
    return lowest_ + (past <= range ? past : 2 * range - past);
  }

  void add(AxisTaps& taps, int64_t index, double weight) const {
    if (index < 0 || index >= extent_) {
      if (mode_.padding == Padding::kZeros) return;
      index = static_cast<int64_t>(brought_in(static_cast<double>(index)));
    }
    taps.add(index, weight);
  }

  GridMode mode_;
  int64_t extent_;
  double lowest_, highest_;  ///< borders of the first and the last element
};

/// Calls visit(n, i, taps) for the I-th position of image N of GRID, of doubles.
template <class Visit>
void visit_grid(const GridMode& mode, const Tensor& x, const Tensor& grid, Visit&& visit) {
  const Dims spatial(x.dims().begin() + 2, x.dims().end());
  const Dims strides = strides_of(spatial);
  const size_t rank = spatial.size();
  std::vector<GridAxis> axes;
  for (const int64_t extent : spatial) axes.emplace_back(mode, extent);
  const int64_t positions = grid.size() / (grid.dims()[0] * grid.dims().back());
  const double* at = grid.data<double>().data();
  std::vector<AxisTaps> along(rank);
  std::vector<Tap> taps;
  for (int64_t n = 0; n < grid.dims()[0]; ++n) {
    for (int64_t i = 0; i < positions; ++i, at += rank) {
      for (size_t axis = 0; axis < rank; ++axis) along[axis] = axes[axis].taps(at[rank - 1 - axis]);
      combine(along, strides, taps);
      visit(n, i, std::span<const Tap>(taps));
    }
  }
}

Expected<Tensor> sampled(const KernelContext& context, const GridMode& mode, const Tensor& x, const Tensor& grid, Dims dims) {
  const int64_t channels = x.dims()[1];
  const int64_t positions = element_count(std::span(dims).subspan(2));
  const int64_t channel_size = element_count(std::span(x.dims()).subspan(2));
  const auto each = [&](auto&& set) {
    visit_grid(mode, x, grid, [&](int64_t n, int64_t i, std::span<const Tap> taps) {
      for (int64_t c = n * channels; c < (n + 1) * channels; ++c) {
        set(c * positions + i, c * channel_size, taps);
      }
    });
  };
  if (mode.interpolation == Interpolation::kNearest) {
    ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), std::move(dims)));
    return dispatch_cells(context, x.type(), [&]<class T>() -> Expected<Tensor> {
      const T* from = cells<T>(x);
      T* to = mutable_cells<T>(out);
      each([&](int64_t i, int64_t channel, std::span<const Tap> taps) {
        if (!taps.empty()) to[i] = from[channel + taps[0].offset];
      });
      return std::move(out);
    });
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, std::move(dims)));
  ATTN_OPT_TRY(const Tensor values, in_double(context, x));
  const double* from = values.data<double>().data();
  double* to = out.mutable_data<double>().data();
  each([&](int64_t i, int64_t channel, std::span<const Tap> taps) { to[i] = weighted_sum(from + channel, taps); });
  return out.cast(x.type());
}

Outputs grid_sample(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const GridMode mode, read_grid_mode(context));
  if (!is_floating(context.input(1).type())) return context.invalid("the grid is not floating");
  ATTN_OPT_TRY(const Tensor grid, in_double(context, context.input(1)));
  if (x.rank() < 3 || grid.rank() != x.rank() || grid.dims()[0] != x.dims()[0] || grid.dims().back() != x.rank() - 2) {
    return context.invalid("a grid of shape " + print_dims(grid.dims()) + " does not fit input of shape " +
                           print_dims(x.dims()));
  }
  Dims dims{x.dims()[0], x.dims()[1]};
  dims.insert(dims.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  if (element_count(dims) == 0) return single(context.allocate(x.type(), std::move(dims)));
  if (x.size() == 0) return context.invalid("nothing to sample");
  return single(sampled(context, mode, x, grid, std::move(dims)));
}

}  // namespace

void register_grid_sample(KernelRegistry& registry) { registry.add("GridSample", 16, 22, grid_sample); }

}  // namespace attn_opt
