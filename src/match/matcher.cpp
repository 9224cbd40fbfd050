#include "attn_opt/matcher.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "attn_opt/canonical.h"
#include "src/graph/operator_text.h"
#include "src/match/match_trial.h"
#include "src/match/node_forms.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// BODY within a trial: what it captures is taken back if it fails.
template <class Body>
bool attempt(Body body) {
  std::optional<MatchTrial> own;
  if (!MatchTrial::current()) own.emplace(false);
  MatchTrial& trial = *MatchTrial::current();
  const size_t mark = trial.mark();
  trial.enter();
  const bool fits = body();
  trial.leave();
  if (!fits) trial.roll_back(mark);
  return fits;
}

/// FITS, and where it is false VALUE is noted as no WANTED.
bool told(bool fits, const Value& value, const std::string& wanted) {
  if (MatchTrial* trial = MatchTrial::current(); trial && !fits) trial->misfit(value, wanted);
  return fits;
}

std::string text_of(double number) {
  std::string text = std::to_string(number);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

bool is_near(double found, double wanted, double relative) { return std::abs(found - wanted) <= relative * std::abs(wanted); }

/// True if NODE is of OP_TYPE, "Op" of ai.onnx or "domain::Op".
bool is_operator(const Node* node, const std::string& op_type) {
  const OperatorText wanted(op_type);
  return node && node->op() == wanted.op && node->domain() == wanted.domain;
}

bool is_same(Value& one, Value& other, Facts& facts) { return &canonical(one, facts) == &canonical(other, facts); }

bool operands_fit(const Node& node, const std::vector<OperandMatcher>& inputs, Facts& facts) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value* input = node.input(i);
    if (input ? !inputs[i].fits(*input, facts) : !inputs[i].is_optional) return false;
  }
  return true;
}

}  // namespace

Matcher any(Value** capture) {
  return [=](Value& value, Facts& facts) {
    const MatchTrial* trial = MatchTrial::current();
    if (trial && trial->is_bound(capture) && !is_same(value, **capture, facts))
      return told(false, value, "'" + (*capture)->name + "'");
    MatchTrial::capture(capture, &value);
    return true;
  };
}

Matcher same(Value** bound) {
  return [=](Value& value, Facts& facts) {
    MatchTrial* trial = MatchTrial::current();
    if (!*bound && trial) return trial->bind(bound, value), true;
    return told(*bound && is_same(value, **bound, facts), value, *bound ? "'" + (*bound)->name + "'" : "the same");
  };
}

Matcher number(double* capture) {
  return [=](Value& value, Facts& facts) {
    const auto known = facts.uniform(value);
    if (known) MatchTrial::capture(capture, *known);
    return told(known.has_value(), value, "a number");
  };
}

Matcher number_is(double wanted) {
  return [=](Value& value, Facts& facts) { return told(facts.uniform(value) == wanted, value, text_of(wanted)); };
}

Matcher number_near(double wanted, double relative) {
  return [=](Value& value, Facts& facts) {
    const auto known = facts.uniform(value);
    return told(known && is_near(*known, wanted, relative), value, "about " + text_of(wanted));
  };
}

Matcher integers_are(const std::vector<int64_t>& wanted) {
  return [wanted = std::vector<Dim>(wanted.begin(), wanted.end())](Value& value, Facts& facts) {
    const IntegerData* known = facts.integers(value);
    return told(known && std::ranges::equal(known->values, wanted), value, "these integers");
  };
}

OperandMatcher optional(Matcher matcher) { return {std::move(matcher), true}; }

Matcher op(const std::string& op_type, const std::vector<OperandMatcher>& inputs, Node** capture) {
  return [=](Value& value, Facts& facts) {
    const Value& seen = canonical(value, facts);
    Node* node = seen.producer;
    if (seen.output != 0 || !is_operator(node, op_type)) return told(false, seen, op_type);
    return attempt([&] {
      if (!operands_fit(*node, inputs, facts)) return false;
      MatchTrial::capture(capture, node);
      return true;
    });
  };
}

Matcher commuted(const std::string& op_type, const Matcher& one, const Matcher& other, Node** capture) {
  return either({op(op_type, {one, other}, capture), op(op_type, {other, one}, capture)});
}

Matcher either(const std::vector<Matcher>& alternatives) {
  return [=](Value& value, Facts& facts) {
    return std::ranges::any_of(alternatives, [&](const Matcher& m) { return attempt([&] { return m(value, facts); }); });
  };
}

Matcher repeated(const std::string& op_type, const Matcher& inner, int most) {
  return [=](Value& value, Facts& facts) {
    Value* seen = &value;
    for (int times = 0; times <= most; ++times) {
      if (attempt([&] { return inner(*seen, facts); })) return true;
      Value& source = canonical(*seen, facts);
      if (source.output != 0 || !is_operator(source.producer, op_type) || !source.producer->input(0)) return false;
      seen = source.producer->input(0);
    }
    return false;
  };
}

Matcher where(const Matcher& inner, const NodeTest& test) {
  return [=](Value& value, Facts& facts) {
    const Node* node = canonical(value, facts).producer;
    return told(node && test(*node), value, "as its attributes are to be") && attempt([&] { return inner(value, facts); });
  };
}

NodeTest attribute_is(const std::string& name, int64_t wanted, int64_t otherwise) {
  return [=](const Node& node) { return node.int_attribute(name, otherwise) == wanted; };
}

NodeTest attribute_is(const std::string& name, const std::string& wanted, const std::string& otherwise) {
  return [=](const Node& node) { return node.string_attribute(name, otherwise) == wanted; };
}

NodeTest attribute_is_ints(const std::string& name, const std::vector<int64_t>& wanted) {
  return [=](const Node& node) {
    const auto* given = node.ints_attribute(name);
    return given ? std::ranges::equal(*given, wanted) : wanted.empty();
  };
}

NodeTest attribute_near(const std::string& name, double wanted, double otherwise, double relative) {
  return [=](const Node& node) { return is_near(node.float_attribute(name, static_cast<float>(otherwise)), wanted, relative); };
}

Matcher reduced_over(const std::string& op_type, const std::vector<int64_t>& axes, const Matcher& input) {
  return [=](Value& value, Facts& facts) {
    if (!op(op_type, {input})(value, facts)) return false;
    // Not captured by op(): what is captured is taken back later, and a local is gone by then.
    const Node& node = *canonical(value, facts).producer;
    const MaybeShape shape = facts.shape(*node.inputs[0]);
    if (!shape || node.int_attribute("keepdims", 1) != 1) return told(false, value, "of a kept axis");
    std::vector<size_t> wanted;
    for (const int64_t axis : axes) wanted.push_back(axis_in(axis, shape->size()).value_or(shape->size()));
    std::ranges::sort(wanted);
    return told(reduced_axes(node, shape->size(), facts) == wanted, value, "over these axes");
  };
}

Matcher reduced_over_last(const std::string& op_type, const Matcher& input) { return reduced_over(op_type, {-1}, input); }

Matched<void> fits(const Matcher& matcher, Value& value, Facts& facts, const std::string& id) {
  MatchTrial trial(true);
  if (matcher(value, facts)) return {};
  return missed(id, trial.furthest(), trial.found());
}

}  // namespace attn_opt
