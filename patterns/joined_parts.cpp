#include "patterns/joined_parts.h"

#include <algorithm>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

constexpr int kMostJoinedNodes = 8;

class PartJoiner {
 public:
  /// Nothing is made if there is no READER: what stands for the whole then is a part of it.
  PartJoiner(size_t axis, size_t rank, Facts& facts, Node* reader = nullptr, MatchContext* context = nullptr)
      : axis_(axis), rank_(rank), facts_(facts), reader_(reader), context_(context) {}

  Value* join(std::vector<Value*> parts) {
    for (Value*& part : parts) part = &canonical(*part, facts_);
    if (Value* whole = cut_into(parts, axis_, facts_)) {
      found_whole_ = true;
      return whole;
    }
    if (is_one_for_all(parts)) return parts[0];
    const Node* node = parts[0]->producer;
    if (!node || !node->domain().empty() || !has(*node, Trait::kElementwise) || ++nodes_ > kMostJoinedNodes) return nullptr;
    const auto is_alike = [&](const Value* part) {
      const Node* other = part->producer;
      return other && part->output == 0 && other->op() == node->op() && other->domain() == node->domain() &&
             other->inputs.size() == node->inputs.size() && have_same_attributes(*node, *other);
    };
    return std::ranges::all_of(parts, is_alike) ? made_of_whole(*node, parts) : nullptr;
  }

  /// True if what stands for PARTS is longer than one of them.
  bool joins(std::span<Value* const> parts) { return join({parts.begin(), parts.end()}) && found_whole_; }

 private:
  /// True if PARTS are the same value, with one element or none along the axis.
  bool is_one_for_all(const std::vector<Value*>& parts) {
    const MaybeShape own = facts_.shape(*parts[0]);
    const bool broadcasts = own && (own->size() + axis_ < rank_ || (*own)[own->size() + axis_ - rank_].is(1));
    return broadcasts && std::ranges::all_of(parts, [&](Value* part) { return computes_same(*part, *parts[0], facts_); });
  }

  Value* made_of_whole(const Node& node, const std::vector<Value*>& parts) {
    std::vector<Value*> operands(node.inputs.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      std::vector<Value*> of_parts;
      for (const Value* part : parts) of_parts.push_back(part->producer->inputs[i]);
      if (std::ranges::all_of(of_parts, [](const Value* operand) { return operand == nullptr; })) continue;
      operands[i] = std::ranges::find(of_parts, nullptr) == of_parts.end() ? join(of_parts) : nullptr;
      if (!operands[i]) return nullptr;
    }
    return reader_ ? InnerValues(*reader_, *context_).again(node, operands) : parts[0];
  }

  size_t axis_, rank_;
  Facts& facts_;
  Node* reader_;
  MatchContext* context_;
  int nodes_ = 0;
  bool found_whole_ = false;
};

std::optional<size_t> axis_of_concat(const Node& node, Facts& facts) {
  const MaybeShape shape = node.is("Concat") && node.domain().empty() ? facts.shape(*node.outputs[0]) : nullptr;
  return shape ? axis_in(node.int_attribute("axis", 0), shape->size()) : std::nullopt;
}

}  // namespace

Value* cut_into(std::span<Value* const> parts, size_t axis, Facts& facts) {
  Value* source = nullptr;
  Dim next = 0;
  for (Value* part : parts) {
    const auto range = cut_range(canonical(*part, facts), facts);
    if (!range || range->axis != axis || range->first != next) return nullptr;
    Value& from = canonical(*range->source, facts);
    if (source && source != &from) return nullptr;
    source = &from;
    next = next + range->count;
  }
  const MaybeShape whole = source ? facts.shape(*source) : nullptr;
  return whole && (*whole)[axis] == next ? source : nullptr;
}

Value* joined_parts(std::span<Value* const> parts, size_t axis, Node& reader, MatchContext& context) {
  const MaybeShape shape = parts.size() > 1 ? context.facts.shape(*parts[0]) : nullptr;
  if (!shape || axis >= shape->size()) return nullptr;
  Value* whole = PartJoiner(axis, shape->size(), context.facts, &reader, &context).join({parts.begin(), parts.end()});
  const MaybeShape made = whole ? context.facts.shape(*whole) : nullptr;
  Dim length = 0;
  for (const Value* part : parts) {
    const MaybeShape own = context.facts.shape(*part);
    if (!own || own->size() != shape->size()) return nullptr;
    length = length + (*own)[axis];
  }
  // Parts that are the same are no copies of one.
  return made && made->size() == shape->size() && (*made)[axis] == length ? whole : nullptr;
}

Value* joined_parts(const Node& concat, Node& reader, MatchContext& context) {
  const auto axis = axis_of_concat(concat, context.facts);
  return axis ? joined_parts(concat.inputs, *axis, reader, context) : nullptr;
}

bool are_joined_parts(const Node& concat, Facts& facts) {
  const auto axis = axis_of_concat(concat, facts);
  return axis && concat.inputs.size() > 1 &&
         PartJoiner(*axis, facts.shape(*concat.outputs[0]).known().size(), facts).joins(concat.inputs);
}

}  // namespace attn_opt
