#include "patterns/joined_parts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/product_letters.h"
#include "patterns/regrouped_axis.h"
#include "patterns/scores/heads_in_rows.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"
#include "src/match/permutation.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

constexpr int kMostJoinedNodes = 32;
constexpr int kMostNestedParts = 2;

class PartJoiner;

/// What JOINER puts in the place of PARTS along AXIS, counted from the front; null if that is not as long as they are.
Value* joined_by(PartJoiner joiner, std::span<Value* const> parts, size_t axis, Facts& facts);
/// The same, of the inputs of CONCAT; null if it is none.
Value* joined_inputs(const Node& concat, PartJoiner joiner, Facts& facts);

/// Axes are counted from the last, which is that of a value of fewer axes too.
class PartJoiner {
 public:
  /// Nothing is made if there is no READER: what stands for the whole then is a part of it.
  explicit PartJoiner(Facts& facts, Node* reader = nullptr, MatchContext* context = nullptr, int nested = 0)
      : facts_(facts), reader_(reader), context_(context), nested_(nested) {}

  Value* join(std::vector<Value*> parts, size_t axis) {
    for (Value*& part : parts) part = &whole_of_parts(canonical(*part, facts_));
    const MaybeShape shape = facts_.shape(*parts[0]);
    if (!shape) return nullptr;
    if (Value* whole = shape->size() > axis ? cut_into(parts, shape->size() - 1 - axis, facts_) : nullptr) {
      found_whole_ = true;
      return whole;
    }
    if (shape->size() <= axis || attn_opt::from_last(*shape, axis).is(1))
      if (Value* one = one_for_all(parts)) return one;
    if (Value* cut = cut_of_wholes(parts, axis)) return cut;
    if (Value* regrouped = regrouped_whole(parts, axis)) return regrouped;
    turn_products(parts);
    const Node* node = parts[0]->producer;
    if (!node || !node->domain().empty() || ++nodes_ > kMostJoinedNodes) return nullptr;
    const auto axes = axes_of_operands(*node, axis);
    const auto is_alike = [&](const Value* part) {
      const Node* other = part->producer;
      if (!axes || !other || part->output != 0 || other->op() != node->op() || !other->domain().empty()) return false;
      const auto along = acts_along(*node);
      const bool has_same = along ? acts_along(*other) == along : have_same_attributes(*node, *other, facts_);
      return has_same && other->inputs.size() == node->inputs.size() && axes_of_operands(*other, axis) == axes;
    };
    if (!axes || !std::ranges::all_of(parts, is_alike)) return difference_of_wholes(parts, axis);
    return made_of_whole(*node, parts, *axes);
  }

  /// True if what stands for PARTS is longer than one of them.
  bool joins(std::span<Value* const> parts, size_t axis) { return join({parts.begin(), parts.end()}, axis) && found_whole_; }

 private:
  /// How a node reads an operand: along which axis those of the parts are joined.
  struct OperandAxis {
    size_t axis = 0;
    bool is_same = false;   ///< all parts have the same
    bool is_given = false;  ///< it says what the node does, as the axes of a reduction do

    bool operator==(const OperandAxis&) const = default;
  };
  using OperandAxes = std::vector<OperandAxis>;

  /// Turns those of PARTS that are products with their last two axes exchanged, where others are none.
  void turn_products(std::vector<Value*>& parts) {
    const auto is_turned = [](const Value* part) { return part->producer && part->producer->is("Transpose"); };
    if (!reader_ || std::ranges::all_of(parts, is_turned)) return;
    for (Value*& part : parts)
      if (Value* product = is_turned(part) ? turned_product(*part->producer, *context_) : nullptr) part = product;
  }

  /// What stands for the parts that PART is made of; PART itself if there are none.
  Value& whole_of_parts(Value& part) {
    const Node* node = reader_ && nested_ < kMostNestedParts ? part.producer : nullptr;
    Value* whole = node ? joined_inputs(*node, PartJoiner(facts_, reader_, context_, nested_ + 1), facts_) : nullptr;
    return whole ? canonical(*whole, facts_) : part;
  }

  /// What is cut out of what stands for the sources of PARTS, each cut alike along another axis; null if they are not.
  Value* cut_of_wholes(const std::vector<Value*>& parts, size_t axis) {
    const auto first = cut_range(*parts[0], facts_);
    const MaybeShape shape = facts_.shape(*parts[0]);
    if (!first || !shape || !first->first.is_constant() || !first->count.is_constant() ||
        shape->size() - 1 - axis == first->axis)
      return nullptr;
    std::vector<Value*> sources;
    for (const Value* part : parts) {
      const auto range = cut_range(*part, facts_);
      if (!range || range->axis != first->axis || range->first != first->first || range->count != first->count) return nullptr;
      sources.push_back(range->source);
    }
    Value* whole = ++nodes_ > kMostJoinedNodes ? nullptr : join(sources, axis);
    if (!whole || !reader_) return whole ? parts[0] : nullptr;
    InnerValues inner(*reader_, *context_);
    const int64_t begin = first->first.value(), end = begin + first->count.value();
    return inner.slice(whole, inner.build().ints({begin}), inner.build().ints({end}), static_cast<int64_t>(first->axis));
  }

  /// What PARTS are regrouped from, joined, and regrouped as they are; null if they are not, or not beside the axis alone.
  Value* regrouped_whole(const std::vector<Value*>& parts, size_t axis) {
    std::vector<Value*> sources;
    std::optional<size_t> from;
    for (const Value* part : parts) {
      const auto own = before_regrouping_beside(*part, axis, facts_);
      if (!own || (from && own->axis != from)) return nullptr;
      from = own->axis;
      sources.push_back(own->value);
    }
    Value* whole = ++nodes_ > kMostJoinedNodes ? nullptr : join(sources, *from);
    if (!whole || !reader_) return whole ? parts[0] : nullptr;
    InnerValues inner(*reader_, *context_);
    return regrouped_beside(*whole, *from, facts_.shape(*parts[0]).known(), axis, inner, facts_);
  }

  /// PARTS, if they are one value.
  Value* one_for_all(const std::vector<Value*>& parts) {
    const auto is_same = [&](Value* part) { return computes_same(*part, *parts[0], facts_); };
    return std::ranges::all_of(parts, is_same) ? &canonical(*parts[0], facts_) : nullptr;
  }

  /// How NODE, which makes a part of which others lie along AXIS, reads its operands; nullopt if it does not make each place
  /// there of that place of theirs.
  std::optional<OperandAxes> axes_of_operands(const Node& node, size_t axis) const {
    OperandAxes axes(node.inputs.size(), {axis});
    if (has(node, Trait::kElementwise)) return axes;
    const MaybeShape made = facts_.shape(*node.outputs[0]);
    if (!made || made->size() <= axis) return std::nullopt;
    const size_t place = made->size() - 1 - axis;
    if (node.is("Concat"))
      return axis_in(node.int_attribute("axis", 0), made->size()) == place ? std::nullopt : std::optional(axes);
    if (const auto letters = product_letters(node, facts_)) return axes_of_factors(*letters, place, node.inputs.size());
    const std::vector<int64_t> perm = permutation(node, made->size());
    if (!perm.empty()) return OperandAxes{{made->size() - 1 - static_cast<size_t>(perm[place])}};
    const auto along = acts_along(node);
    if (!along || *along == place || (flattens(node) && place > *along)) return std::nullopt;
    for (size_t i = 1; i < axes.size(); ++i) axes[i].is_given = true;
    return axes;
  }

  /// The axis of each of COUNT operands of a product of LETTERS that the axis PLACE of the result is.
  static std::optional<OperandAxes> axes_of_factors(const ProductLetters& letters, size_t place, size_t count) {
    if (letters.operands.size() != count || place >= letters.result.size() || letters.result[place] == kUnitAxis)
      return std::nullopt;
    OperandAxes axes;
    for (const std::string& operand : letters.operands) {
      const size_t found = operand.find(letters.result[place]);
      const bool is_same = found == std::string::npos;
      axes.push_back({is_same ? 0 : operand.size() - 1 - found, is_same});
    }
    return axes;
  }

  /// The axis of which NODE, which keeps the rank, takes each row for itself, or the first of those.
  std::optional<size_t> acts_along(const Node& node) const {
    const MaybeShape shape = node.input(0) ? facts_.shape(*node.inputs[0]) : nullptr;
    if (!shape) return std::nullopt;
    if (node.is("Softmax") || node.is("LogSoftmax")) return axis_in(softmax_axis(node), shape->size());
    const bool keeps_rank = has(node, Trait::kReduces) && node.int_attribute("keepdims", 1) != 0;
    return keeps_rank ? reduced_axis(node, shape->size(), facts_) : std::nullopt;
  }

  /// NODE, whose operands of all parts lie along AXES: of some parts the other way round, where the order does not matter.
  Value* made_of_whole(const Node& node, const std::vector<Value*>& parts, const OperandAxes& axes) {
    constexpr size_t kMostExchanged = 3;
    const bool commutes = has(node, Trait::kCommutes) && node.inputs.size() == 2 && parts.size() <= kMostExchanged;
    Value* made = nullptr;
    for (unsigned exchanged = 0; !made && exchanged < (commutes ? 1U << (parts.size() - 1) : 1U); ++exchanged)
      made = made_of_operands(node, parts, axes, exchanged);
    return made;
  }

  /// The same, where the second part has its two operands the other way round if EXCHANGED has the lowest bit, and so on.
  Value* made_of_operands(const Node& node, const std::vector<Value*>& parts, const OperandAxes& axes, unsigned exchanged) {
    std::vector<Value*> operands(node.inputs.begin(), node.inputs.end());
    for (size_t i = 0; i < operands.size(); ++i) {
      std::vector<Value*> of_parts;
      for (size_t part = 0; part < parts.size(); ++part) {
        const bool is_exchanged = part > 0 && ((exchanged >> (part - 1)) & 1U) != 0;
        of_parts.push_back(parts[part]->producer->inputs[is_exchanged ? 1 - i : i]);
      }
      if (axes[i].is_given || std::ranges::all_of(of_parts, [](const Value* operand) { return operand == nullptr; })) continue;
      if (std::ranges::find(of_parts, nullptr) != of_parts.end()) return nullptr;
      operands[i] = axes[i].is_same ? one_for_all(of_parts) : join(of_parts, axes[i].axis);
      if (!operands[i]) return nullptr;
    }
    return reader_ ? InnerValues(*reader_, *context_).again(node, operands) : parts[0];
  }

  /// What stands for PARTS that are differences, of which one is a Sub.
  Value* difference_of_wholes(const std::vector<Value*>& parts, size_t axis) {
    std::array<std::vector<Value*>, 2> of_parts;
    const Node* sub = nullptr;
    for (const Value* part : parts) {
      const auto operands = operands_of_difference(*part, facts_);
      if (!operands) return nullptr;
      for (const size_t at : {0, 1}) of_parts[at].push_back((*operands)[at]);
      if (part->producer->is("Sub")) sub = part->producer;
    }
    Value* const minuend = sub ? join(of_parts[0], axis) : nullptr;
    Value* const subtrahend = minuend ? join(of_parts[1], axis) : nullptr;
    if (!subtrahend) return nullptr;
    return reader_ ? InnerValues(*reader_, *context_).again(*sub, {minuend, subtrahend}) : parts[0];
  }

  Facts& facts_;
  Node* reader_;
  MatchContext* context_;
  int nested_;  ///< how many that are made of parts the parts are within
  int nodes_ = 0;
  bool found_whole_ = false;
};

std::optional<size_t> axis_of_concat(const Node& node, Facts& facts) {
  const MaybeShape shape = node.is("Concat") && node.domain().empty() ? facts.shape(*node.outputs[0]) : nullptr;
  return shape ? axis_in(node.int_attribute("axis", 0), shape->size()) : std::nullopt;
}

Value* joined_by(PartJoiner joiner, std::span<Value* const> parts, size_t axis, Facts& facts) {
  const MaybeShape shape = parts.size() > 1 ? facts.shape(*parts[0]) : nullptr;
  if (!shape || axis >= shape->size()) return nullptr;
  Value* whole = joiner.join({parts.begin(), parts.end()}, shape->size() - 1 - axis);
  const MaybeShape made = whole ? facts.shape(*whole) : nullptr;
  Dim length = 0;
  for (const Value* part : parts) {
    const MaybeShape own = facts.shape(*part);
    if (!own || own->size() != shape->size()) return nullptr;
    length = length + (*own)[axis];
  }
  // Parts that are the same are no copies of one.
  return made && made->size() == shape->size() && (*made)[axis] == length ? &canonical(*whole, facts) : nullptr;
}

Value* joined_inputs(const Node& concat, PartJoiner joiner, Facts& facts) {
  const auto axis = axis_of_concat(concat, facts);
  return axis ? joined_by(joiner, concat.inputs, *axis, facts) : nullptr;
}

}  // namespace

std::optional<std::array<Value*, 2>> operands_of_difference(const Value& part, Facts& facts) {
  const Node* node = part.producer;
  if (!node || node->inputs.size() != 2) return std::nullopt;
  if (node->is("Sub")) return std::array{node->inputs[0], node->inputs[1]};
  for (const size_t at : {0, 1}) {
    const Node* negation = node->is("Add") ? canonical(*node->inputs[at], facts).producer : nullptr;
    if (negation && negation->is("Neg")) return std::array{node->inputs[1 - at], negation->inputs[0]};
  }
  return std::nullopt;
}

Value* cut_into(std::span<Value* const> parts, size_t axis, Facts& facts) {
  const auto seen = [&facts](Value& value) -> Value& { return canonical(value, facts); };
  const auto joined = joined_range(parts, axis, seen, facts);
  const MaybeShape whole = joined ? facts.shape(*joined->source) : nullptr;
  return whole && (*whole)[axis] == joined->count ? joined->source : nullptr;
}

Value* joined_parts(std::span<Value* const> parts, size_t axis, Node& reader, MatchContext& context) {
  return joined_by(PartJoiner(context.facts, &reader, &context), parts, axis, context.facts);
}

Value* joined_parts(const Node& concat, Node& reader, MatchContext& context) {
  return joined_inputs(concat, PartJoiner(context.facts, &reader, &context), context.facts);
}

bool are_joined_parts(const Node& concat, Facts& facts) {
  const auto axis = axis_of_concat(concat, facts);
  return axis && concat.inputs.size() > 1 &&
         PartJoiner(facts).joins(concat.inputs, facts.shape(*concat.outputs[0]).known().size() - 1 - *axis);
}

}  // namespace attn_opt
