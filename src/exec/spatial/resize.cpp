// Resize and Upsample: interpolation is separable, so one axis is resized after the other.
#include <cmath>
#include <limits>
#include <numeric>

#include "src/exec/families.h"
#include "src/exec/layout/copy.h"
#include "src/exec/spatial/resize_axis.h"

namespace attn_opt {
namespace {

/// The inputs of a node, wherever its version has them.
struct Request {
  std::vector<int64_t> axes;
  std::vector<double> scales, roi;
  std::vector<int64_t> sizes;
};

Expected<Request> read_request(const KernelContext& context) {
  Request request;
  const bool upsample = context.node.op_type() == "Upsample";
  const size_t scales_at = upsample || context.version < 11 ? 1 : 2;
  request.axes = context.attribute_ints("axes");
  if (request.axes.empty()) {
    request.axes.resize(context.input(0).dims().size());
    std::iota(request.axes.begin(), request.axes.end(), 0);
  }
  for (int64_t& axis : request.axes) {
    ATTN_OPT_TRY(axis, context.axis(axis, context.input(0).rank()));
  }
  if (upsample && context.version == 1) {
    request.scales = {1, 1, context.attribute_float("height_scale", 0), context.attribute_float("width_scale", 0)};
  } else if (upsample && context.version < 9) {
    const auto scales = context.attribute_floats("scales");
    request.scales.assign(scales.begin(), scales.end());
  } else if (context.has(scales_at)) {
    ATTN_OPT_TRY(request.scales, context.reals(context.input(scales_at)));
  }
  if (scales_at == 2 && context.has(1)) {
    ATTN_OPT_TRY(request.roi, context.reals(context.input(1)));
  }
  if (scales_at == 2 && context.has(3)) {
    ATTN_OPT_TRY(request.sizes, context.integers(context.input(3)));
  }
  const size_t n = request.axes.size();
  const bool by_scales = request.scales.size() == n && request.sizes.empty();
  const bool by_sizes = request.sizes.size() == n && request.scales.empty();
  if (!by_scales && !by_sizes) return context.invalid("scales or sizes are not one for each axis");
  if (!request.roi.empty() && request.roi.size() != 2 * n) {
    return context.invalid("roi is not two for each axis");
  }
  return request;
}

/// Makes SIZES keep the aspect ratio; returns the one scale of all axes, or 0 to stretch each.
Expected<double> common_scale(const KernelContext& context, Request& request) {
  const std::string policy = context.attribute_string("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || request.sizes.empty()) return 0.0;
  const bool larger = policy == "not_smaller";
  if (!larger && policy != "not_larger") return context.invalid("keep_aspect_ratio_policy is " + policy);
  double scale = larger ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < request.axes.size(); ++i) {
    const auto in = static_cast<double>(context.input(0).dims()[static_cast<size_t>(request.axes[i])]);
    const double own = static_cast<double>(request.sizes[i]) / in;
    scale = larger ? std::max(scale, own) : std::min(scale, own);
  }
  return scale;
}

Expected<std::vector<ResizeAxis>> resize_axes(const KernelContext& context, const ResizeMode& mode) {
  ATTN_OPT_TRY(Request request, read_request(context));
  ATTN_OPT_TRY(const double common, common_scale(context, request));
  std::vector<ResizeAxis> axes;
  for (const int64_t dim : context.input(0).dims()) axes.push_back({dim, dim});
  for (size_t i = 0; i < request.axes.size(); ++i) {
    ResizeAxis& axis = axes[static_cast<size_t>(request.axes[i])];
    const auto in = static_cast<double>(axis.in);
    if (request.sizes.empty())
      axis.scale = request.scales[i];
    else
      axis.scale = common != 0 ? common : static_cast<double>(request.sizes[i]) / in;
    double out = std::floor(axis.scale * in);
    if (!request.sizes.empty()) {
      out = common != 0 ? std::floor(common * in + 0.5) : static_cast<double>(request.sizes[i]);
    }
    if (axis.in == 0 && out == 0) axis.scale = 1;
    if (!(axis.scale > 0) || !(out >= 0) || out > 0x1p40 || (axis.in == 0 && out > 0)) {
      return context.invalid("scale or size of axis " + std::to_string(request.axes[i]) + " is out of range");
    }
    axis.out = static_cast<int64_t>(out);
    if (!request.roi.empty() && mode.coordinates == "tf_crop_and_resize") {
      axis.roi_start = request.roi[i];
      axis.roi_end = request.roi[request.axes.size() + i];
      constexpr double kMost = 1e6;
      if (!(std::abs(axis.roi_start) < kMost && std::abs(axis.roi_end) < kMost)) {
        return context.invalid("roi is out of range");
      }
    }
  }
  return axes;
}

Expected<Tensor> nearest(const KernelContext& context, const ResizeMode& mode, const std::vector<ResizeAxis>& axes) {
  std::vector<AxisMap> maps;
  for (const ResizeAxis& axis : axes) {
    ATTN_OPT_CHECK(context.within_budget(axis.out, sizeof(int64_t)));
    AxisMap map(static_cast<size_t>(axis.out));
    for (int64_t i = 0; i < axis.out; ++i) {
      map[static_cast<size_t>(i)] = axis.is_identity() ? i : nearest_element(mode, axis, i);
    }
    maps.push_back(std::move(map));
  }
  ATTN_OPT_TRY(const Tensor fill, Tensor::scalar<double>(mode.extrapolation_value).cast(context.input(0).type()));
  return gathered(context, context.input(0), maps, fill);
}

/// X, of doubles, resized along axis AT.
Expected<Tensor> interpolated(const KernelContext& context, const ResizeMode& mode, const Tensor& x, size_t at,
                              const ResizeAxis& axis) {
  Dims dims = x.dims();
  dims[at] = axis.out;
  const int64_t inner = element_count(std::span(dims).subspan(at + 1));
  const int64_t outer = element_count(std::span(dims).first(at));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, std::move(dims)));
  const double* from = x.data<double>().data();
  double* to = out.mutable_data<double>().data();
  for (int64_t i = 0; i < axis.out; ++i) {
    const Taps taps = taps_at(mode, axis, i);
    for (int64_t o = 0; o < outer; ++o) {
      double* row = to + (o * axis.out + i) * inner;
      if (taps.weights.empty()) std::fill_n(row, inner, mode.extrapolation_value);
      for (size_t k = 0; k < taps.weights.size(); ++k) {
        const int64_t source = std::clamp(taps.first + static_cast<int64_t>(k), int64_t{0}, axis.in - 1);
        const double* values = from + (o * axis.in + source) * inner;
        for (int64_t j = 0; j < inner; ++j) row[j] += taps.weights[k] * values[j];
      }
    }
  }
  return out;
}

/// Integers are rounded and saturated.
Expected<Tensor> back_to(const KernelContext& context, const Tensor& values, DataType type) {
  return dispatch(context, type, NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    if constexpr (kIsFloat<T>) {
      return values.cast(type);
    } else {
      Tensor out(type, values.dims());
      std::ranges::transform(values.data<double>(), out.mutable_data<T>().begin(), [](double value) {
        const double rounded = std::nearbyint(value);
        if (!(rounded > static_cast<double>(std::numeric_limits<T>::min()))) {
          return std::numeric_limits<T>::min();
        }
        return rounded < static_cast<double>(std::numeric_limits<T>::max()) ? static_cast<T>(rounded)
                                                                            : std::numeric_limits<T>::max();
      });
      return out;
    }
  });
}

Outputs resize(const KernelContext& context) {
  ATTN_OPT_TRY(const ResizeMode mode, read_resize_mode(context));
  ATTN_OPT_TRY(const auto axes, resize_axes(context, mode));
  if (mode.interpolation == "nearest") return single(nearest(context, mode, axes));
  ATTN_OPT_TRY(Tensor values, context.input(0).cast(onnx::TensorProto::DOUBLE));
  for (size_t at = 0; at < axes.size(); ++at) {
    if (axes[at].is_identity()) continue;
    ATTN_OPT_TRY(values, interpolated(context, mode, values, at, axes[at]));
  }
  return single(back_to(context, values, context.input(0).type()));
}

}  // namespace

void register_resize(KernelRegistry& registry) {
  registry.add("Resize", 10, 19, resize);
  registry.add("Upsample", 1, 9, resize);
}

}  // namespace attn_opt
