// Pad, in all modes; negative pads crop.
#include <numeric>

#include "src/exec/families.h"
#include "src/exec/layout/copy.h"

namespace attn_opt {
namespace {

/// Pads before and after each axis of input 0.
struct Pads {
  std::vector<int64_t> before, after;
};

Expected<Pads> read_pads(const KernelContext& context) {
  const int64_t rank = context.input(0).rank();
  ATTN_OPT_TRY(const auto given, context.integers_or_attribute(1, context.version < 2 ? "paddings" : "pads"));
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (context.has(3)) {
    ATTN_OPT_TRY(axes, context.integers(context.input(3)));
  }
  if (given.size() != 2 * axes.size()) return context.invalid("pads are not two for each axis");
  Pads pads{std::vector<int64_t>(static_cast<size_t>(rank), 0), std::vector<int64_t>(static_cast<size_t>(rank), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    ATTN_OPT_TRY(const int64_t axis, context.axis(axes[i], rank));
    pads.before[static_cast<size_t>(axis)] = given[i];
    pads.after[static_cast<size_t>(axis)] = given[axes.size() + i];
  }
  return pads;
}

/// Position in [0, EXTENT) that position AT outside of it shows; -1: the constant.
int64_t shown_position(const std::string& mode, int64_t at, int64_t extent) {
  if (at >= 0 && at < extent) return at;
  if (mode == "edge") return std::clamp(at, int64_t{0}, extent - 1);
  if (mode == "wrap") return ((at % extent) + extent) % extent;
  if (mode == "reflect") {
    if (extent == 1) return 0;
    const int64_t period = 2 * (extent - 1);
    const int64_t folded = ((at % period) + period) % period;
    return folded < extent ? folded : period - folded;
  }
  return -1;
}

Expected<AxisMap> axis_map(const KernelContext& context, const std::string& mode, int64_t before, int64_t after,
                           int64_t extent) {
  int64_t length = 0;
  if (__builtin_add_overflow(before, after, &length) || __builtin_add_overflow(length, extent, &length) || length < 0) {
    return context.invalid("pads make a negative or too large dimension");
  }
  if (extent == 0 && length > 0 && mode != "constant") {
    return context.invalid("an empty axis has nothing to pad with");
  }
  if (mode == "wrap" && length > 0 && std::min(before, after) < 0 && std::max(before, after) > 0)
    return context.unsupported("pads that wrap on one side and cut on the other: runtimes differ");
  ATTN_OPT_CHECK(context.within_budget(length, sizeof(int64_t)));
  AxisMap map(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) map[static_cast<size_t>(i)] = shown_position(mode, i - before, extent);
  return map;
}

Expected<Tensor> fill_value(const KernelContext& context) {
  const DataType type = context.input(0).type();
  if (context.has(2)) {
    ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(2)));
    if (context.input(2).size() != 1) return context.invalid("constant_value is not a scalar");
    return context.input(2);
  }
  if (type == onnx::TensorProto::STRING) return Tensor(type, {});
  return Tensor::scalar<float>(context.version < 11 ? context.attribute_float("value", 0) : 0).cast(type);
}

Outputs pad(const KernelContext& context) {
  const std::string mode = context.attribute_string("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "wrap" && mode != "reflect") {
    return context.invalid("mode is " + mode);
  }
  ATTN_OPT_TRY(const Pads pads, read_pads(context));
  ATTN_OPT_TRY(const Tensor fill, fill_value(context));
  std::vector<AxisMap> maps;
  for (size_t axis = 0; axis < pads.before.size(); ++axis) {
    const int64_t extent = context.input(0).dims()[axis];
    ATTN_OPT_TRY(AxisMap map, axis_map(context, mode, pads.before[axis], pads.after[axis], extent));
    maps.push_back(std::move(map));
  }
  return single(gathered(context, context.input(0), maps, fill));
}

}  // namespace

void register_pad(KernelRegistry& registry) { registry.add("Pad", 1, 25, pad); }

}  // namespace attn_opt
