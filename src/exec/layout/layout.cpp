// Transpose, Concat, Split, Slice, Trilu and the depth/space shuffles.
#include <limits>
#include <numeric>

#include "src/exec/families.h"
#include "src/exec/layout/copy.h"

namespace attn_opt {
namespace {

Outputs transpose(const KernelContext& context) {
  const Tensor& x = context.input(0);
  std::vector<int64_t> perm = context.attribute_ints("perm");
  if (context.attribute("perm") == nullptr) {
    for (int64_t axis = x.rank(); axis-- > 0;) perm.push_back(axis);
  }
  return single(transposed(context, x, perm));
}

Outputs concat(const KernelContext& context) {
  return single(concatenated(context, context.inputs, context.attribute_int("axis", 1)));
}

/// The lengths that the node gives, in opset 1 of the data's type.
Expected<std::vector<int64_t>> given_lengths(const KernelContext& context) {
  if (!is_floating(context.input(1).type())) return context.integers_or_attribute(1, "split");
  ATTN_OPT_TRY(const Tensor lengths, context.input(1).cast(onnx::TensorProto::INT64));
  return context.integers(lengths);
}

/// How long each output of Split is.
Expected<std::vector<int64_t>> split_lengths(const KernelContext& context, int64_t extent) {
  ATTN_OPT_TRY(auto lengths, given_lengths(context));
  const int64_t parts = context.attribute_int("num_outputs", context.node.output_size());
  if (lengths.empty()) {
    if (parts < 1 || parts > context.node.output_size()) {
      return context.invalid("num_outputs does not fit the node");
    }
    const int64_t chunk = (extent + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) lengths.push_back(std::clamp(extent - i * chunk, int64_t{0}, chunk));
  }
  int64_t left = extent;
  for (const int64_t length : lengths) {
    if (length < 0 || length > left) return context.invalid("split lengths do not fit the axis");
    left -= length;
  }
  if (left != 0 || static_cast<int>(lengths.size()) < context.node.output_size()) {
    return context.invalid("split lengths do not fit the axis or the outputs");
  }
  return lengths;
}

Outputs split(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), x.rank()));
  const size_t at = static_cast<size_t>(axis);
  ATTN_OPT_TRY(const auto lengths, split_lengths(context, x.dims()[at]));
  std::vector<Tensor> outputs;
  Dims starts(x.dims().size(), 0);
  const Dims steps(x.dims().size(), 1);
  for (const int64_t length : lengths) {
    Dims dims = x.dims();
    dims[at] = length;
    ATTN_OPT_TRY(Tensor part, sliced(context, x, starts, steps, std::move(dims)));
    outputs.push_back(std::move(part));
    starts[at] += length;
  }
  return outputs;
}

/// Start, step and count of elements that Slice takes of an axis of EXTENT.
struct SliceRange {
  int64_t start = 0, step = 1, count = 0;
};

SliceRange clamp_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto place = [extent](int64_t i, int64_t low, int64_t high) {
    if (i < 0) i = i < -extent ? -1 : i + extent;
    return std::clamp(i, low, high);
  };
  if (step > 0) {
    start = place(start, 0, extent);
    end = place(end, 0, extent);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = place(start, 0, std::max<int64_t>(extent - 1, 0));
  end = extent == 0 ? start : place(end, -1, extent - 1);
  const int64_t back = step == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max() : -step;
  return {std::max<int64_t>(start, 0), step, start > end ? (start - end - 1) / back + 1 : 0};
}

Outputs slice(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const auto starts, context.integers_or_attribute(1, "starts"));
  ATTN_OPT_TRY(const auto ends, context.integers_or_attribute(2, "ends"));
  ATTN_OPT_TRY(auto axes, context.integers_or_attribute(3, "axes"));
  ATTN_OPT_TRY(auto steps, context.integers_or_attribute(4, "steps"));
  const size_t n = starts.size();
  if (axes.empty()) {
    axes.resize(n);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(n, 1);
  if (ends.size() != n || axes.size() != n || steps.size() != n) {
    return context.invalid("starts, ends, axes differ in length");
  }
  Dims from(x.dims().size(), 0);
  Dims step(x.dims().size(), 1);
  Dims dims = x.dims();
  for (size_t i = 0; i < n; ++i) {
    ATTN_OPT_TRY(const int64_t axis, context.axis(axes[i], x.rank()));
    if (steps[i] == 0) return context.invalid("a step is 0");
    const bool is_largest = ends[i] == std::numeric_limits<int64_t>::max() || ends[i] == std::numeric_limits<int32_t>::max();
    if (steps[i] < 0 && is_largest)
      return context.unsupported("an end that ONNX Runtime takes for the front where steps go back");
    const size_t at = static_cast<size_t>(axis);
    const SliceRange range = clamp_range(starts[i], ends[i], steps[i], x.dims()[at]);
    from[at] = range.start;
    step[at] = range.count > 1 ? range.step : 1;
    dims[at] = range.count;
  }
  return single(sliced(context, x, from, step, std::move(dims)));
}

Outputs trilu(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.rank() < 2) return context.invalid("input has rank " + std::to_string(x.rank()));
  int64_t k = 0;
  if (context.has(1)) {
    ATTN_OPT_TRY(const auto values, context.integers(context.input(1)));
    if (values.size() != 1) return context.invalid("k is not a scalar");
    k = values[0];
  }
  const bool upper = context.attribute_int("upper", 1) != 0;
  const int64_t rows = x.dims()[x.dims().size() - 2];
  const int64_t columns = x.dims().back();
  k = std::clamp(k, -rows - 1, columns + 1);
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  return single(dispatch_cells(context, x.type(), [&]<class T>() -> Expected<Tensor> {
    const T* from = cells<T>(x);
    T* to = mutable_cells<T>(out);
    for (int64_t at = 0; at < x.size(); at += columns) {
      const int64_t row = (at / columns) % rows;
      const int64_t diagonal = std::clamp<int64_t>(row + k + (upper ? 0 : 1), 0, columns);
      const int64_t begin = upper ? diagonal : 0;
      const int64_t end = upper ? columns : diagonal;
      std::copy(from + at + begin, from + at + end, to + at + begin);
    }
    return std::move(out);
  }));
}

/// X reshaped to SPLIT, transposed, reshaped to JOINED.
Expected<Tensor> shuffle(const KernelContext& context, const Dims& split, const std::vector<int64_t>& perm, Dims joined) {
  ATTN_OPT_TRY(const Tensor moved, transposed(context, context.input(0).reshaped(split), perm));
  return moved.reshaped(std::move(joined));
}

Outputs depth_to_space(const KernelContext& context) {
  const Dims& d = context.input(0).dims();
  const int64_t b = context.attribute_int("blocksize", 0);
  if (d.size() != 4 || b < 1 || b > (int64_t{1} << 30) || d[1] % (b * b) != 0) {
    return context.invalid("blocksize does not fit the shape " + print_dims(d));
  }
  const int64_t c = d[1] / (b * b);
  const Dims joined{d[0], c, d[2] * b, d[3] * b};
  if (context.attribute_string("mode", "DCR") == "CRD") {
    return single(shuffle(context, {d[0], c, b, b, d[2], d[3]}, {0, 1, 4, 2, 5, 3}, joined));
  }
  return single(shuffle(context, {d[0], b, b, c, d[2], d[3]}, {0, 3, 4, 1, 5, 2}, joined));
}

Outputs space_to_depth(const KernelContext& context) {
  const Dims& d = context.input(0).dims();
  const int64_t b = context.attribute_int("blocksize", 0);
  if (d.size() != 4 || b < 1 || d[2] % b != 0 || d[3] % b != 0) {
    return context.invalid("blocksize does not fit the shape " + print_dims(d));
  }
  const int64_t h = d[2] / b;
  const int64_t w = d[3] / b;
  if (h == 0 || w == 0) return context.invalid("empty input");
  return single(shuffle(context, {d[0], d[1], h, b, w, b}, {0, 3, 5, 1, 2, 4}, {d[0], d[1] * b * b, h, w}));
}

}  // namespace

void register_layout(KernelRegistry& registry) {
  registry.add("Transpose", 1, 25, transpose);
  registry.add("Concat", 1, 13, concat);
  registry.add("Split", 1, 18, split);
  registry.add("Slice", 1, 13, slice);
  registry.add("Trilu", 14, 14, trilu);
  registry.add("DepthToSpace", 1, 13, depth_to_space);
  registry.add("SpaceToDepth", 1, 13, space_to_depth);
}

}  // namespace attn_opt
