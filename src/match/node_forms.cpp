#include "src/match/node_forms.h"

#include <algorithm>
#include <numeric>

namespace attn_opt {

std::optional<size_t> axis_in(int64_t axis, size_t rank) {
  const int64_t size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

IntegerList integer_list(const RuleContext& context, std::string_view attribute, size_t input) {
  if (const auto* ints = context.node().ints_attribute(attribute)) {
    return {true, std::vector<int64_t>(ints->begin(), ints->end())};
  }
  if (!context.has(input)) return {};
  return {true, context.numbers(input)};
}

std::optional<std::vector<size_t>> axes_of(const RuleContext& context, size_t rank, std::vector<size_t> absent) {
  const IntegerList list = integer_list(context, "axes", 1);
  if (!list.given) return absent;
  if (!list.values) return std::nullopt;
  std::vector<size_t> axes;
  for (const int64_t given : *list.values) {
    const std::optional<size_t> axis = axis_in(given, rank);
    if (!axis || std::ranges::find(axes, *axis) != axes.end()) return std::nullopt;
    axes.push_back(*axis);
  }
  std::ranges::sort(axes);
  return axes;
}

bool is_inference_dropout(const RuleContext& context) {
  if (context.opset() < 12 || !context.has(2)) return true;
  const std::optional<double> training = context.scalar(2);
  return (training && *training == 0) || (context.has(1) && context.scalar(1) == 0.0);
}

std::vector<size_t> all_axes(size_t rank) {
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), size_t{0});
  return axes;
}

}  // namespace attn_opt
