#include "src/emit/causal.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/internal/mask_contents.h"
#include "src/io/number_text.h"

namespace attn_opt {
namespace {

using Terms = std::vector<const ScoreTerm*>;

/// Scores and biases within this leave a fill that absorbs scores what it is.
constexpr double kModest = 1e6;
/// exp() of less is 0 in every type.
constexpr double kVanishing = -1000;

class CausalReader {
 public:
  CausalReader(const WritingPlan& plan, const AcceptedAssumptions& accepted, Site& site)
      : accepted_(accepted), site_(site), rules_(plan, site), shows_masks_(site.shows_masked_scores()) {}

  Causality read(Terms terms) {
    const bool has_floor = std::ranges::any_of(terms, [](auto* term) { return term->kind == ScoreTerm::Kind::kFloor; });
    if (has_floor || (shows_masks_ && !site_.target.shows_masked_scores)) return {rules_.rules(), std::move(terms), {}};
    std::erase_if(terms, [&](const ScoreTerm* term) { return keeps_all(*term); });
    offer_lengths(terms);
    for (const ScoreTerm* term : terms) {
      const std::string why = why_not(*term, terms);
      note(*term, why.empty() ? text_of(*term->causal) + ": said by the node" : "stays a mask: " + why);
      (why.empty() ? taken_ : kept_).push_back(term);
    }
    assume_finite_scores();
    assume_lengths_in_range();
    return {rules_.rules(), std::move(kept_), std::move(reading_)};
  }

 private:
  bool keeps_all(const ScoreTerm& term) {
    const bool all = term.causal && term.causal->keeps_all();
    if (all) note(term, "keeps every key");
    return all;
  }

  void note(const ScoreTerm& term, const std::string& what) {
    reading_ += (reading_.empty() ? "" : "; ") + ("'" + term.value->name + "' " + what);
  }

  /// A mask that is causal without lengths can be said only where no lengths are.
  void offer_lengths(const Terms& terms) {
    const auto is_plain = [](const ScoreTerm* term) {
      return term->causal && term->causal->offset && !term->causal->counts_from_lengths;
    };
    if (std::ranges::any_of(terms, is_plain)) return;
    const auto counts = [](const ScoreTerm* term) { return term->causal && term->causal->counts_from_lengths; };
    for (const bool causal_first : {true, false})
      for (const ScoreTerm* term : terms)
        if (term->causal && counts(term) == causal_first && why_unsound(*term, terms).empty() && !is_assumed(*term))
          rules_.offer_lengths(*term);
  }

  /// True if TERM must not be said since that lengths lie in 0 to S would be assumed: it counts queries from them.
  bool is_assumed(const ScoreTerm& term) const {
    return !accepted_.accepts("lengths-in-range") && !site_.target.takes_any_length && term.causal->counts_from_lengths;
  }

  /// Why the node cannot say TERM; empty if it does from now on.
  std::string why_not(const ScoreTerm& term, const Terms& terms) {
    if (!term.causal) return term.not_causal.empty() ? "was not read" : term.not_causal;
    if (site_.sdpa.is_causal) return "the operator is causal as it is";
    if (site_.guards_nan) return "what is NaN where it masks makes a row 0";
    if (std::string why = why_unsound(term, terms); !why.empty()) return why;
    if (is_assumed(term)) return "that '" + term.causal->lengths->name + "' lies within the keys is assumed";
    return rules_.say(term);
  }

  /// Why masked keys might have weight in the model, or show otherwise in what others read.
  std::string why_unsound(const ScoreTerm& term, const Terms& terms) const {
    const double fill = term.causal->otherwise;
    if (!site_.says.hides_later_keys && term.causal->offset)
      if (std::string why = why_undercut(term, terms); !why.empty()) return why;
    if (fill == -INFINITY) {
      // Runtimes lay such a mask over the scores (ONNX Runtime 1.32: is_causal): a NaN or Inf that it hides is none any more.
      if (!accepted_.refinements) return "a score that it is added to may be NaN or Inf";
      for (auto above = std::ranges::find(terms, &term); above != terms.end(); ++above)
        if (may_lift(**above)) return "'" + (*above)->value->name + "' lays a finite fill over it";
      return "";
    }
    if (!accepted_.accepts("scores-finite")) return "that its fill absorbs every score is assumed";
    if (shows_masks_) return "its fill " + number_text(fill) + " is read with the scores";
    if (!rules_.keeps_own_key(*term.causal)) return "its fill " + number_text(fill) + " may be all that a query sees";
    const bool is_sole = terms.size() == 1;
    if (!absorbs(fill) && !(is_sole && vanishes(fill))) return "its fill " + number_text(fill) + " may not absorb every score";
    return why_undercut(term, terms);
  }

  /// Why a query may be left less than what hides the keys that TERM masks; empty if it may not.
  std::string why_undercut(const ScoreTerm& term, const Terms& terms) const {
    for (const ScoreTerm* other : terms)
      if (!is_modest(*other) && !masks_the_same(*other, term)) return "'" + other->value->name + "' may mask all that it keeps";
    return "";
  }

  static bool may_lift(const ScoreTerm& term) {
    return term.kind != ScoreTerm::Kind::kBias && term.coefficient * term.fill != -INFINITY;
  }

  bool absorbs(double fill) const { return fill <= absorbing_fill(site_.sdpa.type); }

  bool masks_the_same(const ScoreTerm& other, const ScoreTerm& term) const {
    if (&other == &term) return true;
    return other.causal && other.causal->keeps_as(*term.causal) && absorbs(other.causal->otherwise);
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

  void assume_finite_scores() {
    const auto is_finite = [](const ScoreTerm* term) { return term->causal->otherwise != -INFINITY; };
    if (taken_.empty() || site_.match_lists("scores-finite")) return;
    if (std::ranges::any_of(taken_, is_finite))
      site_.assumed.push_back({"scores-finite", false, "a causal fill absorbs every score"});
    else if (std::ranges::any_of(taken_, [](const ScoreTerm* term) { return is_bias(*term); }))
      site_.assumed.push_back({"scores-finite", false, "the node hides masked scores, which the model adds -inf to", true});
  }

  void assume_lengths_in_range() {
    const auto& lengths = rules_.rules().lengths;
    const bool counts = std::ranges::any_of(taken_, [](const ScoreTerm* term) { return term->causal->counts_from_lengths; });
    if (!counts || site_.target.takes_any_length) return;
    const std::string added = lengths->added.is(0) ? "" : " + " + lengths->added.str();
    const std::string given = "'" + lengths->list->name + "'" + added;
    site_.assumed.push_back({"lengths-in-range", false, given + " is 0 to " + site_.scores[3].str()});
  }

  const AcceptedAssumptions& accepted_;
  Site& site_;
  KeyRuleReader rules_;
  bool shows_masks_;
  Terms taken_, kept_;
  std::string reading_;
};

}  // namespace

Causality causality_of(std::vector<const ScoreTerm*> terms, const WritingPlan& plan, const AcceptedAssumptions& accepted,
                       Site& site) {
  return CausalReader(plan, accepted, site).read(std::move(terms));
}

}  // namespace attn_opt
