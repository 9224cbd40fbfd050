#include "patterns/softmax/pair_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "patterns/inner_values.h"
#include "patterns/same_number.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/row_sum.h"
#include "patterns/softmax/weights.h"

namespace attn_opt {
namespace {

/// So many TIMES a value, and which axis of the exponents each axis of that is: less than 0 where it is of size 1.
struct PlacedTerm {
  RowReduction source;
  double times = 1;
};

/// Reads what exponents of pairs add up.
class PairReader {
 public:
  PairReader(const RowSum& sum, const Shape& shares, Node& reader, MatchContext& context)
      : sum_(sum),
        summed_(static_cast<int>(std::ranges::find(sum.rows.axes, RowReduction::kTaken) - sum.rows.axes.begin())),
        shares_(shares),
        reader_(reader),
        context_(context) {}

  /// The scores of which EXPONENT is the difference of each two, as they lie in the shares; null if it is another.
  Value* scores_in(const Exponent& exponent) {
    std::vector<PlacedTerm> summed, own;
    for (const Addend& term : FormReader(context_.facts, true).linear_terms(*exponent.value)) {
      RowReduction whole = placed_in(*term.value, sum_.rows.axes.size(), context_.facts);
      PlacedTerm placed{before_moves(std::move(whole), context_.facts), exponent.factor * term.coefficient};
      const bool is_summed = std::ranges::find(placed.source.axes, summed_) != placed.source.axes.end();
      if (placed.source.axes.empty()) return nullptr;
      (is_summed ? summed : own).push_back(std::move(placed));
    }
    Value* scores = nullptr;
    for (const PlacedTerm& term : own) {
      if (std::erase_if(summed, [&](const PlacedTerm& other) { return are_pair(other, term); }) != 1) return nullptr;
      Value* in_place = laid_as_shares(term);
      if (!in_place) return nullptr;
      scores = scores ? InnerValues(reader_, context_).sum(scores, in_place) : in_place;
    }
    const MaybeShape shape = scores && summed.empty() ? context_.facts.shape(*scores) : nullptr;
    return shape && *shape == shares_ ? scores : nullptr;
  }

  /// How many axes of the shares lie behind the one along which each has its own score.
  size_t keys() const { return shares_.size() - 1 - static_cast<size_t>(place_of(own_)); }

 private:
  /// True if OTHER adds, for each score that is summed up, what TERM subtracts for its own.
  bool are_pair(const PlacedTerm& other, const PlacedTerm& term) {
    if (other.source.value != term.source.value || std::abs(other.times / term.times + 1) > kSameNumber) return false;
    for (size_t axis = 0; axis < term.source.axes.size(); ++axis) {
      const int lies = term.source.axes[axis], others = other.source.axes[axis];
      if (others == summed_ && (own_ < 0 || own_ == lies)) own_ = lies;
      if (others != lies && (others != summed_ || lies != own_)) return false;
    }
    return own_ >= 0 && place_of(own_) >= 0 && std::ranges::count(other.source.axes, own_) == 0;
  }

  /// Which axis of the shares AXIS of the exponents is.
  int place_of(int axis) const { return sum_.rows.axes[static_cast<size_t>(axis)]; }

  /// What TERM subtracts, with the axes of the shares.
  Value* laid_as_shares(const PlacedTerm& term) {
    std::vector<std::pair<int, int64_t>> places;
    std::vector<int64_t> units;
    for (size_t axis = 0; axis < term.source.axes.size(); ++axis) {
      const int place = term.source.axes[axis] < 0 ? -1 : place_of(term.source.axes[axis]);
      if (place < 0)
        units.push_back(static_cast<int64_t>(axis));
      else
        places.emplace_back(place, static_cast<int64_t>(places.size()));
    }
    const bool is_straight = std::ranges::is_sorted(places) && lies_straight(term);
    InnerValues inner(reader_, context_);
    Value* value = term.source.value;
    if (!is_straight) {
      if (!units.empty()) value = inner.build().along("Squeeze", *value, units);
      std::ranges::sort(places);
      std::vector<int64_t> perm, lacking;
      for (const auto& [place, axis] : places) perm.push_back(axis);
      for (int axis = 0; axis < static_cast<int>(shares_.size()); ++axis)
        if (std::ranges::find(places, axis, &std::pair<int, int64_t>::first) == places.end()) lacking.push_back(axis);
      value = inner.transposed(value, perm);
      if (!lacking.empty()) value = inner.unsqueezed(value, lacking);
    }
    return inner.scaled(value, std::abs(term.times + 1) <= kSameNumber ? 1 : -term.times);
  }

  /// True if each axis of TERM is that of the shares, but where it is of size 1.
  bool lies_straight(const PlacedTerm& term) const {
    const std::vector<int>& axes = term.source.axes;
    for (size_t axis = 0; axis < axes.size() && axes.size() == shares_.size(); ++axis)
      if (axes[axis] >= 0 && place_of(axes[axis]) != static_cast<int>(axis)) return false;
    return axes.size() == shares_.size();
  }

  const RowSum& sum_;
  int summed_;    ///< axis of the exponents, along which they are added up
  int own_ = -1;  ///< the one along which each share has its own score
  Shape shares_;
  Node& reader_;
  MatchContext& context_;
};

}  // namespace

std::optional<SoftmaxSite> softmax_of_pairs(Node& node, MatchContext& context) {
  Value& shares = *node.outputs[0];
  const MaybeShape shape = context.facts.shape(shares);
  const auto sum = shape ? row_sum(shares, true, shape->size(), node, context) : std::nullopt;
  const auto pairs = sum && sum->others.empty() ? weights_in(*sum->rows.value, node, context) : std::nullopt;
  if (!pairs || !pairs->exponent.value || pairs->factor < 0 || pairs->form.size() > 1) return std::nullopt;
  if (std::abs(pairs->factor * sum->factor - 1) > kSameNumber) return std::nullopt;
  PairReader reader(*sum, *shape, node, context);
  Value* scores = reader.scores_in(pairs->exponent);
  if (!scores) return std::nullopt;
  SoftmaxSite site{scores, &shares, nullptr, reader.keys(), std::nullopt};
  site.pairs_scores = true;
  // Beyond the range of exp() a share is 0: in a half type it is 0 long before it is as good as nothing.
  if (context.facts.type(*sum->rows.value) == onnx::TensorProto::FLOAT16 || pairs->exponent.is_product)
    site.exponent_offset = 0;
  return site;
}

}  // namespace attn_opt
