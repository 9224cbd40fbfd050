#include "patterns/around/columns.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/executor.h"
#include "attn_opt/operator_traits.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// Runs a node that moves columns on their numbers. The axes in front have one element: the node leaves them alone.
class ColumnMover {
 public:
  ColumnMover(const Node& node, const Shape& shape, size_t lead, Facts& facts)
      : node_(node), shape_(shape), lead_(lead), facts_(facts) {}

  std::vector<Column> columns_of(const Value& value) {
    if (has(node_, Trait::kRegroups)) return regrouped(value);
    if (!moves_last_axes()) return {};
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      inputs.push_back(i == 0 || node_.is("Concat") ? numbered(*node_.inputs[i]) : parameter(i));
      if (node_.inputs[i] && !inputs.back().has_value()) return {};
    }
    const auto outputs = run_node(*node_.proto, inputs, {{"", node_.graph->model().onnx_opset(node_)}});
    if (!outputs) return {};
    std::vector<Column> columns;
    for (const int64_t at : (*outputs)[static_cast<size_t>(value.output)].data<int64_t>())
      columns.push_back(pool_[static_cast<size_t>(at)]);
    return columns;
  }

 private:
  std::vector<Column> regrouped(const Value& value) {
    const auto after = column_sizes(value, shape_.size() - lead_, facts_);
    const Tensor before = numbered(*node_.inputs[0]);
    return after && before.has_value() && element_count(*after) == before.size() ? pool_ : std::vector<Column>();
  }

  bool is_last(int64_t axis) const {
    const auto counted = axis_in(axis, shape_.size());
    return counted && *counted >= lead_;
  }

  /// True if the node moves nothing along the first axes: where it keeps their sizes it keeps them, unless it turns them round.
  bool moves_last_axes() const {
    if (node_.is("Concat") || node_.is("Split") || node_.is("Gather")) return is_last(node_.int_attribute("axis", 0));
    if (node_.is("Slice")) return steps_forward() || slices_last_axes();
    if (node_.is("Tile") || node_.is("Expand")) return true;
    const auto* order = node_.is("Transpose") ? node_.ints_attribute("perm") : nullptr;
    if (!order) return false;
    for (size_t axis = 0; axis < lead_; ++axis)
      if (order->Get(static_cast<int>(axis)) != static_cast<int64_t>(axis)) return false;
    return true;
  }

  bool steps_forward() const { return !node_.input(4) || facts_.uniform(*node_.inputs[4]) == 1.0; }

  bool slices_last_axes() const {
    const IntegerData* axes = node_.input(3) ? facts_.integers(*node_.inputs[3]) : nullptr;
    return axes &&
           std::ranges::all_of(axes->values, [this](const Dim& axis) { return axis.is_constant() && is_last(axis.value()); });
  }

  /// The places in the pool of the columns of VALUE, which are added to it; none if its first axes are others.
  Tensor numbered(Value& value) {
    const auto axes = axes_behind(value, shape_, lead_, facts_);
    const auto sizes = axes ? column_sizes(value, *axes, facts_) : std::nullopt;
    if (!sizes) return {};
    Dims dims(lead_, 1);
    dims.insert(dims.end(), sizes->begin(), sizes->end());
    Tensor numbers(onnx::TensorProto::INT64, dims);
    const auto places = numbers.mutable_data<int64_t>();
    std::iota(places.begin(), places.end(), static_cast<int64_t>(pool_.size()));
    for (size_t index = 0; index < places.size(); ++index) pool_.push_back({&value, index});
    return numbers;
  }

  Tensor parameter(size_t input) const {
    const IntegerData* given = node_.inputs[input] ? facts_.integers(*node_.inputs[input]) : nullptr;
    if (!given) return {};
    std::vector<int64_t> numbers;
    for (const Dim& number : given->values) {
      if (!number.is_constant()) return {};
      numbers.push_back(number.value());
    }
    return Tensor::of<int64_t>(given->dims, numbers);
  }

  const Node& node_;
  const Shape& shape_;
  size_t lead_;
  Facts& facts_;
  std::vector<Column> pool_;
};

}  // namespace

std::optional<Dims> column_sizes(const Value& value, size_t axes, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  if (!shape) return std::nullopt;
  Dims sizes;
  for (size_t axis = axes; axis-- > 0;) {
    const Dim size = from_last(*shape, axis);
    if (!size.is_constant()) return std::nullopt;
    sizes.push_back(size.value());
  }
  const int64_t count = element_count(sizes);
  return count > 0 && count <= static_cast<int64_t>(kMaxColumns) ? std::optional(sizes) : std::nullopt;
}

std::optional<size_t> axes_behind(const Value& value, const Shape& shape, size_t lead, Facts& facts) {
  const MaybeShape own = facts.shape(value);
  if (!own || own->size() < lead) return std::nullopt;
  for (size_t axis = 0; axis < lead; ++axis)
    if ((*own)[axis] != shape[axis]) return std::nullopt;
  return own->size() - lead;
}

std::vector<Column> moved_columns(const Value& value, size_t lead, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  const Node* node = value.producer;
  if (!shape || shape->size() < lead || !node || !node->domain().empty() || node->inputs.empty() || !node->inputs[0]) return {};
  return ColumnMover(*node, *shape, lead, facts).columns_of(value);
}

size_t broadcast_column(size_t index, const Dims& to, const Dims& from) {
  size_t found = 0, stride = 1;
  for (size_t axis = to.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(to[axis]);
    if (from[axis] != 1) found += index % size * stride;
    stride *= static_cast<size_t>(from[axis]);
    index /= size;
  }
  return found;
}

}  // namespace attn_opt
