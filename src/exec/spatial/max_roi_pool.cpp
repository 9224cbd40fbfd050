// MaxRoiPool: the largest element in each bin of a region; coordinates are rounded to elements.
#include <cmath>
#include <limits>

#include "src/exec/families.h"
#include "src/exec/spatial/roi.h"
#include "src/exec/spatial/window.h"
#include "src/exec/wide.h"

namespace attn_opt {

Expected<RoiPooling> read_roi_pooling(const KernelContext& context, Dims bins, int64_t columns) {
  const Tensor& x = context.input(0);
  const Tensor& rois = context.input(1);
  ATTN_OPT_CHECK(context.same_type(x, rois));
  if (x.rank() != 4 || rois.rank() != 2 || rois.dims()[1] != columns) {
    return context.invalid("regions of shape " + print_dims(rois.dims()) + " do not fit images of shape " +
                           print_dims(x.dims()));
  }
  const auto in_range = [](int64_t extent) { return extent >= 1 && extent <= kMostExtent; };
  if (bins.size() != 2 || !in_range(bins[0]) || !in_range(bins[1])) {
    return context.invalid("the output's size is out of range");
  }
  if (!in_range(x.dims()[2]) || !in_range(x.dims()[3])) return context.invalid("images are out of range");
  RoiPooling pooling;
  ATTN_OPT_TRY(pooling.images, in_double(context, x));
  ATTN_OPT_TRY(pooling.rois, in_double(context, rois));
  pooling.regions = rois.dims()[0];
  pooling.channels = x.dims()[1];
  pooling.extents = {x.dims()[2], x.dims()[3]};
  pooling.bins = std::move(bins);
  pooling.scale = context.attribute_float("spatial_scale", 1);
  return pooling;
}

namespace {

/// The elements of each of BINS equal parts of the elements FIRST to LAST, which overlap where they share
/// one.
std::vector<Range> bin_ranges(double first, double last, int64_t bins, int64_t extent) {
  const auto rounded = [](double coordinate) {
    constexpr double kFarthest = 0x1p30;  // no image is that large
    return static_cast<int64_t>(std::round(std::clamp(std::isnan(coordinate) ? 0 : coordinate, -kFarthest, kFarthest)));
  };
  const int64_t start = rounded(first);
  const int64_t length = std::max<int64_t>(rounded(last) - start + 1, 1);
  std::vector<Range> ranges;
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t from = start + i * length / bins;
    const int64_t end = start + ((i + 1) * length + bins - 1) / bins;
    ranges.push_back({std::clamp<int64_t>(from, 0, extent), std::clamp<int64_t>(end, 0, extent)});
  }
  return ranges;
}

/// 0 for a bin outside of the image.
double largest(const double* channel, int64_t width, const Range& ys, const Range& xs) {
  if (ys.size() <= 0 || xs.size() <= 0) return 0;
  double most = -std::numeric_limits<double>::infinity();
  for (int64_t y = ys.first; y < ys.end; ++y) {
    for (int64_t x = xs.first; x < xs.end; ++x) {
      const double value = channel[y * width + x];
      if (value > most || std::isnan(value)) most = value;
    }
  }
  return most;
}

Outputs max_roi_pool(const KernelContext& context) {
  ATTN_OPT_TRY(const RoiPooling pooling, read_roi_pooling(context, context.attribute_ints("pooled_shape"), 5));
  const auto image_of = [](int64_t, const double* roi) {
    return roi[0] >= 0 && roi[0] < 0x1p40 ? static_cast<int64_t>(roi[0]) : -1;
  };
  const auto pool = [&](const double* roi, const double* image, double* to) -> Status {
    const auto ranges_of = [&](size_t axis) {
      return bin_ranges(roi[2 - axis] * pooling.scale, roi[4 - axis] * pooling.scale, pooling.bins[axis],
                        pooling.extents[axis]);
    };
    ATTN_OPT_CHECK(context.within_budget(pooling.bins[0] + pooling.bins[1], sizeof(Range)));
    const auto ys = ranges_of(0);
    const auto xs = ranges_of(1);
    for (int64_t c = 0; c < pooling.channels; ++c, image += element_count(pooling.extents)) {
      for (const Range& y : ys) {
        for (const Range& x : xs) *to++ = largest(image, pooling.extents[1], y, x);
      }
    }
    return {};
  };
  return pool_regions(context, pooling, image_of, pool);
}

}  // namespace

void register_max_roi_pool(KernelRegistry& registry) { registry.add("MaxRoiPool", 1, 22, max_roi_pool); }

}  // namespace attn_opt
