#include "patterns/joined_parts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"
#include "src/match/shape_rules/reduced_axis.h"

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
    if (!node || !node->domain().empty() || ++nodes_ > kMostJoinedNodes) return nullptr;
    const auto along = acts_along(*node);
    if (!along && !has(*node, Trait::kElementwise)) return nullptr;
    const auto is_alike = [&](const Value* part) {
      const Node* other = part->producer;
      if (!other || part->output != 0 || other->op() != node->op() || !other->domain().empty()) return false;
      if (along) return acts_along(*other) == along;
      return other->inputs.size() == node->inputs.size() && have_same_attributes(*node, *other);
    };
    if (!std::ranges::all_of(parts, is_alike)) return difference_of_wholes(parts);
    return made_of_whole(*node, parts, along ? 1 : node->inputs.size());
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

  /// The axis of which NODE, which keeps the rank, takes each row for itself, if it is another than that of the parts. Before
  /// opset 13 a softmax takes all axes from its own on together.
  std::optional<size_t> acts_along(const Node& node) const {
    const MaybeShape shape = node.input(0) ? facts_.shape(*node.inputs[0]) : nullptr;
    if (!shape || shape->size() != rank_) return std::nullopt;
    std::optional<size_t> own;
    if (node.is("Softmax") || node.is("LogSoftmax")) {
      const bool flattens = node.graph->model().onnx_opset(node) < 13;
      own = axis_in(node.int_attribute("axis", flattens ? 1 : -1), rank_);
      if (flattens && own && axis_ > *own) return std::nullopt;
    } else if (node.op().starts_with("Reduce") && node.int_attribute("keepdims", 1) != 0) {
      own = reduced_axis(node, rank_, facts_);
    }
    return own == axis_ ? std::nullopt : own;
  }

  /// NODE, of which the first JOINED inputs are of parts, and the others are its own.
  Value* made_of_whole(const Node& node, const std::vector<Value*>& parts, size_t joined) {
    std::vector<Value*> operands(node.inputs.begin(), node.inputs.end());
    for (size_t i = 0; i < joined; ++i) {
      operands[i] = nullptr;
      std::vector<Value*> of_parts;
      for (const Value* part : parts) of_parts.push_back(part->producer->inputs[i]);
      if (std::ranges::all_of(of_parts, [](const Value* operand) { return operand == nullptr; })) continue;
      operands[i] = std::ranges::find(of_parts, nullptr) == of_parts.end() ? join(of_parts) : nullptr;
      if (!operands[i]) return nullptr;
    }
    return reader_ ? InnerValues(*reader_, *context_).again(node, operands) : parts[0];
  }

  /// What stands for PARTS that are differences, of which one is a Sub.
  Value* difference_of_wholes(const std::vector<Value*>& parts) {
    std::array<std::vector<Value*>, 2> of_parts;
    const Node* sub = nullptr;
    for (const Value* part : parts) {
      const auto operands = operands_of_difference(*part, facts_);
      if (!operands) return nullptr;
      for (const size_t at : {0, 1}) of_parts[at].push_back((*operands)[at]);
      if (part->producer->is("Sub")) sub = part->producer;
    }
    Value* const minuend = sub ? join(of_parts[0]) : nullptr;
    Value* const subtrahend = minuend ? join(of_parts[1]) : nullptr;
    if (!subtrahend) return nullptr;
    return reader_ ? InnerValues(*reader_, *context_).again(*sub, {minuend, subtrahend}) : parts[0];
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
