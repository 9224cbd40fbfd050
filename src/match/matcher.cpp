#include "attn_opt/matcher.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "attn_opt/canonical.h"
#include "src/match/match_trial.h"
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

bool operands_fit(const Node& node, const std::vector<OperandMatcher>& inputs, Facts& facts) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value* input = node.input(i);
    if (input ? !inputs[i].fits(*input, facts) : !inputs[i].is_optional) return false;
  }
  return true;
}

}  // namespace

Matcher any(Value** capture) {
  return [=](Value& value, Facts&) {
    MatchTrial::capture(capture, &value);
    return true;
  };
}

Matcher same(Value* const* bound) {
  return [=](Value& value, Facts& facts) {
    return told(*bound && &canonical(value, facts) == &canonical(**bound, facts), value,
                *bound ? "'" + (*bound)->name + "'" : "the same");
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

OperandMatcher optional(Matcher matcher) { return {std::move(matcher), true}; }

Matcher op(std::string op_type, std::vector<OperandMatcher> inputs, Node** capture) {
  return [=](Value& value, Facts& facts) {
    const Value& seen = canonical(value, facts);
    Node* node = seen.producer;
    if (!node || seen.output != 0 || !node->is(op_type)) return told(false, seen, op_type);
    return attempt([&] {
      if (!operands_fit(*node, inputs, facts)) return false;
      MatchTrial::capture(capture, node);
      return true;
    });
  };
}

Matcher commuted(std::string op_type, Matcher one, Matcher other, Node** capture) {
  return either({op(op_type, {one, other}, capture), op(op_type, {other, one}, capture)});
}

Matcher either(std::vector<Matcher> alternatives) {
  return [=](Value& value, Facts& facts) {
    return std::any_of(alternatives.begin(), alternatives.end(),
                       [&](const Matcher& m) { return attempt([&] { return m(value, facts); }); });
  };
}

Matcher repeated(std::string op_type, Matcher inner, int most) {
  return [=](Value& value, Facts& facts) {
    Value* seen = &value;
    for (int times = 0; times <= most; ++times) {
      if (attempt([&] { return inner(*seen, facts); })) return true;
      Value& source = canonical(*seen, facts);
      if (!source.producer || source.output != 0 || !source.producer->is(op_type) || !source.producer->input(0)) return false;
      seen = source.producer->input(0);
    }
    return false;
  };
}

Matcher where(Matcher inner, NodeTest test) {
  return [=](Value& value, Facts& facts) {
    const Node* node = canonical(value, facts).producer;
    return told(node && test(*node), value, "as its attributes are to be") && attempt([&] { return inner(value, facts); });
  };
}

NodeTest attribute_is(std::string name, int64_t wanted, int64_t otherwise) {
  return [=](const Node& node) { return node.int_attribute(name, otherwise) == wanted; };
}

NodeTest attribute_is(std::string name, std::string wanted, std::string otherwise) {
  return [=](const Node& node) { return node.string_attribute(name, otherwise) == wanted; };
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

Matched<void> fits(const Matcher& matcher, Value& value, Facts& facts, const std::string& id) {
  MatchTrial trial(true);
  if (matcher(value, facts)) return {};
  return missed(id, trial.furthest(), trial.found());
}

}  // namespace attn_opt
