#include "attn_opt/internal/causal_mask.h"

#include <algorithm>
#include <cmath>

#include "src/match/positions/position_reader.h"

namespace attn_opt {
namespace {

using Reason = tl::unexpected<std::string>;

/// That condition CONDITION of the possible values is TRUTH.
struct Literal {
  size_t condition = 0;
  bool truth = false;
};

bool holds(const Literal& literal, uint32_t truths) { return ((truths >> literal.condition & 1) != 0) == literal.truth; }

/// The conditions that all WANTED elements agree on.
std::vector<Literal> common_literals(const PossibleValues& possible, double wanted) {
  std::vector<Literal> literals;
  for (size_t condition = 0; condition < possible.conditions.size(); ++condition)
    for (const bool truth : {false, true}) {
      const Literal literal{condition, truth};
      const auto agrees = [&](const auto& c) { return c.value != wanted || holds(literal, c.truths); };
      if (std::ranges::all_of(possible.cases, agrees)) literals.push_back(literal);
    }
  return literals;
}

/// The largest element that is not WANTED; nullopt unless exactly those are wanted for which all LITERALS hold.
std::optional<double> largest_unwanted(const PossibleValues& possible, double wanted, const std::vector<Literal>& literals) {
  double largest = -INFINITY;
  for (const auto& possibility : possible.cases) {
    const double value = possibility.value;
    const bool all = std::ranges::all_of(literals, [&](const Literal& l) { return holds(l, possibility.truths); });
    if (std::isnan(value) || (value == wanted) != all) return std::nullopt;
    if (!all) largest = std::max(largest, value);
  }
  return largest;
}

/// KNOWN, or CANDIDATE if that is proven to bound more; SIGN: 1 for upper bounds. False if neither is proven.
bool tighten(std::optional<Dim>& known, const Dim& candidate, int64_t sign) {
  if (!known || ((*known - candidate) * sign).never_negative()) {
    known = candidate;
    return true;
  }
  return ((candidate - *known) * sign).never_negative();
}

/// Collects what literals say of the key j that query i sees.
class BoundReader {
 public:
  explicit BoundReader(const Shape& scores) : has_one_query_(from_last(scores, 1).is(1)) {}

  /// False if it says anything else.
  bool add(const IndexForm& form, bool is_not_negative) {
    if (form.factor(0) != 1 || form.factors.size() > 2) return false;
    const bool is_relative = form.factor(1) == -1 || (form.factor(1) == 0 && has_one_query_);
    if (form.factor(1) != 0 && !is_relative) return false;
    if (!add_lengths(form)) return false;
    const bool counts = form.length.value != nullptr;
    // j - i + c >= 0, or its opposite; with lengths c is another number less lengths[b].
    const Dim least = Dim(0) - form.offset;
    if (is_not_negative) return is_relative && !has_one_query_ && counts_alike(counts) && tighten(mask_.least, least, -1);
    if (!is_relative || (counts && has_one_query_)) return counts && tighten(mask_.end, least, 1);
    return counts_alike(counts) && tighten(mask_.offset, least - 1, 1);
  }

  CausalMask mask() const { return mask_; }

 private:
  bool add_lengths(const IndexForm& form) {
    if (!form.length.value) return true;
    if (form.length.times != -1 || (mask_.lengths && mask_.lengths != form.length.value)) return false;
    mask_.lengths = form.length.value;
    return true;
  }

  bool counts_alike(bool counts) {
    if ((mask_.offset || mask_.least) && mask_.counts_from_lengths != counts) return false;
    mask_.counts_from_lengths = counts;
    return true;
  }

  bool has_one_query_;
  CausalMask mask_;
};

constexpr size_t kBatchAxis = 3;

/// Sizes of the scores must be those of the mask where elements depend on them.
bool fits(const PositionTable& table, const Shape& mask, const Shape& scores) {
  for (const IndexForm& form : table.conditions) {
    for (size_t axis = 0; axis < form.factors.size(); ++axis)
      if (form.factor(axis) != 0 && (axis > 1 || from_last(mask, axis) != from_last(scores, axis))) return false;
    const bool is_listed = form.length.value && form.length.axis != ListedLength::kNoAxis;
    if (is_listed && (form.length.axis != kBatchAxis || mask.size() != kBatchAxis + 1)) return false;
  }
  return true;
}

}  // namespace

bool CausalMask::keeps_as(const CausalMask& other) const {
  return offset == other.offset && least == other.least && end == other.end && lengths == other.lengths &&
         counts_from_lengths == other.counts_from_lengths;
}

tl::expected<CausalMask, std::string> causal_mask(Value& mask, double wanted, const Dim& queries, const Dim& keys,
                                                  Facts& facts) {
  PositionReader reader(facts);
  const auto table = reader.read(mask);
  const MaybeShape shape = facts.shape(mask);
  if (!table || !shape) {
    const Value* obstacle = reader.obstacle();
    return Reason("depends on '" + (obstacle ? obstacle : &mask)->name + "'");
  }
  const Shape scores{queries, keys};
  if (!fits(*table, *shape, scores)) return Reason("is " + to_string(*shape) + " for scores of " + to_string(scores));
  const PossibleValues possible = possible_values(*table, scores);
  if (possible.cases.empty()) return Reason("holds no numbers");
  if (std::ranges::all_of(possible.cases, [&](const auto& c) { return c.value == wanted; })) return CausalMask{};
  const std::vector<Literal> literals = common_literals(possible, wanted);
  const auto largest = largest_unwanted(possible, wanted, literals);
  BoundReader bounds(scores);
  const bool are_bounds = std::ranges::all_of(
      literals, [&](const Literal& literal) { return bounds.add(possible.conditions[literal.condition], literal.truth); });
  if (!largest || !are_bounds || literals.empty()) return Reason("is no causal triangle");
  CausalMask found = bounds.mask();
  found.otherwise = *largest;
  return found;
}

}  // namespace attn_opt
