// A value on the way from Q K^T to the softmax as what it is made of: in cases, a factor times one CORE and what is added to
// it.
//
//   of the first case that holds      guard       value
//                                     not m       -1e9 + bias
//                                     (always)    0.125 * CORE + bias
//
// Sums, products with numbers, selections and their compositions are forms again, whatever a mask is spelled by: Where(m, s,
// f), s * m + (1 - m) * f, s + Where(m, 0, f), Min(s, Where(m, inf, f)). Scores are taken for finite: 0 times a score is 0.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/shape.h"
#include "patterns/laid_booleans.h"

namespace attn_opt {

/// That CONDITION, booleans that are no Not of others, holds or does not. LAID: the same, in whatever words. FRAME: the shape
/// of the scores where it was met.
struct Literal {
  Value* condition = nullptr;
  bool holds = true;
  LaidBooleans laid;
  Shape frame = {};

  bool operator==(const Literal& other) const { return laid == other.laid; }
  Literal negated() const {
    Literal other = *this;
    other.holds = !holds;
    other.laid.is_true = !laid.is_true;
    return other;
  }
};

/// That CONDITION holds.
Literal literal_of(const Condition& condition, Facts& facts);
/// LITERAL, met where the scores have the shape FRAME: equal to others of other shapes that differ in axes of 1 alone.
Literal met_over(Literal literal, const Shape& frame);

/// COEFFICIENT times VALUE, which was met where the scores had the shape FRAME.
struct Addend {
  Value* value = nullptr;
  double coefficient = 1;
  Shape frame = {};

  bool operator==(const Addend& other) const { return value == other.value && coefficient == other.coefficient; }
};

/// SCALE times the core, plus NUMBER and ADDENDS (outermost first), where all of GUARD hold.
struct ScoreCase {
  std::vector<Literal> guard = {};
  double scale = 0;
  double number = 0;
  std::vector<Addend> addends = {};
  const Node* met = nullptr;         ///< where the scores were replaced, of a case without any
  std::vector<Value*> dropped = {};  ///< added 0 times: NaN where they are not finite
};

/// The first case whose guard holds counts; that of the last is empty.
using ScoreForm = std::vector<ScoreCase>;

ScoreForm core_form();
ScoreForm number_form(double number);
ScoreForm value_form(Value& value);
/// 0 times VALUE.
ScoreForm nothing_form(Value& value);

/// True if FORM is a number times the core.
bool is_scale(const ScoreForm& form);
/// True if values are added in a case of FORM.
bool has_addends(const ScoreForm& form);
/// True if FORM is a number in each case.
bool is_numbers(const ScoreForm& form);

// All below are nullopt if there are too many cases, or if 0 would be multiplied with infinity.

/// a + f * b
std::optional<ScoreForm> sum(const ScoreForm& a, const ScoreForm& b, double f = 1);
/// (m ? a : b) * c  =>  m ? a * c : b * c, of which NUMBERS is the one operand
std::optional<ScoreForm> product(const ScoreForm& numbers, const ScoreForm& form);
/// m ? a : b
std::optional<ScoreForm> selection(const Literal& literal, const ScoreForm& a, const ScoreForm& b);
/// f(m ? x : y, a)  =>  m ? f(x, a) : f(y, a), all being numbers
std::optional<ScoreForm> mapped(const ScoreForm& a, const ScoreForm& b, double (*f)(double, double));
/// The lesser of BOUND, which is above all scores or lower than every score in each case, and FORM. Where a CLAMP is asked for,
/// a number as far above 0 as those are below it is above all scores too: it becomes the least of these.
std::optional<ScoreForm> lesser(const ScoreForm& bound, const ScoreForm& form, double below_scores,
                                std::optional<double>* clamp = nullptr);
/// OUTER, whose core is INNER.
std::optional<ScoreForm> substituted(const ScoreForm& outer, const ScoreForm& inner);

/// That all of HOLD do, and of each of EXCLUDED not all.
struct Known {
  std::vector<Literal> hold = {};
  std::vector<std::vector<Literal>> excluded = {};
};

/// What is known where the case INDEX of FORM holds.
Known known_in(const ScoreForm& form, size_t index);
/// The number that NUMBERS come to where that is KNOWN; nullopt if that depends on more.
std::optional<double> number_where(const ScoreForm& numbers, const Known& known);

}  // namespace attn_opt
