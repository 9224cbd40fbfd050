#include "src/match/positions/position_table.h"

#include <algorithm>
#include <cstring>

namespace attn_opt {
namespace {

constexpr size_t kMaxConditions = 6;

bool bit(size_t bits, size_t index) { return (bits >> index & 1) != 0; }

bool is_turned(const IndexForm& form) {
  const auto first = std::ranges::find_if(form.factors, [](int64_t f) { return f != 0; });
  return first != form.factors.end() && *first < 0;
}

size_t position_of(const IndexForm& form, const std::vector<IndexForm>& forms) {
  return static_cast<size_t>(std::ranges::find(forms, form) - forms.begin());
}

/// TABLE's values over CONDITIONS, which hold all of its own.
Tensor spread(const PositionTable& table, const std::vector<IndexForm>& conditions) {
  std::vector<size_t> places;
  for (const IndexForm& own : table.conditions) places.push_back(position_of(own, conditions));
  const size_t count = size_t{1} << conditions.size(), width = element_size(table.values.type());
  Tensor values(table.values.type(), {static_cast<int64_t>(count)});
  for (size_t truths = 0; truths < count; ++truths) {
    size_t own = 0;
    for (size_t i = 0; i < places.size(); ++i) own |= size_t{bit(truths, places[i])} << i;
    std::memcpy(values.mutable_bytes().data() + truths * width, table.values.bytes().data() + own * width, width);
  }
  return values;
}

/// True if no index makes the conditions what TRUTHS says: of two that differ in their offsets alone the one with the
/// smaller offset holds without the other.
bool is_contradiction(size_t truths, const std::vector<IndexForm>& conditions) {
  for (size_t one = 0; one < conditions.size(); ++one)
    for (size_t other = 0; other < conditions.size(); ++other)
      if (bit(truths, one) && !bit(truths, other) && conditions[one].is_parallel_to(conditions[other]) &&
          (conditions[other].offset - conditions[one].offset).never_negative())
        return true;
  return false;
}

}  // namespace

PositionTable PositionTable::of_number(double number, DataType type) {
  const auto value = Tensor::of<double>({1}, {number}).cast(type);
  return {{}, value ? *value : Tensor()};
}

std::optional<PositionTable> PositionTable::of_condition(const IndexForm& form) {
  return with_positive_factors({{form}, Tensor::of<bool>({2}, {false, true})});
}

std::optional<PositionTable> with_positive_factors(PositionTable table) {
  size_t turned = 0;
  for (size_t i = 0; i < table.conditions.size(); ++i) {
    if (!is_turned(table.conditions[i])) continue;
    // The form is not negative exactly if -1 less the form is.
    auto otherwise = sum({{}, -1}, table.conditions[i], -1);
    if (!otherwise) return std::nullopt;
    table.conditions[i] = *std::move(otherwise);
    turned |= size_t{1} << i;
  }
  if (turned == 0) return table;
  const Tensor before = std::move(table.values);
  const size_t width = element_size(before.type());
  table.values = Tensor(before.type(), before.dims());
  std::byte* to = table.values.mutable_bytes().data();
  for (size_t truths = 0; truths < size_t{1} << table.conditions.size(); ++truths, to += width)
    std::memcpy(to, before.bytes().data() + (truths ^ turned) * width, width);
  return table;
}

std::vector<PositionTable> aligned(std::span<const PositionTable> tables) {
  std::vector<IndexForm> conditions;
  for (const PositionTable& table : tables)
    for (const IndexForm& form : table.conditions)
      if (position_of(form, conditions) == conditions.size()) conditions.push_back(form);
  std::vector<PositionTable> result;
  if (conditions.size() > kMaxConditions) return result;
  for (const PositionTable& table : tables) result.push_back({conditions, spread(table, conditions)});
  return result;
}

PossibleValues possible_values(const PositionTable& table, const Shape& shape) {
  PossibleValues possible;
  std::vector<std::optional<bool>> decided;
  for (const IndexForm& form : table.conditions) {
    const IndexForm reduced = without_single_axes(form, shape);
    decided.push_back(is_never_negative(reduced, shape));
    if (!decided.back() && position_of(reduced, possible.conditions) == possible.conditions.size())
      possible.conditions.push_back(reduced);
  }
  const auto numbers = table.values.cast(onnx::TensorProto::DOUBLE);
  if (!numbers) return possible;
  for (size_t truths = 0; truths < size_t{1} << possible.conditions.size(); ++truths) {
    if (is_contradiction(truths, possible.conditions)) continue;
    size_t index = 0;
    for (size_t i = 0; i < table.conditions.size(); ++i) {
      const size_t place = position_of(without_single_axes(table.conditions[i], shape), possible.conditions);
      index |= size_t{decided[i] ? *decided[i] : bit(truths, place)} << i;
    }
    possible.cases.push_back({static_cast<uint32_t>(truths), numbers->data<double>()[index]});
  }
  return possible;
}

}  // namespace attn_opt
