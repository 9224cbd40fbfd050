// The algebra of forms, held against the same expressions computed with numbers.
#include "patterns/scores/score_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory_resource>
#include <random>

namespace attn_opt {
namespace {

constexpr size_t kConditions = 3, kValues = 2;

/// What conditions, values and the core are in one place of the tensors.
struct Place {
  std::array<bool, kConditions> conditions;
  std::array<double, kValues> values;
  double core;
};

/// A form and what it was made of, as a function of the place.
struct Expression {
  ScoreForm form;
  std::function<double(const Place&)> number;
};

class Forms : public ::testing::Test {
 protected:
  Literal literal(size_t i, bool holds = true) { return literal_of(conditions_[i], holds); }
  Value& value(size_t i) { return values_[i]; }

  static Literal literal_of(Value& condition, bool holds = true) {
    return {.condition = &condition, .holds = holds, .laid = {.value = &condition, .is_true = holds}};
  }

  double evaluated(const ScoreForm& form, const Place& place) const {
    for (const ScoreCase& one : form) {
      const auto holds = [&](const Literal& literal) {
        const size_t i = static_cast<size_t>(literal.condition - conditions_.data());
        return place.conditions[i] == literal.holds;
      };
      if (!std::ranges::all_of(one.guard, holds)) continue;
      double sum = one.number + one.scale * place.core;
      for (const Addend& addend : one.addends)
        sum += addend.coefficient * place.values[static_cast<size_t>(addend.value - values_.data())];
      return sum;
    }
    ADD_FAILURE() << "no case holds";
    return NAN;
  }

  size_t below(size_t count) { return random_() % count; }

  Expression leaf() {
    const size_t kind = below(3), i = below(kValues);
    const double number = static_cast<double>(below(5)) - 2;
    if (kind == 0) return {core_form(), [](const Place& place) { return place.core; }};
    if (kind == 1) return {value_form(value(i)), [i](const Place& place) { return place.values[i]; }};
    return {number_form(number), [number](const Place&) { return number; }};
  }

  Expression mask() {
    const size_t i = below(kConditions);
    const double one = static_cast<double>(below(4)), other = static_cast<double>(below(4));
    const bool holds = below(2) == 0;
    return {*selection(literal(i, holds), number_form(one), number_form(other)),
            [=](const Place& place) { return place.conditions[i] == holds ? one : other; }};
  }

  /// None where there would be too many cases.
  std::optional<Expression> drawn(int depth) {
    if (depth == 0) return leaf();
    const auto a = drawn(depth - 1), b = drawn(depth - 1);
    if (!a || !b) return std::nullopt;
    std::optional<ScoreForm> form;
    std::function<double(const Place&)> number;
    if (const size_t kind = below(4); kind == 0) {
      form = sum(a->form, b->form, -2);
      number = [=](const Place& place) { return a->number(place) - 2 * b->number(place); };
    } else if (kind == 1) {
      const Expression factor = mask();
      form = product(factor.form, a->form);
      number = [=](const Place& place) { return factor.number(place) * a->number(place); };
    } else if (kind == 2) {
      const size_t i = below(kConditions);
      form = selection(literal(i), a->form, b->form);
      number = [=](const Place& place) { return place.conditions[i] ? a->number(place) : b->number(place); };
    } else {
      form = substituted(a->form, b->form);
      number = [=](const Place& place) {
        Place inner = place;
        inner.core = b->number(place);
        return a->number(inner);
      };
    }
    return form ? std::optional(Expression{*std::move(form), std::move(number)}) : std::nullopt;
  }

  template <class Visit>
  void for_each_place(Visit visit) {
    for (unsigned bits = 0; bits < 1U << kConditions; ++bits) {
      Place place{{}, {0.25, -3}, 5.5};
      for (size_t i = 0; i < kConditions; ++i) place.conditions[i] = (bits >> i & 1U) != 0;
      visit(place);
    }
  }

 private:
  std::pmr::memory_resource* memory_ = std::pmr::new_delete_resource();
  std::array<Value, kConditions> conditions_ = {Value(memory_), Value(memory_), Value(memory_)};
  std::array<Value, kValues> values_ = {Value(memory_), Value(memory_)};
  std::mt19937 random_{7};
};

TEST_F(Forms, AreWhatTheyWereMadeOf) {
  int compared = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto expression = drawn(1 + i % 4);
    if (!expression) continue;
    ++compared;
    EXPECT_TRUE(expression->form.back().guard.empty());
    for_each_place(
        [&](const Place& place) { EXPECT_NEAR(evaluated(expression->form, place), expression->number(place), 1e-9); });
  }
  EXPECT_GT(compared, 1500);
}

TEST_F(Forms, HoldNoCaseThatIsNeverReached) {
  const Literal kept = literal(0);
  const auto left = *selection(kept, core_form(), number_form(0)), fill = *selection(kept, number_form(0), number_form(-1e9));
  const auto masked = sum(left, fill);
  ASSERT_TRUE(masked);
  ASSERT_EQ(masked->size(), 2U);
  EXPECT_EQ((*masked)[0].number, -1e9);
  EXPECT_EQ((*masked)[1].scale, 1);
}

TEST_F(Forms, TimesZeroHoldNoInfinity) {
  const auto mask = *selection(literal(0), number_form(1), number_form(0));
  EXPECT_FALSE(product(mask, number_form(-INFINITY)));
  EXPECT_TRUE(product(mask, core_form()));
}

TEST_F(Forms, AreNumbersWhereEnoughIsKnown) {
  const Literal first = literal(0), second = literal(1);
  const auto both =
      *product(*selection(first, number_form(1), number_form(0)), *selection(second, number_form(1), number_form(0)));
  EXPECT_EQ(number_where(both, {{first.negated()}}), 0);
  EXPECT_EQ(number_where(both, {{first}}), std::nullopt);
  EXPECT_EQ(number_where(both, {{first, second}}), 1);
  EXPECT_EQ(number_where(both, {{first}, {{second.negated()}}}), 1);
}

TEST_F(Forms, OfTooManyCasesAreNone) {
  ScoreForm form = core_form();
  std::array<Value, 5> many = {Value(std::pmr::new_delete_resource()), Value(std::pmr::new_delete_resource()),
                               Value(std::pmr::new_delete_resource()), Value(std::pmr::new_delete_resource()),
                               Value(std::pmr::new_delete_resource())};
  std::optional<ScoreForm> next = form;
  for (size_t i = 0; next && i < many.size(); ++i) {
    const double n = std::pow(2.0, static_cast<double>(i));
    next = sum(*next, *selection(literal_of(many[i]), number_form(n), number_form(0)));
  }
  EXPECT_FALSE(next);
}

}  // namespace
}  // namespace attn_opt
