#include "patterns/softmax/lowered_scores.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/internal/sdpa.h"
#include "attn_opt/matcher.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/same_number.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/peel_steps.h"
#include "patterns/softmax/row_reduction.h"

namespace attn_opt {
namespace {

/// A larger number is a fill: added up without it, the other terms are as large, and scores are lost beside them.
constexpr double kMostNumberApart = 1000;

bool is_about(double one, double other) {
  return std::abs(one - other) <= kSameNumber * std::max(std::abs(one), std::abs(other));
}

/// The largest or the least number of each row.
struct RowExtreme {
  Value* rows = nullptr;
  size_t keys = 0;  ///< how many axes lie behind theirs
  bool is_least = false;
};

/// What VALUE holds of rows of RANK axes; nullopt if it is neither.
std::optional<RowExtreme> row_extreme(Value& value, size_t rank, Facts& facts) {
  for (const bool is_least : {false, true})
    for (size_t keys = 0; keys < rank; ++keys)
      if (Value* rows = reduced_rows(is_least ? "ReduceMin" : "ReduceMax", value, rank, facts, keys))
        return RowExtreme{rows, keys, is_least};
  return std::nullopt;
}

/// True if ONE and OTHER are as much of the same, or of what is the largest number of the same rows in other words: -min(-x).
bool compute_same_term(const Addend& one, const Addend& other, Facts& facts) {
  if (is_about(one.coefficient, other.coefficient) && computes_same(*one.value, *other.value, facts)) return true;
  const MaybeShape shape = facts.shape(*one.value), twin = facts.shape(*other.value);
  if (!shape || !twin || shape->size() != twin->size()) return false;
  const auto rows = row_extreme(*one.value, shape->size(), facts), others = row_extreme(*other.value, shape->size(), facts);
  if (!rows || !others || rows->keys != others->keys) return false;
  const double sign = rows->is_least == others->is_least ? 1 : -1;
  return is_about(one.coefficient, sign * other.coefficient) &&
         compute_same_terms(linear_terms_of(*rows->rows, sign, facts), linear_terms_of(*others->rows, 1, facts), facts);
}

LinearTerms without(const Addend& term, LinearTerms terms) {
  std::erase_if(terms, [&](const Addend& other) { return other.value == term.value; });
  return terms;
}

/// Takes what is a number out of TERMS.
double take_numbers(LinearTerms& terms, Facts& facts) {
  double number = 0;
  std::erase_if(terms, [&](const Addend& term) {
    const auto uniform = facts.uniform(*term.value);
    const bool is_number = uniform && std::isfinite(*uniform);
    if (is_number) number += term.coefficient * *uniform;
    return is_number;
  });
  return number;
}

/// True if VALUE is one number for each row, along the axis KEYS before the last, of WHOLE.
bool is_one_a_row(const Value& value, const Value& whole_value, size_t keys, Facts& facts) {
  const MaybeShape own = facts.shape(value), whole = facts.shape(whole_value);
  return own && whole && own->size() == whole->size() && own->size() > std::max<size_t>(1, keys) &&
         (*own)[own->size() - 1 - keys].is(1);
}

class LoweringReader {
 public:
  LoweringReader(const Exponent& power, size_t keys, Node& reader, MatchContext& context)
      : power_(power), keys_(keys), reader_(reader), context_(context), facts_(context.facts) {}

  LoweredScores read() {
    LinearTerms terms = linear_terms_of(*power_.value, power_.factor, facts_);
    const double number = take_numbers(terms, facts_);
    const auto lowering = lowering_among(terms);
    LoweredScores found{nullptr, nullptr, power_.factor, number};
    if (lowering == terms.end()) {
      if (number != 0 && std::abs(number) < -kHighestMaskFill) found.scores = source_of(terms, found.factor, 0);
      if (found.scores) return found;
      const bool is_scaled = terms.size() == 1 && number == 0 && is_about(terms[0].coefficient, 1);
      return {is_scaled ? terms[0].value : power_.value, nullptr, is_scaled ? 1 : power_.factor, 0};
    }
    found.factor = is_about(std::abs(lowering->coefficient), 1) ? 1 : std::abs(lowering->coefficient);
    found.lowered_by = lowering->coefficient < 0 ? lowering->value : negative_of(*lowering->value);
    terms.erase(lowering);
    if (Value* rows = maximum_of(*found.lowered_by)) {
      const auto added = added_to(terms, *rows, found.factor);
      if (added) return {rows, found.lowered_by, found.factor, is_about(number, *added) ? 0 : number - *added};
    }
    found.scores = source_of(terms, found.factor, 0);
    if (!found.scores && (found.scores = source_of(terms, found.factor, number))) found.number = 0;
    if (found.scores) return found;
    if (Value* scores = source_of(terms, 1, number))
      return {scores, value_of({found.lowered_by, found.factor}, reader_, context_), 1, 0};
    if (std::abs(number) > kMostNumberApart) return {power_.value, nullptr, power_.factor, 0};
    found.scores = sum_of(terms, found.factor);
    return found;
  }

 private:
  /// What VALUE is the largest of in each row, perhaps beside one other number.
  Value* maximum_of(Value& value) const {
    const size_t rank = facts_.shape(*power_.value).known().size();
    if (Value* rows = reduced_rows("ReduceMax", value, rank, facts_, keys_)) return rows;
    Value *one = nullptr, *other = nullptr;
    if (!op("Max", {any(&one), any(&other)})(value, facts_)) return nullptr;
    Value* rows = reduced_rows("ReduceMax", *one, rank, facts_, keys_);
    return rows ? rows : reduced_rows("ReduceMax", *other, rank, facts_, keys_);
  }

  /// -VALUE, if that is a largest score: of the model, or made where VALUE is a least one.
  Value* negative_of(Value& value) const {
    const LinearTerms negative{{&value, -1, {}}};
    Value* found = nearest_source(
        *power_.value, [&](Value& source) { return are_same_terms(linear_terms_of(source, 1, facts_), negative); }, facts_);
    if (!found && reduced_rows("ReduceMin", value, facts_.shape(*power_.value).known().size(), facts_, keys_))
      found = InnerValues(reader_, context_).build().node("Neg", {&value});
    return found && maximum_of(*found) ? found : nullptr;
  }

  /// The term that is subtracted from each row: the largest score, if one of them is.
  LinearTerms::iterator lowering_among(LinearTerms& terms) {
    auto found = terms.end();
    for (auto term = terms.begin(); terms.size() > 1 && term != terms.end(); ++term) {
      if (!is_one_a_row(*term->value, *power_.value, keys_, facts_)) continue;
      // The least of negative scores is the negative of the largest score.
      if (!(term->coefficient < 0) && !negative_of(*term->value)) continue;
      if (is_maximum_of_rest(*term, terms)) return term;
      if (found == terms.end() || !(term->coefficient < 0) || maximum_of(*term->value)) found = term;
    }
    return found;
  }

  /// True if TERM, which is subtracted, is the largest of what the others of TERMS add up to.
  bool is_maximum_of_rest(const Addend& term, const LinearTerms& terms) {
    Value* rows = term.coefficient < 0 ? maximum_of(*term.value) : nullptr;
    return rows && added_to(without(term, terms), *rows, -term.coefficient);
  }

  /// The number that FACTOR times VALUE adds to TERMS; nullopt if it adds up others.
  std::optional<double> added_to(const LinearTerms& terms, Value& value, double factor) {
    LinearTerms own = linear_terms_of(value, factor, facts_);
    const double number = take_numbers(own, facts_);
    return are_same_terms(own, terms) ? std::optional(number) : std::nullopt;
  }

  /// What FACTOR times is TERMS and NUMBER, among the values that the exponent is made of; null if none is.
  Value* source_of(const LinearTerms& terms, double factor, double number) {
    const auto is_sum = [&](Value& value) {
      const auto added = added_to(terms, value, factor);
      return added && is_about(*added, number);
    };
    return nearest_source(*power_.value, is_sum, facts_);
  }

  /// TERMS divided by FACTOR, added up.
  Value* sum_of(const LinearTerms& terms, double factor) {
    Value* sum = nullptr;
    for (const Addend& term : terms) {
      const double share = is_about(term.coefficient, factor) ? 1 : term.coefficient / factor;
      Value* own = value_of({term.value, share}, reader_, context_);
      sum = sum ? InnerValues(reader_, context_).sum(sum, own) : own;
    }
    return sum;
  }

  const Exponent& power_;
  size_t keys_;
  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
};

}  // namespace

LinearTerms linear_terms_of(Value& value, double factor, Facts& facts) {
  LinearTerms terms;
  for (const Addend& addend : FormReader(facts, true).linear_terms(value)) {
    const auto same = std::ranges::find(terms, addend.value, &Addend::value);
    const double more = factor * addend.coefficient;
    if (same == terms.end())
      terms.push_back({addend.value, more, {}});
    else
      same->coefficient += more;
  }
  std::erase_if(terms, [](const Addend& term) { return std::abs(term.coefficient) <= kSameNumber; });
  return terms;
}

bool are_same_terms(const LinearTerms& one, const LinearTerms& other) {
  return one.size() == other.size() && std::ranges::all_of(one, [&](const Addend& term) {
           const auto twin = std::ranges::find(other, term.value, &Addend::value);
           return twin != other.end() && is_about(term.coefficient, twin->coefficient);
         });
}

bool compute_same_terms(const LinearTerms& one, LinearTerms other, Facts& facts) {
  if (one.size() != other.size()) return false;
  return std::ranges::all_of(one, [&](const Addend& term) {
    const auto twin = std::ranges::find_if(other, [&](const Addend& each) { return compute_same_term(term, each, facts); });
    if (twin == other.end()) return false;
    other.erase(twin);
    return true;
  });
}

std::vector<Difference> differences_in(Value& value, double times, Facts& facts) {
  std::vector<Difference> found;
  const LinearTerms terms = linear_terms_of(value, times, facts);
  for (const Addend& term : terms) {
    if (terms.size() < 2 || !(term.coefficient < 0)) continue;
    const LinearTerms rest = without(term, terms);
    const double factor = -term.coefficient;
    const auto is_rest = [&](Value& source) { return are_same_terms(linear_terms_of(source, factor, facts), rest); };
    if (Value* minuend = nearest_source(value, is_rest, facts)) found.push_back({minuend, term.value, factor});
  }
  return found;
}

LoweredScores lowered_scores(const Exponent& power, size_t keys, Node& reader, MatchContext& context) {
  return LoweringReader(power, keys, reader, context).read();
}

}  // namespace attn_opt
