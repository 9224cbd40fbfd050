// DeformConv: a convolution whose windows show input at positions that offsets move.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/spatial/convolution.h"
#include "src/exec/spatial/sampling.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

struct Deformation {
  int64_t groups = 1;     ///< that the channels are divided into, each with its own offsets
  Tensor offsets, masks;  ///< doubles; masks may have no value
};

/// Checks that input I is of (N, CHANNELS, output positions...), and widens it.
Expected<Tensor> at_positions(const KernelContext& context, size_t i, const Window& w, Dims leading) {
  const Tensor& given = context.input(i);
  if (!given.has_value()) return given;
  ATTN_OPT_CHECK(context.same_type(context.input(0), given));
  leading.insert(leading.end(), w.out.begin(), w.out.end());
  if (given.dims() != leading) {
    return context.invalid("input " + std::to_string(i) + " is of shape " + print_dims(given.dims()) + ", not " +
                           print_dims(leading));
  }
  return in_double(context, given);
}

Expected<Deformation> read_deformation(const KernelContext& context, const Tensor& x, const Window& w) {
  Deformation deformation;
  deformation.groups = context.attribute_int("offset_group", 1);
  const auto rank = static_cast<int64_t>(w.rank());
  const int64_t masks = element_count(std::array{deformation.groups, element_count(w.kernel)});
  const int64_t offsets = element_count(std::array{masks, rank});
  if (deformation.groups < 1 || offsets < 0 || x.dims()[1] % deformation.groups != 0) {
    return context.invalid("offset_group is " + std::to_string(deformation.groups) + " for " + std::to_string(x.dims()[1]) +
                           " channels");
  }
  ATTN_OPT_TRY(deformation.offsets, at_positions(context, 2, w, {x.dims()[0], offsets}));
  ATTN_OPT_TRY(deformation.masks, at_positions(context, 4, w, {x.dims()[0], masks}));
  return deformation;
}

/// Fills the columns of channels that share offsets.
template <class T>
class DeformedColumns {
 public:
  DeformedColumns(const Window& w, const Deformation& deformation)
      : w_(w), deformation_(deformation), strides_(strides_of(w.in)), along_(w.rank()) {}

  /// ROWS of the CHANNELS at IMAGE, with the offsets of SAMPLE: image times groups plus group.
  void fill(const T* image, int64_t channels, int64_t sample, T* rows) {
    const int64_t positions = element_count(w_.out);
    const int64_t kernel_size = element_count(w_.kernel);
    const int64_t channel_size = element_count(w_.in);
    const auto rank = static_cast<int64_t>(w_.rank());
    Dims k(w_.rank(), 0);
    for (int64_t row = 0; row < kernel_size; ++row, next_index(k, w_.kernel)) {
      const int64_t first = (sample * kernel_size + row) * positions;
      Dims at(w_.rank(), 0);
      for (int64_t i = 0; i < positions; ++i, next_index(at, w_.out)) {
        locate(at, k, deformation_.offsets.template data<double>().data() + first * rank + i, positions);
        const double mask =
            deformation_.masks.has_value() ? deformation_.masks.template data<double>()[static_cast<size_t>(first + i)] : 1;
        for (int64_t c = 0; c < channels; ++c) {
          rows[(c * kernel_size + row) * positions + i] = static_cast<T>(mask * weighted_sum(image + c * channel_size, taps_));
        }
      }
    }
  }

 private:
  /// Makes taps_ those of where the window at OUT shows at K; OFFSETS of the axes are STEP apart.
  void locate(const Dims& out, const Dims& k, const double* offsets, int64_t step) {
    for (size_t axis = 0; axis < w_.rank(); ++axis) {
      const auto position = static_cast<double>(window_position(w_, axis, out[axis], k[axis]));
      along_[axis] = linear_taps(position + offsets[static_cast<int64_t>(axis) * step], w_.in[axis]);
    }
    combine(along_, strides_, taps_);
  }

  const Window& w_;
  const Deformation& deformation_;
  Dims strides_;
  std::vector<AxisTaps> along_;
  std::vector<Tap> taps_;
};

Outputs deform_conv(const KernelContext& context) {
  const DataType type = context.input(0).type();
  ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(1)));
  ATTN_OPT_TRY(const Tensor x, in_type(context, context.input(0), product_type(type)));
  ATTN_OPT_TRY(const Tensor weights, in_type(context, context.input(1), product_type(type)));
  ATTN_OPT_TRY(const Groups groups, read_groups(context, x, weights));
  ATTN_OPT_TRY(const Window w, read_weights_window(context, x, weights));
  ATTN_OPT_TRY(const Deformation deformation, read_deformation(context, x, w));
  ATTN_OPT_TRY(const Tensor bias, read_bias(context, 3, context.input(0), weights.dims()[0]));
  const int64_t shared = x.dims()[1] / deformation.groups;  // channels with the same offsets
  const int64_t kernel_and_positions = element_count(w.kernel) * element_count(w.out);
  return dispatch(context, x.type(), TypeList<float, double>{}, [&]<class T>() -> Outputs {
    const T* images = x.data<T>().data();
    DeformedColumns<T> deformed(w, deformation);
    const auto fill = [&](int64_t n, int64_t g, T* columns) {
      const int64_t end = (g + 1) * groups.in;
      for (int64_t c = g * groups.in; c < end;) {
        const int64_t group = c / shared;
        const int64_t count = std::min(end, (group + 1) * shared) - c;
        deformed.fill(images + (n * x.dims()[1] + c) * element_count(w.in), count, n * deformation.groups + group, columns);
        columns += count * kernel_and_positions;
        c += count;
      }
    };
    ATTN_OPT_TRY(const Tensor out, multiply_columns<T>(context, w, groups, x.dims()[0], weights, bias, fill));
    return single(out.cast(type));
  });
}

}  // namespace

void register_deform_conv(KernelRegistry& registry) { registry.add("DeformConv", 19, 22, deform_conv); }

}  // namespace attn_opt
