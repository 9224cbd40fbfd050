#include "src/emit/causal.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/mask_contents.h"

namespace attn_opt {
namespace {

using Terms = std::vector<const ScoreTerm*>;

/// Scores and biases within this leave a fill that absorbs scores what it is.
constexpr double kModest = 1e6;
/// exp() of less is 0 in every type.
constexpr double kVanishing = -1000;

class CausalReader {
 public:
  CausalReader(const WritingPlan& plan, bool strict, Site& site) : plan_(plan), strict_(strict), site_(site) {}

  Causality read(Terms terms) {
    if (std::any_of(terms.begin(), terms.end(), [](auto* term) { return term->kind == ScoreTerm::Kind::kFloor; }))
      return {false, std::move(terms), {}};
    std::erase_if(terms, [&](const ScoreTerm* term) { return keeps_all(*term); });
    Causality result;
    for (const ScoreTerm* term : terms) {
      const std::string why = why_not(*term, terms);
      note(*term, why.empty() ? rule_of(*term) + ": is_causal" : "stays a mask: " + why);
      result.is_causal |= why.empty();
      (why.empty() ? taken_ : kept_).push_back(term);
    }
    assume_finite_scores();
    result.masks = std::move(kept_);
    result.reading = std::move(reading_);
    return result;
  }

 private:
  bool keeps_all(const ScoreTerm& term) {
    const bool all = term.causal && !term.causal->offset;
    if (all) note(term, "keeps every key");
    return all;
  }

  void note(const ScoreTerm& term, const std::string& what) {
    reading_ += (reading_.empty() ? "" : "; ") + ("'" + term.value->name + "' " + what);
  }

  static std::string rule_of(const ScoreTerm& term) {
    const Dim& offset = *term.causal->offset;
    return "keeps key j of query i if j <= i" + (offset.is(0) ? "" : " + " + offset.str());
  }

  /// Why is_causal does not say TERM; empty if it does.
  std::string why_not(const ScoreTerm& term, const Terms& terms) const {
    if (!term.causal) return term.not_causal.empty() ? "was not read" : term.not_causal;
    if (!is_of_the_scores(term.frame))
      return "is laid out for " + to_string(term.frame) + ", not " + to_string(site_.scores);
    if (site_.sdpa.is_causal) return "the operator is causal as it is";
    const Dim first = plan_.has_past ? past_rows() : Dim(0);
    if (*term.causal->offset != first)
      return "it " + rule_of(term) + ", behind a past of " + first.str();
    if (plan_.has_past && plan_.k->axes.size(Role::kRow) != plan_.q->axes.size(Role::kRow))
      return "new keys are not as many as queries";
    return why_unsound(term, terms);
  }

  bool is_of_the_scores(const Shape& frame) const {
    return frame.size() >= 2 && frame[frame.size() - 2] == site_.scores[2] && frame.back() == site_.scores[3];
  }

  /// Why masked keys might have weight in the model.
  std::string why_unsound(const ScoreTerm& term, const Terms& terms) const {
    const double fill = term.causal->otherwise;
    if (fill == -INFINITY) {
      for (auto above = std::find(terms.begin(), terms.end(), &term); above != terms.end(); ++above)
        if (may_lift(**above)) return "'" + (*above)->value->name + "' lays a finite fill over it";
      return "";
    }
    if (strict_) return "that its fill absorbs every score is assumed";
    const bool is_sole = terms.size() == 1;
    if (!absorbs(fill) && !(is_sole && vanishes(fill)))
      return "its fill " + std::to_string(fill) + " may not absorb every score";
    for (const ScoreTerm* other : terms)
      if (!is_modest(*other) && !masks_the_same(*other, term))
        return "'" + other->value->name + "' may mask all that it keeps";
    return "";
  }

  static bool may_lift(const ScoreTerm& term) {
    return term.kind != ScoreTerm::Kind::kBias && term.coefficient * term.fill != -INFINITY;
  }

  bool absorbs(double fill) const { return fill <= absorbing_fill(site_.sdpa.type); }

  bool masks_the_same(const ScoreTerm& other, const ScoreTerm& term) const {
    if (&other == &term) return true;
    return other.causal && other.causal->offset == term.causal->offset && absorbs(other.causal->otherwise);
  }

  /// A bias that is nowhere as low as a fill.
  bool is_modest(const ScoreTerm& term) const {
    if (term.kind != ScoreTerm::Kind::kBias) return false;
    const MaskContents contents = mask_contents(*term.value, site_.facts);
    const double largest = std::max(std::abs(contents.least), std::abs(contents.greatest));
    return !contents.may_hold_lowest && !contents.may_hold_minus_inf && std::abs(term.coefficient) * largest <= kModest;
  }

  /// True if FILL lies so far below scores that a softcap bounds that nothing of it is left.
  bool vanishes(double fill) const {
    const double cap = site_.sdpa.softcap;
    return cap > 0 && fill + 2 * cap <= kVanishing;
  }

  Dim past_rows() const { return (*site_.facts.shape(*plan_.k->past))[2]; }

  void assume_finite_scores() {
    const auto is_finite = [](const ScoreTerm* term) { return term->causal->otherwise != -INFINITY; };
    if (std::none_of(taken_.begin(), taken_.end(), is_finite) || site_.match_lists("scores-finite")) return;
    site_.assumed.push_back({"scores-finite", false, "a causal fill absorbs every score"});
  }

  const WritingPlan& plan_;
  bool strict_;
  Site& site_;
  Terms taken_, kept_;
  std::string reading_;
};

}  // namespace

Causality causality_of(std::vector<const ScoreTerm*> terms, const WritingPlan& plan, bool strict, Site& site) {
  return CausalReader(plan, strict, site).read(std::move(terms));
}

}  // namespace attn_opt
