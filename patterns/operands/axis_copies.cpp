#include "patterns/operands/axis_copies.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/executor.h"
#include "attn_opt/operator_traits.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxEntries = 4096;
/// Values that are looked through: each head may be a Slice of its own.
constexpr int kMaxValues = 256;

/// Entry INDEX of VALUE along the axis in question.
struct Entry {
  Value* value;
  int64_t index;
};

/// The only axis that SCALES, one for each of RANK axes, do not leave as it is.
std::optional<size_t> only_scaled(const Tensor* scales, size_t rank) {
  if (!scales || scales->type() != onnx::TensorProto::FLOAT || scales->size() != static_cast<int64_t>(rank))
    return std::nullopt;
  const auto numbers = scales->data<float>();
  const auto is_scale = [](float number) { return number != 1; };
  if (std::ranges::count_if(numbers, is_scale) != 1) return std::nullopt;
  return static_cast<size_t>(std::ranges::find_if(numbers, is_scale) - numbers.begin());
}

/// The only axis of which NODE makes another size.
std::optional<size_t> only_resized(const Node& node, size_t rank, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  std::optional<size_t> found;
  if (!before.has_rank(rank) || !after.has_rank(rank)) return found;
  for (size_t axis = 0; axis < rank; ++axis) {
    if ((*before)[axis] == (*after)[axis]) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found;
}

bool scales_nearest(const Node& node) {
  return node.is("Resize") && !node.input(3) && !node.attribute("axes") &&
         node.string_attribute("mode", "nearest") == "nearest" &&
         node.string_attribute("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
}

/// The axis along which NODE moves entries as wholes, whatever the sizes of all other axes, which stay as they are.
std::optional<size_t> moved_axis(const Node& node, size_t rank, Facts& facts) {
  if (node.inputs.empty() || !node.inputs[0] || !node.outputs[0]) return std::nullopt;
  if (node.is("Concat") || node.is("Split") || node.is("Gather")) return axis_in(node.int_attribute("axis", 0), rank);
  const bool steps_are_one = !node.input(4) || facts.uniform(*node.inputs[4]) == 1.0;
  if (node.is("Tile") || (node.is("Slice") && steps_are_one)) return only_resized(node, rank, facts);
  return scales_nearest(node) && node.input(2) ? only_scaled(facts.constant(*node.inputs[2]), rank) : std::nullopt;
}

/// Reads one axis of values of one rank.
class AxisReader {
 public:
  AxisReader(size_t axis, size_t rank, Facts& facts) : axis_(axis), rank_(rank), facts_(facts) {}

  /// How many entries VALUE has along the axis; nullopt if that is not known, or if they are too many.
  std::optional<size_t> count(const Value& value) {
    const MaybeShape shape = facts_.shape(value);
    if (!shape.has_rank(rank_) || !(*shape)[axis_].is_constant()) return std::nullopt;
    const int64_t size = (*shape)[axis_].value();
    return size > 0 && size <= static_cast<int64_t>(kMaxEntries) ? std::optional(static_cast<size_t>(size)) : std::nullopt;
  }

  /// The entries of VALUE as those of what its producer reads; empty if it does more than move them. The node itself is run, on
  /// the numbers of the entries: all other axes have one element, since it leaves them alone.
  std::vector<Entry> one_step_up(const Value& value) {
    if (!value.producer || !value.producer->domain().empty()) return {};
    const Node& node = *value.producer;
    if (has(node, Trait::kRegroups)) return one_taken(node);
    if (moved_axis(node, rank_, facts_) != axis_) return {};
    std::vector<Tensor> inputs;
    std::vector<Entry> pool;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      inputs.push_back(i == 0 || node.is("Concat") ? numbered(*node.inputs[i], pool) : parameter(node, i));
      if (node.inputs[i] && !inputs.back().has_value()) return {};
    }
    const auto outputs = run_node(*node.proto, inputs, {{"", node.graph->model().onnx_opset(node)}});
    const auto size = count(value);
    if (!outputs || !size || (*outputs)[static_cast<size_t>(value.output)].dims() != dims(*size)) return {};
    std::vector<Entry> entries;
    for (const int64_t at : (*outputs)[static_cast<size_t>(value.output)].data<int64_t>())
      entries.push_back(pool[static_cast<size_t>(at)]);
    return entries;
  }

 private:
  /// The entry that a Gather takes out alone, without its axis, which NODE gives back.
  std::vector<Entry> one_taken(const Node& node) {
    const Node* taker = canonical(*node.inputs[0], facts_).producer;
    if (!taker || !taker->is("Gather") || axis_in(taker->int_attribute("axis", 0), rank_) != axis_) return {};
    Value& source = canonical(*taker->inputs[0], facts_);
    const auto size = count(source);
    const auto index = facts_.scalar(*taker->inputs[1]);
    const MaybeShape after = facts_.shape(*node.outputs[0]);
    if (!size || !index || !after) return {};
    Shape one = facts_.shape(source).known();
    one[axis_] = 1;
    const int64_t entries = static_cast<int64_t>(*size), at = static_cast<int64_t>(*index) + (*index < 0 ? entries : 0);
    return *after == one && at >= 0 && at < entries ? std::vector<Entry>{{&source, at}} : std::vector<Entry>();
  }

  Dims dims(size_t size) const {
    Dims dims(rank_, 1);
    dims[axis_] = static_cast<int64_t>(size);
    return dims;
  }

  /// The places in POOL of the entries of VALUE, which are added to it.
  Tensor numbered(Value& value, std::vector<Entry>& pool) {
    Value& source = canonical(value, facts_);
    const auto size = count(source);
    if (!size || pool.size() + *size > kMaxEntries) return {};
    Tensor numbers(onnx::TensorProto::INT64, dims(*size));
    std::iota(numbers.mutable_data<int64_t>().begin(), numbers.mutable_data<int64_t>().end(),
              static_cast<int64_t>(pool.size()));
    for (size_t index = 0; index < *size; ++index) pool.push_back({&source, static_cast<int64_t>(index)});
    return numbers;
  }

  Tensor parameter(const Node& node, size_t input) {
    const Tensor* constant = node.inputs[input] ? facts_.constant(*node.inputs[input]) : nullptr;
    return constant ? *constant : Tensor();
  }

  size_t axis_, rank_;
  Facts& facts_;
};

bool is_made_later(const Entry& one, const Entry& other) {
  const auto place = [](const Entry& entry) { return entry.value->producer ? int64_t{entry.value->producer->position} : -1; };
  return place(one) < place(other);
}

/// How ENTRIES repeat all of the KEPT entries of one value; nullopt if they do not.
std::optional<AxisCopies> repetition(const std::vector<Entry>& entries, size_t axis, size_t kept) {
  const auto first_other = std::ranges::find_if(entries, [](const Entry& entry) { return entry.index != 0; });
  const size_t each = kept == 1 ? entries.size() : static_cast<size_t>(first_other - entries.begin());
  if (each == 0 || entries.size() % (each * kept) != 0) return std::nullopt;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].value != entries[0].value || entries[i].index != static_cast<int64_t>(i / each % kept)) return std::nullopt;
  const size_t rounds = entries.size() / (each * kept);
  return AxisCopies{entries[0].value, axis, static_cast<int64_t>(kept), static_cast<int64_t>(each),
                    static_cast<int64_t>(rounds)};
}

}  // namespace

std::optional<AxisCopies> copies_along_axis(Value& value, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  if (!shape || !value.producer || !value.producer->domain().empty()) return std::nullopt;
  const auto axis = moved_axis(*value.producer, shape->size(), facts);
  if (!axis) return std::nullopt;
  AxisReader reader(*axis, shape->size(), facts);
  std::vector<Entry> entries = reader.one_step_up(value);
  for (int step = 0; step < kMaxValues && !entries.empty(); ++step) {
    // What is made last is made of no other, so that no value that all entries come from is passed by.
    Value& last = *std::ranges::max_element(entries, is_made_later)->value;
    if (auto copies = repetition(entries, *axis, reader.count(last).value_or(0))) return copies;
    const std::vector<Entry> above = reader.one_step_up(last);
    if (above.empty()) break;
    for (Entry& entry : entries)
      if (entry.value == &last) entry = above[static_cast<size_t>(entry.index)];
  }
  return std::nullopt;
}

std::optional<AxisMap> axes_before_copies(const AxisMap& axes, const Shape& after, const AxisCopies& copies) {
  const auto with_axis = [&](const Shape& parts) {
    Shape shape = after;
    const auto at = shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(copies.axis));
    shape.insert(at, parts.begin(), parts.end());
    return shape;
  };
  const Shape parts = with_axis({copies.rounds, copies.kept, copies.each});
  auto map = axes.regrouped(parts);
  if (map) map = map->before_expand(with_axis({1, copies.kept, 1}), parts);
  if (map) map = map->regrouped(with_axis({copies.kept}));
  return map && map->repeats_interleave() ? map : std::nullopt;
}

}  // namespace attn_opt
