#include "patterns/scores/score_form.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attn_opt {
namespace {

/// No score is as large.
constexpr double kAboveScores = 1e30;
constexpr size_t kMaxCases = 16;

bool contains(const std::vector<Literal>& literals, const Literal& literal) {
  return std::ranges::find(literals, literal) != literals.end();
}

bool contains_all(const std::vector<Literal>& literals, const std::vector<Literal>& wanted) {
  return std::ranges::all_of(wanted, [&](const Literal& literal) { return contains(literals, literal); });
}

bool contradicts(const std::vector<Literal>& literals, const std::vector<Literal>& others) {
  return std::ranges::any_of(others, [&](const Literal& literal) { return contains(literals, literal.negated()); });
}

std::vector<Literal> both(std::vector<Literal> guard, const std::vector<Literal>& other) {
  for (const Literal& literal : other)
    if (!contains(guard, literal)) guard.push_back(literal);
  return guard;
}

template <class T>
void take_all(std::vector<T>& into, const std::vector<T>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

bool are_alike(const ScoreCase& one, const ScoreCase& other) {
  return one.scale == other.scale && one.number == other.number && one.addends == other.addends;
}

/// What is known to hold where no case of FORM before INDEX does.
std::vector<Literal> known_behind(const ScoreForm& form, size_t index) {
  std::vector<Literal> known;
  for (size_t earlier = 0; earlier < index; ++earlier)
    if (form[earlier].guard.size() == 1) known = both(std::move(known), {form[earlier].guard[0].negated()});
  return known;
}

/// Adds CASE to FORM, without what is known by then, unless nothing is left for it.
void append(ScoreForm& form, ScoreCase added) {
  const std::vector<Literal> known = known_behind(form, form.size());
  std::erase_if(added.guard, [&](const Literal& literal) { return contains(known, literal); });
  const bool is_taken =
      std::ranges::any_of(form, [&](const ScoreCase& earlier) { return contains_all(added.guard, earlier.guard); });
  if (is_taken || contradicts(added.guard, added.guard) || contradicts(known, added.guard) || contradicts(known, known)) return;
  if (!form.empty() && are_alike(form.back(), added) && contains_all(form.back().guard, added.guard)) {
    take_all(added.dropped, form.back().dropped);
    form.pop_back();
  }
  form.push_back(std::move(added));
}

std::optional<ScoreForm> unless_too_large(ScoreForm form) {
  return form.size() <= kMaxCases ? std::optional(std::move(form)) : std::nullopt;
}

/// What MAKE makes of a case of A and one of B, wherever both hold, and what either dropped.
template <class Make>
std::optional<ScoreForm> by_cases(const ScoreForm& a, const ScoreForm& b, Make make) {
  ScoreForm form;
  for (const ScoreCase& one : a)
    for (const ScoreCase& other : b) {
      std::optional<ScoreCase> made = make(one, other);
      if (!made) return std::nullopt;
      made->guard = both(one.guard, other.guard);
      for (const std::vector<Value*>* dropped : {&one.dropped, &other.dropped})
        for (Value* value : *dropped)
          if (std::ranges::find(made->dropped, value) == made->dropped.end()) made->dropped.push_back(value);
      append(form, *std::move(made));
    }
  return unless_too_large(std::move(form));
}

std::optional<ScoreCase> scaled(const ScoreCase& one, double factor) {
  ScoreCase made{{}, one.scale * factor, one.number * factor, one.addends, one.met, one.dropped};
  if (std::isnan(made.scale) || std::isnan(made.number)) return std::nullopt;
  if (factor == 0) {
    for (const Addend& addend : made.addends) made.dropped.push_back(addend.value);
    made.addends.clear();
  }
  for (Addend& addend : made.addends) addend.coefficient *= factor;
  return made;
}

std::optional<ScoreCase> added(const ScoreCase& one, const ScoreCase& other) {
  ScoreCase made = one;
  made.scale += other.scale;
  made.number += other.number;
  if (other.met) made.met = other.met;
  take_all(made.addends, other.addends);
  take_all(made.dropped, other.dropped);
  return std::isnan(made.number) ? std::nullopt : std::optional(std::move(made));
}

}  // namespace

Literal literal_of(const Condition& condition, Facts& facts) {
  const Condition seen = affirmed(condition, facts);
  return {seen.value, seen.is_true, laid_booleans(seen, facts)};
}

Literal met_over(Literal literal, const Shape& frame) {
  literal.laid = without_unit_axes(std::move(literal.laid), frame);
  literal.frame = frame;
  return literal;
}

ScoreForm core_form() { return {{{}, 1}}; }
ScoreForm number_form(double number) { return {{{}, 0, number}}; }
ScoreForm value_form(Value& value) { return {{{}, 0, 0, {{&value}}}}; }
ScoreForm nothing_form(Value& value) { return {{{}, 0, 0, {}, nullptr, {&value}}}; }

bool is_scale(const ScoreForm& form) {
  return form.size() == 1 && form[0].scale != 0 && form[0].number == 0 && form[0].addends.empty();
}

bool has_addends(const ScoreForm& form) {
  return std::ranges::any_of(form, [](const ScoreCase& each) { return !each.addends.empty(); });
}

bool is_numbers(const ScoreForm& form) {
  return std::ranges::all_of(form, [](const ScoreCase& one) { return one.scale == 0 && one.addends.empty(); });
}

std::optional<ScoreForm> sum(const ScoreForm& a, const ScoreForm& b, double f) {
  return by_cases(a, b, [f](const ScoreCase& one, const ScoreCase& other) {
    const auto factored = scaled(other, f);
    return factored ? added(one, *factored) : std::nullopt;
  });
}

std::optional<ScoreForm> product(const ScoreForm& numbers, const ScoreForm& form) {
  return by_cases(numbers, form, [](const ScoreCase& one, const ScoreCase& other) { return scaled(other, one.number); });
}

std::optional<ScoreForm> selection(const Literal& literal, const ScoreForm& a, const ScoreForm& b) {
  // What is a number stands first: the other is all the rest then.
  const bool begins_with_b = is_numbers(b) || !is_numbers(a);
  const Literal first_holds = begins_with_b ? literal.negated() : literal;
  ScoreForm form;
  for (const ScoreCase& one : begins_with_b ? b : a) {
    ScoreCase guarded = one;
    guarded.guard = both({first_holds}, one.guard);
    append(form, std::move(guarded));
  }
  for (const ScoreCase& one : begins_with_b ? a : b) append(form, one);
  return unless_too_large(std::move(form));
}

std::optional<ScoreForm> mapped(const ScoreForm& a, const ScoreForm& b, double (*f)(double, double)) {
  if (!is_numbers(a) || !is_numbers(b)) return std::nullopt;
  return by_cases(a, b, [f](const ScoreCase& one, const ScoreCase& other) {
    return std::optional(ScoreCase{{}, 0, f(one.number, other.number)});
  });
}

std::optional<ScoreForm> lesser(const ScoreForm& bound, const ScoreForm& form, double below_scores,
                                std::optional<double>* clamp) {
  return by_cases(bound, form, [&](const ScoreCase& one, const ScoreCase& other) -> std::optional<ScoreCase> {
    const bool clamps = clamp && one.number >= -below_scores && one.number < kAboveScores;
    if (clamps) *clamp = std::min(clamp->value_or(one.number), one.number);
    if (clamps || one.number >= kAboveScores) return other;
    return one.number <= below_scores && other.scale > 0 ? std::optional(one) : std::nullopt;
  });
}

std::optional<ScoreForm> substituted(const ScoreForm& outer, const ScoreForm& inner) {
  ScoreForm form;
  for (const ScoreCase& one : outer) {
    if (one.scale == 0) {
      append(form, one);
      continue;
    }
    ScoreCase rest = one;
    rest.scale = 0;
    for (const ScoreCase& core : inner) {
      const auto factored = scaled(core, one.scale);
      auto made = factored ? added(rest, *factored) : std::nullopt;
      if (!made) return std::nullopt;
      made->guard = both(one.guard, core.guard);
      append(form, *std::move(made));
    }
  }
  return unless_too_large(std::move(form));
}

Known known_in(const ScoreForm& form, size_t index) {
  Known known{both(known_behind(form, index), form[index].guard)};
  for (size_t earlier = 0; earlier < index; ++earlier) known.excluded.push_back(form[earlier].guard);
  return known;
}

std::optional<double> number_where(const ScoreForm& numbers, const Known& known) {
  std::optional<double> found;
  for (const ScoreCase& one : numbers) {
    const auto there = both(known.hold, one.guard);
    const auto is_all = [&](const std::vector<Literal>& guard) { return contains_all(there, guard); };
    if (contradicts(known.hold, one.guard) || std::ranges::any_of(known.excluded, is_all)) continue;
    if (found.value_or(one.number) != one.number) return std::nullopt;
    found = one.number;
    if (contains_all(known.hold, one.guard)) break;
  }
  return found;
}

}  // namespace attn_opt
