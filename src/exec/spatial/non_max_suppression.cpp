// NonMaxSuppression: boxes by falling score, without those that overlap too much with one chosen before.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

template <class T>
struct Box {
  T x_low, y_low, x_high, y_high;

  T area() const { return (x_high - x_low) * (y_high - y_low); }
};

/// VALUES: two corners as y, x, y, x; or x and y of the centre, width and height.
template <class T>
Box<T> read_box(const T* values, bool by_centre) {
  if (by_centre) {
    const T x = values[2] / 2;
    const T y = values[3] / 2;
    return {values[0] - x, values[1] - y, values[0] + x, values[1] + y};
  }
  const auto [y_low, y_high] = std::minmax(values[0], values[2]);
  const auto [x_low, x_high] = std::minmax(values[1], values[3]);
  return {x_low, y_low, x_high, y_high};
}

/// True if the intersection over the union of A and B passes THRESHOLD.
template <class T>
bool overlap(const Box<T>& a, const Box<T>& b, T threshold) {
  const T width = std::min(a.x_high, b.x_high) - std::max(a.x_low, b.x_low);
  const T height = std::min(a.y_high, b.y_high) - std::max(a.y_low, b.y_low);
  if (!(width > 0) || !(height > 0)) return false;
  const T both = width * height;
  const T either = a.area() + b.area() - both;
  return both > 0 && a.area() > 0 && b.area() > 0 && either > 0 && both / either > threshold;
}

template <class T>
struct Limits {
  int64_t most = 0;  ///< boxes of a class
  T overlap = 0;
  std::optional<T> score;
};

/// Indices into BOXES of those that SCORES and LIMITS let pass.
template <class T>
std::vector<int64_t> selected(const std::vector<Box<T>>& boxes, const T* scores, const Limits<T>& limits) {
  std::vector<int64_t> candidates;
  for (int64_t i = 0; i < static_cast<int64_t>(boxes.size()); ++i) {
    if (!limits.score.has_value() || scores[i] > *limits.score) candidates.push_back(i);
  }
  std::ranges::stable_sort(
      candidates, [&](int64_t a, int64_t b) { return std::isnan(scores[b]) ? !std::isnan(scores[a]) : scores[a] > scores[b]; });
  std::vector<int64_t> chosen;
  for (const int64_t candidate : candidates) {
    if (static_cast<int64_t>(chosen.size()) == limits.most) break;
    const auto& box = boxes[static_cast<size_t>(candidate)];
    const bool suppressed = std::ranges::any_of(
        chosen, [&](int64_t other) { return overlap(box, boxes[static_cast<size_t>(other)], limits.overlap); });
    if (!suppressed) chosen.push_back(candidate);
  }
  return chosen;
}

/// The value of input I, a scalar of T; nothing if omitted.
template <class T>
Expected<std::optional<T>> scalar_input(const KernelContext& context, size_t i) {
  const Tensor& tensor = context.input(i);
  if (!tensor.has_value() || (tensor.type() == data_type_of<T>() && tensor.size() == 0)) return std::optional<T>();
  if (tensor.type() != data_type_of<T>() || tensor.size() != 1) {
    return context.invalid("input " + std::to_string(i) + " is not a scalar of " + type_name(data_type_of<T>()));
  }
  return std::optional<T>(tensor.data<T>()[0]);
}

template <class T>
Expected<Limits<T>> read_limits(const KernelContext& context) {
  Limits<T> limits;
  ATTN_OPT_TRY(const auto most, scalar_input<int64_t>(context, 2));
  ATTN_OPT_TRY(const auto most_overlap, scalar_input<T>(context, 3));
  ATTN_OPT_TRY(limits.score, scalar_input<T>(context, 4));
  limits.most = std::max<int64_t>(0, most.value_or(0));
  limits.overlap = most_overlap.value_or(T{0});
  return limits;
}

template <class T>
Outputs suppress(const KernelContext& context) {
  const Tensor& boxes = context.input(0);
  const Tensor& scores = context.input(1);
  ATTN_OPT_TRY(const auto limits, read_limits<T>(context));
  const int64_t classes = scores.dims()[1];
  const int64_t count = scores.dims()[2];
  const int64_t lists = element_count(std::array{scores.dims()[0], classes});
  ATTN_OPT_CHECK(context.within_budget(element_count(std::array{lists, std::min(limits.most, count)}), 3 * sizeof(int64_t)));
  ATTN_OPT_CHECK(context.within_budget(count, sizeof(Box<T>) + sizeof(int64_t)));
  const bool by_centre = context.attribute_int("center_point_box", 0) != 0;
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t list = 0; list < lists && limits.most > 0 && count > 0; ++list) {
    const int64_t batch = list / classes;
    std::vector<Box<T>> own;
    for (int64_t i = 0; i < count; ++i) {
      own.push_back(read_box(boxes.data<T>().data() + (batch * count + i) * 4, by_centre));
    }
    for (const int64_t box : selected(own, scores.data<T>().data() + list * count, limits)) {
      rows.push_back({batch, list % classes, box});
    }
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::INT64, {static_cast<int64_t>(rows.size()), 3}));
  int64_t* to = out.mutable_data<int64_t>().data();
  for (const auto& row : rows) to = std::ranges::copy(row, to).out;
  return single(std::move(out));
}

Outputs non_max_suppression(const KernelContext& context) {
  const Tensor& boxes = context.input(0);
  const Tensor& scores = context.input(1);
  ATTN_OPT_CHECK(context.same_type(boxes, scores));
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dims()[2] != 4 || boxes.dims()[0] != scores.dims()[0] ||
      boxes.dims()[1] != scores.dims()[2]) {
    return context.invalid("scores of shape " + print_dims(scores.dims()) + " do not fit boxes of shape " +
                           print_dims(boxes.dims()));
  }
  return dispatch(context, boxes.type(), TypeList<float, double>{}, [&]<class T>() -> Outputs { return suppress<T>(context); });
}

}  // namespace

void register_non_max_suppression(KernelRegistry& registry) { registry.add("NonMaxSuppression", 10, 11, non_max_suppression); }

}  // namespace attn_opt
