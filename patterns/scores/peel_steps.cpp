#include "patterns/scores/peel_steps.h"

#include <cmath>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/same_number.h"
#include "patterns/scores/form_terms.h"

namespace attn_opt {

ScoreWalk step(const ScoreWalk& walk, Value& next, const std::string& what) {
  ScoreWalk after = walk;
  after.value = &next;
  after.peeled.push_back(what);
  return after;
}

std::string shape_text(const Value& value, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  return shape ? to_string(*shape) : "unknown rank";
}

bool keeps_shape(const Value& result, const Value& operand, Facts& facts) {
  const MaybeShape after = facts.shape(result);
  const MaybeShape before = facts.shape(operand);
  if (!after || !before || after->size() != before->size() || before->size() < 2) return false;
  for (size_t axis = 0; axis < after->size(); ++axis) {
    const Dim &was = (*before)[axis], &is = (*after)[axis];
    if (was == is) continue;
    if (was.is(1) || (was.is_constant() && is.is_constant())) return false;
  }
  return true;
}

Matched<Value*> placed_term(Value& term, Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* value = placed(canonical(term, context.facts), walk.layout, *walk.reader, context);
  if (!value) return missed("scores.transpose", &node, "the rank of '" + term.name + "' is not known", walk.peeled);
  return value;
}

int64_t axis_of_keys(const ScoreWalk& walk, size_t rank) {
  return walk.layout.order.empty() ? static_cast<int64_t>(rank) - 1 : walk.layout.order.back();
}

bool joins_keys(const Node& node, const ScoreWalk& walk, size_t rank) {
  const int64_t axis = node.int_attribute("axis", 0);
  return (axis < 0 ? axis + static_cast<int64_t>(rank) : axis) == axis_of_keys(walk, rank);
}

Shape frame_at(const Node& node, const ScoreWalk& walk, MatchContext& context) {
  return walk.layout.placed(context.facts.shape(*node.outputs[0]).known());
}

namespace {

/// What is laid over or added to scores of the shape FRAME.
struct Framed {
  Value* value = nullptr;
  Shape frame;
};

/// TERM as it was before it got the axes of 1 that its frame has, and the frame without them; itself if it was no such value.
Framed before_added_axes(const Framed& term, Facts& facts) {
  const MaybeShape shape = facts.shape(*term.value);
  const Node* node = canonical(*term.value, facts).producer;
  if (!shape || shape->size() != term.frame.size() || !node || !has(*node, Trait::kRegroups)) return term;
  Shape kept, frame;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if (term.frame[axis].is(1) && axis + 2 < shape->size()) continue;  // one query or key has its axis
    kept.push_back((*shape)[axis]);
    frame.push_back(term.frame[axis]);
  }
  const bool drops = kept.size() < shape->size();
  Value* before = drops ? before_regroupings(*node, [&](const Shape& each) { return each == kept; }, facts) : nullptr;
  return before ? Framed{before, std::move(frame)} : term;
}

}  // namespace

Matched<void> place(ScoreForm& form, Node& node, const ScoreWalk& walk, MatchContext& context) {
  const Shape frame = frame_at(node, walk, context);
  for (ScoreCase& one : form) {
    if (one.scale == 0) one.met = &node;
    for (Literal& literal : one.guard) {
      ATTN_OPT_MATCH(Value * placed, placed_term(*literal.condition, node, walk, context));
      const Framed mask = before_added_axes({placed, frame}, context.facts);
      literal = met_over(literal_of({mask.value, literal.holds}, context.facts), mask.frame);
    }
    if (one.scale != 0 && one.number != 0 && !walk.tensor_scales.empty()) {
      InnerValues inner(*walk.reader, context);
      one.addends.push_back({inner.build().scalar(std::exchange(one.number, 0), context.facts.type(*node.outputs[0]))});
    }
    for (Addend& addend : one.addends) {
      ATTN_OPT_MATCH(addend.value, placed_term(*addend.value, node, walk, context));
      addend.frame = frame;
      for (const TensorScale& scale : walk.tensor_scales)
        addend.value =
            InnerValues(*walk.reader, context).build().node(scale.divides ? "Div" : "Mul", {addend.value, scale.value});
    }
  }
  return {};
}

namespace {

/// The wider of the types of ONE and OTHER.
DataType wider_type(const Value& one, const Value& other, Facts& facts) {
  const DataType a = facts.type(one), b = facts.type(other);
  return element_size(b) > element_size(a) ? b : a;
}

}  // namespace

Matched<ScoreWalk> settled(ScoreWalk walk, MatchContext& context) {
  const ScoreForm form = std::exchange(walk.form, core_form());
  auto read = terms_of(form, wider_type(*walk.value, *walk.reader->outputs[0], context.facts), *walk.reader, context);
  if (!read) {
    read.error().peeled = walk.peeled;
    return tl::unexpected<Miss>(std::move(read.error()));
  }
  for (ScoreTerm& term : read->terms) {
    term.coefficient *= walk.scale;
    if (std::abs(term.coefficient) <= std::abs(walk.after_lowering) * (1 + kSameNumber))
      term.after_lowering = walk.after_lowering;
    walk.terms.push_back(std::move(term));
  }
  walk.scale *= read->scale;
  walk.makes_nan_of_infinity |= read->drops_nan;
  return walk;
}

}  // namespace attn_opt
