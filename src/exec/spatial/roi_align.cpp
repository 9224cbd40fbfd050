// RoiAlign: regions of an image, divided into bins that are sampled by bilinear interpolation.
#include <cmath>
#include <limits>
#include <span>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/spatial/roi.h"

namespace attn_opt {
namespace {

struct AlignMode {
  bool takes_largest = false;
  bool half_pixel = true;
  int64_t sampling_ratio = 0;
};

Expected<AlignMode> read_align_mode(const KernelContext& context) {
  AlignMode align;
  const std::string mode = context.attribute_string("mode", "avg");
  if (mode != "avg" && mode != "max") return context.invalid("mode is " + mode);
  align.takes_largest = mode == "max";
  const std::string coordinates =
      context.attribute_string("coordinate_transformation_mode", context.version < 16 ? "output_half_pixel" : "half_pixel");
  if (coordinates == "output_half_pixel") {
    align.half_pixel = false;
  } else if (coordinates != "half_pixel") {
    return context.invalid("coordinate_transformation_mode is " + coordinates);
  }
  align.sampling_ratio = context.attribute_int("sampling_ratio", 0);
  return align;
}

/// A sample's place along one axis: LOW and HIGH with their weights; none outside of the image.
struct Sample {
  int64_t low = 0, high = 0;
  double low_weight = 0, high_weight = 0;
};

Sample sample_at(double position, int64_t extent) {
  if (!(position >= -1 && position <= static_cast<double>(extent))) return {};
  position = std::max(position, 0.0);
  const auto low = static_cast<int64_t>(position);
  if (low >= extent - 1) return {extent - 1, extent - 1, 1, 0};
  const double part = position - static_cast<double>(low);
  return {low, low + 1, 1 - part, part};
}

/// The samples of all bins along one axis, those of a bin behind each other.
struct AxisSamples {
  int64_t per_bin = 0;
  std::vector<Sample> samples;

  std::span<const Sample> bin(int64_t i) const {
    return std::span(samples).subspan(static_cast<size_t>(i * per_bin), static_cast<size_t>(per_bin));
  }
};

/// Of a region from START to END, in the image's coordinates.
Expected<AxisSamples> axis_samples(const KernelContext& context, const AlignMode& mode, double start, double end, int64_t bins,
                                   int64_t extent) {
  double length = end - start;
  if (!mode.half_pixel) length = std::max(length, 1.0);
  const double bin_length = length / static_cast<double>(bins);
  AxisSamples axis;
  axis.per_bin = mode.sampling_ratio;
  if (mode.sampling_ratio <= 0) {
    const double adaptive = std::ceil(bin_length);
    if (!(std::abs(adaptive) < 0x1p40)) return context.invalid("a region is out of range");
    axis.per_bin = std::max<int64_t>(0, static_cast<int64_t>(adaptive));
  }
  const int64_t count = element_count(std::array{axis.per_bin, bins});
  ATTN_OPT_CHECK(context.within_budget(count, sizeof(Sample)));
  for (int64_t i = 0; i < count; ++i) {
    const auto part = (static_cast<double>(i) + 0.5) / static_cast<double>(axis.per_bin);
    axis.samples.push_back(sample_at(start + part * bin_length, extent));
  }
  return axis;
}

/// Weights of the elements from FIRST on that a bin's samples give together.
struct BinWeights {
  int64_t first = 0;
  std::vector<double> weights;
};

std::vector<BinWeights> bin_weights(const AxisSamples& axis, int64_t bins) {
  std::vector<BinWeights> all(static_cast<size_t>(bins));
  for (int64_t i = 0; i < bins; ++i) {
    int64_t first = std::numeric_limits<int64_t>::max();
    int64_t last = -1;
    for (const Sample& sample : axis.bin(i)) {
      if (sample.low_weight + sample.high_weight == 0) continue;
      first = std::min(first, sample.low);
      last = std::max(last, sample.high);
    }
    if (last < 0) continue;
    BinWeights& bin = all[static_cast<size_t>(i)];
    bin.first = first;
    bin.weights.resize(static_cast<size_t>(last - first + 1));
    for (const Sample& sample : axis.bin(i)) {
      if (sample.low_weight + sample.high_weight == 0) continue;
      bin.weights[static_cast<size_t>(sample.low - first)] += sample.low_weight;
      bin.weights[static_cast<size_t>(sample.high - first)] += sample.high_weight;
    }
  }
  return all;
}

double weighted_average(const double* channel, int64_t width, const BinWeights& y, const BinWeights& x, double count) {
  double sum = 0;
  for (size_t i = 0; i < y.weights.size(); ++i) {
    const double* row = channel + (y.first + static_cast<int64_t>(i)) * width + x.first;
    double row_sum = 0;
    for (size_t j = 0; j < x.weights.size(); ++j) row_sum += x.weights[j] * row[j];
    sum += y.weights[i] * row_sum;
  }
  return sum / count;
}

/// The largest weighted neighbour of all samples, which ONNX's test data ask for; not the largest sample.
double largest_neighbour(const double* channel, int64_t width, std::span<const Sample> ys, std::span<const Sample> xs) {
  double largest = ys.empty() || xs.empty() ? 0 : -std::numeric_limits<double>::infinity();
  for (const Sample& y : ys) {
    const double* low = channel + y.low * width;
    const double* high = channel + y.high * width;
    for (const Sample& x : xs) {
      largest = std::max({largest, y.low_weight * x.low_weight * low[x.low], y.low_weight * x.high_weight * low[x.high],
                          y.high_weight * x.low_weight * high[x.low], y.high_weight * x.high_weight * high[x.high]});
    }
  }
  return largest;
}

/// Writes the bins of one region for all channels from IMAGE to TO.
Status pool_region(const KernelContext& context, const AlignMode& mode, const RoiPooling& pooling, const double* roi,
                   const double* image, double* to) {
  const auto samples_of = [&](size_t axis) {
    const auto coordinate = [&](size_t i) { return roi[i] * pooling.scale - (mode.half_pixel ? 0.5 : 0); };
    return axis_samples(context, mode, coordinate(1 - axis), coordinate(3 - axis), pooling.bins[axis], pooling.extents[axis]);
  };
  ATTN_OPT_TRY(const AxisSamples ys, samples_of(0));
  ATTN_OPT_TRY(const AxisSamples xs, samples_of(1));
  const auto y_weights = bin_weights(ys, pooling.bins[0]);
  const auto x_weights = bin_weights(xs, pooling.bins[1]);
  const double count = std::max(1.0, static_cast<double>(ys.per_bin) * static_cast<double>(xs.per_bin));
  const int64_t width = pooling.extents[1];
  for (int64_t c = 0; c < pooling.channels; ++c, image += pooling.extents[0] * width) {
    for (int64_t i = 0; i < pooling.bins[0]; ++i) {
      for (int64_t j = 0; j < pooling.bins[1]; ++j) {
        *to++ = mode.takes_largest ? largest_neighbour(image, width, ys.bin(i), xs.bin(j))
                                   : weighted_average(image, width, y_weights[static_cast<size_t>(i)],
                                                      x_weights[static_cast<size_t>(j)], count);
      }
    }
  }
  return {};
}

Outputs roi_align(const KernelContext& context) {
  ATTN_OPT_TRY(const AlignMode mode, read_align_mode(context));
  const Dims bins{context.attribute_int("output_height", 1), context.attribute_int("output_width", 1)};
  ATTN_OPT_TRY(const RoiPooling pooling, read_roi_pooling(context, bins, 4));
  ATTN_OPT_TRY(const auto images, context.integers(context.input(2)));
  if (static_cast<int64_t>(images.size()) != pooling.regions) {
    return context.invalid("batch_indices are not one for each region");
  }
  return pool_regions(
      context, pooling, [&](int64_t r, const double*) { return images[static_cast<size_t>(r)]; },
      [&](const double* roi, const double* image, double* to) { return pool_region(context, mode, pooling, roi, image, to); });
}

}  // namespace

void register_roi_align(KernelRegistry& registry) { registry.add("RoiAlign", 10, 22, roi_align); }

}  // namespace attn_opt
