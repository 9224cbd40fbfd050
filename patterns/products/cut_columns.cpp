#include "patterns/products/cut_columns.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/probabilities/part_moves.h"
#include "patterns/products/product_equation.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/readers.h"
#include "patterns/regrouped_axis.h"
#include "patterns/scores/form_reader.h"
#include "src/match/cut_range.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

const IntegerData* integers_of(const Node& node, size_t input, Facts& facts) {
  return node.input(input) ? facts.integers(*node.inputs[input]) : nullptr;
}

/// AXIS of RANK axes, counted from the front.
int64_t from_front(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

/// BEFORE without columns of its axis AXIS, of which FIRST is the number of those in front of AFTER. Nullopt if AFTER has other
/// axes changed as well.
std::optional<CutColumns> without(MaybeShape before, MaybeShape after, size_t axis, int64_t first) {
  if (!before || !after || before->size() != after->size()) return std::nullopt;
  for (size_t other = 0; other < before->size(); ++other)
    if (other != axis && (*before)[other] != (*after)[other]) return std::nullopt;
  const Dim cut = (*before)[axis] - (*after)[axis];
  if (!cut.is_constant() || cut.value() <= 0 || first < 0 || first > cut.value()) return std::nullopt;
  return CutColumns{first, cut.value() - first};
}

/// The output of NODE, a Split, that is LEFT; null: the only one that is read, or nothing if several are.
Value* part_of_split(const Node& node, const Value* left) {
  const auto is_read = [left](const Value* part) { return part && (left ? part == left : !part->unused()); };
  return std::ranges::count_if(node.outputs, is_read) == 1 ? *std::ranges::find_if(node.outputs, is_read) : nullptr;
}

bool may_cut(const Node& node) { return cuts_out(node) || node.is("Pad"); }

/// What NODE leaves as LEFT; null: as the only part that is read.
std::optional<Cut> cut_by(const Node& node, size_t keys, const Value* left, Facts& facts) {
  const MaybeShape before = may_cut(node) && node.input(0) ? facts.shape(*node.inputs[0]) : MaybeShape();
  if (!before || before->size() <= keys) return std::nullopt;
  const size_t axis = before->size() - 1 - keys;
  Value* rest = node.is("Split") ? part_of_split(node, left) : node.output(0);
  if (!rest) return std::nullopt;
  std::optional<int64_t> first;
  if (node.is("Pad")) {
    if (const auto added = padded_columns(node, keys, facts); added && added->behind <= 0) first = -added->in_front;
  } else if (const auto range = cut_range(*rest, facts); range && range->axis == axis && range->first.is_constant()) {
    first = range->first.value();
  }
  const auto columns = first ? without(before, facts.shape(*rest), axis, *first) : std::nullopt;
  return columns ? std::optional(Cut{rest, *columns}) : std::nullopt;
}

/// The input of NODE, a Concat, that is all of AXIS but the columns CUT; null if that is a part of one, or of several.
Value* input_left(const Node& node, const CutColumns& cut, size_t axis, Facts& facts) {
  const MaybeShape whole = facts.shape(*node.outputs[0]);
  if (!whole || from_front(node.int_attribute("axis", 0), whole->size()) != static_cast<int64_t>(axis)) return nullptr;
  Dim first = 0;
  for (Value* input : node.inputs) {
    const MaybeShape shape = facts.shape(*input);
    if (!shape || shape->size() != whole->size()) return nullptr;
    const Dim behind = first + (*shape)[axis];
    if (first == cut.in_front && (*whole)[axis] - behind == cut.behind) return &canonical(*input, facts);
    first = behind;
  }
  return nullptr;
}

/// Cheap: false unless VALUE may be cut off something, or be the transpose of that.
bool may_be_part(Value& value, Facts& facts) {
  const Node* node = canonical(value, facts).producer;
  while (node && node->is("Transpose")) node = canonical(*node->inputs[0], facts).producer;
  return node && may_cut(*node);
}

/// What is cut off along one axis of a value.
struct AxisCut {
  size_t axis = 0;
  CutColumns columns;
  bool drops_axis = false;  ///< one element is left, without its axis
};

/// What a node cuts off to leave LEFT; nullopt if it does anything else.
std::optional<AxisCut> cut_above(const Value& left, Facts& facts) {
  const Node* node = left.producer;
  const MaybeShape whole = node && may_cut(*node) ? facts.shape(*node->inputs[0]) : nullptr;
  for (size_t axis = 0; whole && axis < whole->size(); ++axis)
    if (const auto cut = cut_by(*node, whole->size() - 1 - axis, &left, facts)) return AxisCut{axis, cut->columns};
  if (!whole || !node->is("Gather") || !facts.shape(*node->inputs[1]).has_rank(0)) return std::nullopt;
  const int64_t axis = from_front(node->int_attribute("axis", 0), whole->size());
  const auto index = facts.scalar(*node->inputs[1]);
  if (axis < 0 || axis >= std::ssize(*whole) || !index) return std::nullopt;
  const Dim& size = (*whole)[static_cast<size_t>(axis)];
  if (!size.is_constant()) return std::nullopt;
  const int64_t at = from_front(static_cast<int64_t>(*index), static_cast<size_t>(size.value()));
  if (at < 0 || at >= size.value()) return std::nullopt;
  return AxisCut{static_cast<size_t>(axis), {at, size.value() - 1 - at}, true};
}

/// True if VALUE is 1 everywhere, in whatever words.
bool are_ones(Value& value, Node& reader, MatchContext& context) {
  if (const auto number = context.facts.uniform(value)) return *number == 1;
  const auto form = FormReader(reader, context).numbers(value);
  return form && form->size() == 1 && form->front().addends.empty() && form->front().number == 1;
}

/// What of values is left where columns are cut off.
class LeftColumns {
 public:
  /// What is made stands above READER.
  LeftColumns(CutColumns columns, Node& reader, MatchContext& context)
      : columns_(columns), reader_(reader), context_(context), facts_(context.facts) {}

  /// Of WHOLE, of whose AXIS they are cut off: an input of a Concat, or what a Pad adds ones to, moved, regrouped and repeated
  /// as that is; null: these ones. Nullopt if it is anything else.
  std::optional<Value*> of(Value& whole, size_t axis, int steps = kMaxTogether) {
    const Node* maker = whole.producer;
    if (!maker || !maker->input(0) || steps == 0) return std::nullopt;
    if (maker->is("Concat") || maker->is("Pad")) return of_joined(whole, axis);
    const MaybeShape before = facts_.shape(*maker->inputs[0]), after = facts_.shape(whole);
    if (!before || !after) return std::nullopt;
    const size_t from_last = after->size() - 1 - axis;
    auto source = before_regrouping_beside(whole, from_last, facts_);
    if (maker->is("Expand") && before->size() > from_last && attn_opt::from_last(*before, from_last) == (*after)[axis])
      source = {maker->inputs[0], from_last};
    if (!source) return of_transposed(*maker, axis, steps);
    const size_t rank = facts_.shape(*source->value).known().size();
    const auto left = of(canonical(*source->value, facts_), rank - 1 - source->axis, steps - 1);
    if (!left || !*left) return left;
    InnerValues inner(reader_, context_);
    Value* made = maker->is("Expand") ? repeated(**left, whole, axis, after->size(), inner)
                                      : regrouped_beside(**left, source->axis, *after, from_last, inner, facts_);
    return made ? std::optional(made) : std::nullopt;
  }

 private:
  std::optional<Value*> of_transposed(const Node& maker, size_t axis, int steps) {
    const std::vector<int64_t> perm = permutation(maker, facts_);
    if (perm.empty()) return std::nullopt;
    const auto left = of(canonical(*maker.inputs[0], facts_), static_cast<size_t>(perm[axis]), steps - 1);
    return left && *left ? std::optional(InnerValues(reader_, context_).transposed(*left, perm)) : left;
  }

  /// VALUE, of the rank of WHOLE or less, with the sizes that WHOLE has along other axes than AXIS.
  static Value* repeated(Value& value, Value& whole, size_t axis, size_t rank, InnerValues& inner) {
    std::vector<Value*> sizes;
    for (size_t at = 0; at < rank; ++at)
      sizes.push_back(at == axis ? inner.build().ints({1}) : inner.size(whole, static_cast<int64_t>(at)));
    return inner.build().node("Expand", {&value, inner.concat(sizes, 0)});
  }

  std::optional<Value*> of_joined(Value& whole, size_t axis) {
    const Node* maker = whole.producer;
    if (maker->is("Concat")) {
      Value* values = input_left(*maker, columns_, axis, facts_);
      return values ? std::optional(are_ones(*values, reader_, context_) ? nullptr : values) : std::nullopt;
    }
    const MaybeShape shape = facts_.shape(whole);
    const auto added = shape ? padded_columns(*maker, shape->size() - 1 - axis, facts_) : std::nullopt;
    if (!added || !maker->input(2) || facts_.uniform(*maker->inputs[2]) != 1.0) return std::nullopt;
    if (*added == columns_) return maker->inputs[0];
    const bool are_behind = (*shape)[axis] - added->behind == columns_.in_front && columns_.behind == 0;
    const bool are_in_front = (*shape)[axis] - added->in_front == columns_.behind && columns_.in_front == 0;
    return are_behind || are_in_front ? std::optional<Value*>(nullptr) : std::nullopt;
  }

  CutColumns columns_;
  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
};

}  // namespace

std::optional<Cut> columns_cut_off(const Node& node, size_t keys, Facts& facts) { return cut_by(node, keys, nullptr, facts); }

bool ProductPart::lies(bool swapped) const {
  std::vector<int64_t> wanted(axes.size());
  std::iota(wanted.begin(), wanted.end(), int64_t{0});
  if (swapped && wanted.size() > 1) std::swap(wanted[wanted.size() - 2], wanted.back());
  return axes == wanted;
}

std::optional<ProductPart> part_of_product(Value& value, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  if (!may_be_part(value, facts)) return std::nullopt;
  const Untransposed part = untransposed(value, facts);
  const auto cut = cut_above(*part.value, facts);
  if (!cut) return std::nullopt;
  const Untransposed result = untransposed(*part.value->producer->inputs[0], facts);
  Node* product = result.value->producer;
  const std::vector<Value*> operands =
      product && makes_product(*product, facts) ? operands_of(*product, facts) : std::vector<Value*>();
  const auto letters = operands.size() == 2 ? product_letters(*product, facts) : std::nullopt;
  if (!letters || letters->result.size() != result.at.size() || factor_of_sum(*product, facts) != 1.0) return std::nullopt;
  const char letter = letters->result[static_cast<size_t>(result.at[cut->axis])];
  const size_t operand = has_letter(letters->operands[0], letter) ? 0 : 1;
  if (has_letter(letters->operands[0], letter) == has_letter(letters->operands[1], letter)) return std::nullopt;
  const std::string& term = letters->operands[operand];
  const auto values = LeftColumns(cut->columns, reader, context).of(canonical(*operands[operand], facts), term.find(letter));
  if (!values) return std::nullopt;
  ProductPart found{product, operand, *values};
  std::string named = term;
  InnerValues inner(reader, context);
  if (found.values) found.values = without_unit_axes(found.values, named, inner);
  for (const int64_t at : part.at) {
    const bool lies_behind = cut->drops_axis && at >= static_cast<int64_t>(cut->axis);
    found.axes.push_back(result.at[static_cast<size_t>(at + (lies_behind ? 1 : 0))]);
  }
  return found;
}

bool has_ones_cut_off(const Node& product, Node& reader, MatchContext& context) {
  const auto may_hold_ones = [&](Value* operand) {
    const Node* maker = operand ? before_moves(*operand, context.facts).value->producer : nullptr;
    return maker && (maker->is("Concat") || maker->is("Pad") || maker->is("Expand"));
  };
  if (std::ranges::none_of(product.inputs, may_hold_ones)) return false;
  return std::ranges::any_of(readers_of(*product.outputs[0], context.facts).all, [&](const Reader& other) {
    const bool may_cut_off = other.node && cuts_out(*other.node) && other.node->output(0);
    const auto part = may_cut_off ? part_of_product(*other.node->outputs[0], reader, context) : std::nullopt;
    return part && !part->values;
  });
}

std::optional<CutColumns> padded_columns(const Node& node, size_t keys, Facts& facts) {
  const MaybeShape shape = facts.shape(*node.inputs[0]);
  const IntegerData* pads = integers_of(node, 1, facts);
  if (!shape || shape->size() <= keys || !pads || node.string_attribute("mode", "constant") != "constant") return std::nullopt;
  std::vector<int64_t> axes;
  if (const IntegerData* given = integers_of(node, 3, facts)) {
    for (const Dim& axis : given->values) axes.push_back(axis.is_constant() ? from_front(axis.value(), shape->size()) : -1);
  } else if (!node.input(3)) {
    for (size_t axis = 0; axis < shape->size(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  }
  if (axes.empty() || pads->values.size() != 2 * axes.size()) return std::nullopt;
  CutColumns columns;
  for (size_t i = 0; i < pads->values.size(); ++i) {
    const Dim& count = pads->values[i];
    if (count.is(0)) continue;
    if (!count.is_constant() || axes[i % axes.size()] != static_cast<int64_t>(shape->size() - 1 - keys)) return std::nullopt;
    (i < axes.size() ? columns.in_front : columns.behind) += count.value();
  }
  return columns;
}

std::optional<CutColumns> padded_zeros(const Node& node, size_t keys, Facts& facts) {
  const bool may_add = node.is("Pad") && (!node.input(2) || facts.uniform(*node.inputs[2]) == 0.0);
  const auto added = may_add ? padded_columns(node, keys, facts) : std::nullopt;
  const bool adds = added && !added->is_none() && added->in_front >= 0 && added->behind >= 0;
  return adds ? added : std::nullopt;
}

}  // namespace attn_opt
