#include "patterns/around/linear_columns.h"

#include "attn_opt/canonical.h"

namespace attn_opt {
namespace {

constexpr int kMaxLinearDepth = 16;
/// A rotation has two terms.
constexpr size_t kMaxLinearTerms = 2;

std::vector<LinearColumn> negated(std::vector<LinearColumn> columns) {
  for (LinearColumn& column : columns)
    for (LinearTerm& term : column) term.sign = -term.sign;
  return columns;
}

}  // namespace

const std::vector<LinearColumn>& LinearColumns::of(Value& value) {
  Value& source = canonical(value, facts_);
  const auto known = known_.find(&source);
  if (known != known_.end()) return known->second;
  ++depth_;
  Columns columns = found(source);
  --depth_;
  return known_[&source] = std::move(columns);
}

LinearColumns::Columns LinearColumns::found(Value& value) {
  const auto axes = axes_of(value);
  if (!axes || depth_ > kMaxLinearDepth) return {};
  if (&value == &canonical(x_, facts_)) {
    Columns own;
    for (size_t index = 0; index < static_cast<size_t>(shape_.back().value()); ++index) own.push_back({{.from = index}});
    return own;
  }
  if (!value.producer || !value.producer->domain().empty()) return {};
  const Node& node = *value.producer;
  if (node.is("Neg")) return negated(of(*node.inputs[0]));
  if (node.is("Add") || node.is("Sub")) return sum(node);
  if (node.is("Mul")) return product(node, *axes);
  return moved(value);
}

LinearColumns::Columns LinearColumns::sum(const Node& node) {
  Columns columns = of(*node.inputs[0]);
  const Columns other = node.is("Sub") ? negated(of(*node.inputs[1])) : of(*node.inputs[1]);
  const auto sizes = axes_sizes(*node.inputs[0]);
  if (columns.size() != other.size() || !sizes || sizes != axes_sizes(*node.inputs[1])) return {};
  for (size_t index = 0; index < columns.size(); ++index) {
    LinearColumn& column = columns[index];
    column.insert(column.end(), other[index].begin(), other[index].end());
    if (column.size() > kMaxLinearTerms) return {};
  }
  return columns;
}

std::optional<size_t> LinearColumns::axes_of(const Value& value) {
  const auto axes = axes_behind(value, shape_, shape_.size() - 1, facts_);
  return axes ? axes : axes_behind(value, result_, shape_.size() - 1, facts_);
}

std::optional<Dims> LinearColumns::axes_sizes(const Value& value) {
  const auto axes = axes_of(value);
  return axes ? column_sizes(value, *axes, facts_) : std::nullopt;
}

LinearColumns::Columns LinearColumns::product(const Node& node, size_t axes) {
  const size_t linear = of(*node.inputs[0]).empty() ? 1 : 0;
  const Columns& before = of(*node.inputs[linear]);
  Value& factor = *node.inputs[1 - linear];
  const auto sizes = column_sizes(*node.outputs[0], axes, facts_), own = column_sizes(*node.inputs[linear], axes, facts_);
  const auto of_factor = column_sizes(factor, axes, facts_);
  if (before.empty() || !sizes || !own || !of_factor || !of(factor).empty()) return {};
  Columns columns;
  for (size_t index = 0; index < static_cast<size_t>(element_count(*sizes)); ++index) {
    columns.push_back(before[broadcast_column(index, *sizes, *own)]);
    for (LinearTerm& term : columns.back()) {
      if (term.factor.value) return {};
      term.factor = {&factor, broadcast_column(index, *sizes, *of_factor)};
      term.factor_axes = axes;
    }
  }
  return columns;
}

LinearColumns::Columns LinearColumns::moved(const Value& value) {
  Columns columns;
  for (const Column& column : moved_columns(value, shape_.size() - 1, facts_)) {
    const Columns& sources = of(*column.value);
    if (column.index >= sources.size()) return {};
    columns.push_back(sources[column.index]);
  }
  return columns;
}

}  // namespace attn_opt
