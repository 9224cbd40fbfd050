#include "attn_opt/matcher.h"

#include <algorithm>
#include <utility>

#include "attn_opt/canonical.h"
#include "src/match/reduced_axis.h"

namespace attn_opt {

Matcher any(Value** capture) {
  return [=](Value& value, Facts&) {
    if (capture) *capture = &value;
    return true;
  };
}

Matcher same(Value* const* bound) {
  return [=](Value& value, Facts& facts) { return &canonical(value, facts) == &canonical(**bound, facts); };
}

Matcher number(double* capture) {
  return [=](Value& value, Facts& facts) {
    const auto known = facts.uniform(value);
    if (known && capture) *capture = *known;
    return known.has_value();
  };
}

Matcher number_is(double wanted) {
  return [=](Value& value, Facts& facts) { return facts.uniform(value) == wanted; };
}

Matcher op(std::string op_type, std::vector<Matcher> inputs, Node** capture) {
  return [=](Value& value, Facts& facts) {
    const Value& seen = canonical(value, facts);
    Node* node = seen.producer;
    if (!node || seen.output != 0 || !node->is(op_type) || node->inputs.size() < inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!node->inputs[i] || !inputs[i](*node->inputs[i], facts)) return false;
    if (capture) *capture = node;
    return true;
  };
}

Matcher commuted(std::string op_type, Matcher one, Matcher other, Node** capture) {
  return either({op(op_type, {one, other}, capture), op(op_type, {other, one}, capture)});
}

Matcher either(std::vector<Matcher> alternatives) {
  return [=](Value& value, Facts& facts) {
    return std::any_of(alternatives.begin(), alternatives.end(), [&](const Matcher& m) { return m(value, facts); });
  };
}

Matcher reduced_over_last(std::string op_type, Matcher input) {
  return [=](Value& value, Facts& facts) {
    Node* node = nullptr;
    if (!op(op_type, {input}, &node)(value, facts) || node->int_attribute("keepdims", 1) != 1) return false;
    const MaybeShape shape = facts.shape(*node->inputs[0]);
    if (!shape) return false;
    const auto axis = reduced_axis(*node, shape->size(), facts);
    return axis && *axis + 1 == shape->size();
  };
}

}  // namespace attn_opt
