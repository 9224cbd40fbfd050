#include "src/verify/input_draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "src/match/facts/empty_rows.h"
#include "src/trial/infinity.h"
#include "src/verify/mask_axes.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

constexpr double kMaskedShare = 0.3;
constexpr double kLargeFactor = 30;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kDeepMask = -1e4;
constexpr double kLeastNumber = 1e-4;
constexpr double kNearLowest = 0.75;
/// What biases that grow with positions reach (ALiBi adds half of a key's position).
constexpr std::array<double, 4> kFarBiases = {0, 500, -500, 60};

/// The term that INPUT is, or that a description made of it; null if there is none.
const ScoreTerm* term_of(const SiteInput& input, const Sdpa& sdpa) {
  const auto term = std::ranges::find(sdpa.terms, input.value, &ScoreTerm::value);
  return term == sdpa.terms.end() ? bias_made_from(input, sdpa) : &*term;
}

/// 0 if it is none.
int64_t term_index(const SiteInput& input, const Sdpa& sdpa) {
  const ScoreTerm* term = term_of(input, sdpa);
  return term ? term - sdpa.terms.data() : 0;
}

/// True if INPUT is added where a fill was laid over scores: rows of nothing else show each number of it then.
bool is_added_to_fill(const SiteInput& input, const Sdpa& sdpa) {
  const auto below = std::span(sdpa.terms).first(static_cast<size_t>(term_index(input, sdpa)));
  return std::ranges::any_of(below, [](const ScoreTerm& term) { return term.kind != ScoreTerm::Kind::kBias; });
}

/// Which of the parts that make a bias together VALUE is; nullopt if it is none.
std::optional<size_t> part_of_bias(const Value* value, const Sdpa& sdpa) {
  for (const ScoreTerm& term : sdpa.terms) {
    const auto& parts = term.parts.values;
    const auto part = std::ranges::find(parts, value);
    if (part != parts.end()) return static_cast<size_t>(part - parts.begin());
  }
  return std::nullopt;
}

/// What INPUT is multiplied by before it is added to the scores.
double coefficient_of(const SiteInput& input, const Sdpa& sdpa) {
  const ScoreTerm* term = term_of(input, sdpa);
  return term ? term->coefficient : 1;
}

bool is_held_in_type(const SiteInput& input, const Sdpa& sdpa) {
  const ScoreTerm* term = term_of(input, sdpa);
  return term && is_held_in_type(*term, input.extremes, input.type);
}

/// The lowest number that does not become -inf on its way to the scores.
double lowest_of(const SiteInput& input, const Sdpa& sdpa) {
  const double taken_out = is_held_in_type(input, sdpa) ? 1 : std::abs(coefficient_of(input, sdpa));
  return lowest_finite(input.type) / std::max(1.0, taken_out);
}

/// The deepest mask that INPUT can hold beside extremes, before its sign: its own end where that is deep, and in float16, where
/// a deeper one beside the lowest number would be -inf.
double deepest_of(const SiteInput& input, const Sdpa& sdpa) {
  const double end = coefficient_of(input, sdpa) < 0 ? -input.extremes.greatest : input.extremes.least;
  const bool is_deep = std::isfinite(end) && end < kDeepMask;
  return is_deep || (input.type == P::FLOAT16 && end > kDeepMask) ? end : kDeepMask;
}

/// True if a key is masked by what INPUT holds at its upper end, as where it is subtracted: unless it ends at 0 there.
bool is_masked_from_above(const SiteInput& input, const Sdpa& sdpa) {
  const MaskContents& contents = input.extremes;
  const bool ends_at_zero = contents.greatest <= 0 && (contents.may_hold_minus_inf || contents.may_hold_lowest);
  return coefficient_of(input, sdpa) < 0 && !ends_at_zero;
}

/// Where the keys lie in a value of K's.
struct KeyAxis {
  int64_t stride = 1, extent = 0;  ///< 0: on no axis of their own
  bool is_last(int64_t index) const { return extent > 0 && index / stride % extent == extent - 1; }
};

KeyAxis key_axis(const Value* value, const Dims& dims, const Sdpa& sdpa) {
  for (const auto& view : sdpa.k.views) {
    if (view.value != value || view.axes.rank() != dims.size()) continue;
    const auto axis = view.axes.axis_of(Role::kRow, std::vector<bool>(dims.size(), false));
    if (!axis) continue;
    const auto rows = dims.begin() + static_cast<std::ptrdiff_t>(*axis);
    return {element_count(Dims(rows + 1, dims.end())), *rows};
  }
  return {};
}

/// The mask that counts queries from the lengths VALUE: "lengths-in-range" is assumed of these. Null if there is none.
const ScoreTerm* mask_that_counts_from(const Value* value, const Sdpa& sdpa) {
  const auto found = std::ranges::find_if(sdpa.terms, [&](const ScoreTerm& term) {
    return term.causal && term.causal->lengths == value && term.causal->counts_from_lengths && term.causal->offset;
  });
  return found == sdpa.terms.end() ? nullptr : &*found;
}

/// The most that lengths VALUE may be among KEYS, so that the last query stands at a key.
int64_t most_length(const Value* value, int64_t keys, const DrawRequest& request) {
  const ScoreTerm* mask = mask_that_counts_from(value, request.sdpa);
  if (!mask || mask->frame.size() < 2) return keys;
  const auto added = request.sizes.of(*mask->causal->offset + mask->frame[mask->frame.size() - 2]);
  return added ? keys - *added : keys;
}

/// Draws one input, element by element, in double.
class InputDraw {
 public:
  InputDraw(const DrawRequest& request, const SiteInput& input, const Dims& dims, int64_t keys, RandomNumbers random)
      : request_(request),
        role_(role_of(input, request.sdpa)),
        random_(random),
        keys_(keys),
        term_(term_index(input, request.sdpa)),
        terms_(static_cast<int64_t>(std::max<size_t>(1, request.sdpa.terms.size()))),
        key_axes_(key_axes_of_mask(input, request.sdpa)),
        columns_(element_count(std::span(dims).subspan(key_axes_.begin, key_axes_.end - key_axes_.begin))),
        column_stride_(element_count(std::span(dims).subspan(key_axes_.end))),
        queries_(column_stride_ > 1     ? dims.back()
                 : key_axes_.begin == 0 ? 1
                                        : dims[key_axes_.begin - 1]),
        rows_(columns_ ? element_count(dims) / columns_ : 0),
        lowest_(lowest_of(input, request.sdpa)),
        deepest_(deepest_of(input, request.sdpa)),
        extremes_(input.extremes),
        is_floating_(is_floating(input.type)),
        keeps_to_range_((is_floating(input.type) && element_size(input.type) > element_size(request.sdpa.type)) ||
                        is_added_to_fill(input, request.sdpa)),
        is_lost_beside_lowest_(input.type == P::FLOAT16 && (terms_ > 1 || part_of_bias(input.value, request.sdpa))),
        is_further_part_(part_of_bias(input.value, request.sdpa) > size_t{0}),
        is_picked_(is_picked_from(*input.value, request.sdpa)),
        keys_of_input_(key_axis(input.value, dims, request.sdpa)),
        sign_(is_masked_from_above(input, request.sdpa) ? -1 : 1),
        has_no_other_(is_held_in_type(input, request.sdpa)),
        most_length_(std::max<int64_t>(0, most_length(input.value, keys, request))),
        may_leave_range_(input.value != request.sdpa.nonpad_kv_seqlen && !mask_that_counts_from(input.value, request.sdpa)) {}

  double element(int64_t index) {
    if (role_ == InputRole::kLength) return length(index);
    if (role_ == InputRole::kTensorScale) return 0.5 + 1.5 * random_.uniform();
    const int64_t block = columns_ * column_stride_;
    const int64_t row = index / block * column_stride_ + index % column_stride_, column = index % block / column_stride_;
    if (role_ == InputRole::kBias) return within_range(sign_ * within_extremes(bias(row, column)));
    if (!is_floating_) return masks(row, column) == (role_ == InputRole::kDrop) ? 1 : 0;
    const bool may_be_no_number = request_.kind == DrawKind::kNotFinite || request_.kind == DrawKind::kAllMasked;
    if (may_be_no_number && is_no_number(index)) return kNoNumber;
    const bool is_large = request_.kind == DrawKind::kLarge && role_ == InputRole::kQuery;
    const double number = random_.bell() * (is_large ? kLargeFactor : 1);
    // The model may divide by it: lengths of rows, say, that are drawn apart from the rows.
    return number != 0 ? number : kLeastNumber;
  }

 private:
  bool is_no_number(int64_t index) const {
    if (request_.kind == DrawKind::kAllMasked) return role_ == InputRole::kQuery;
    if (role_ == InputRole::kQuery) return index / columns_ == empty_row();
    return role_ == InputRole::kKey && keys_of_input_.is_last(index);
  }

  /// VALUE, or the deepest that the model's own mask can reach: what it never holds proves nothing.
  double within_extremes(double value) const {
    if (value == -kInfinity && !may_hold_infinity()) value = lowest_;
    if (!(value <= kNearLowest * lowest_) || !std::isfinite(value)) return value;
    if (!may_hold_lowest()) return deepest_;
    return has_no_other_ && value > lowest_ ? lowest_ : value;
  }

  /// What masks a key lies at the upper end of a mask that is subtracted.
  bool may_hold_infinity() const { return sign_ > 0 ? extremes_.may_hold_minus_inf : extremes_.greatest == kInfinity; }
  bool may_hold_lowest() const {
    const bool is_up_to_infinity = extremes_.greatest == kInfinity && extremes_.holds_ends_alone;
    return sign_ > 0 ? extremes_.may_hold_lowest : extremes_.greatest >= -lowest_ && !is_up_to_infinity;
  }

  /// VALUE, or the nearest that the model's own mask can hold beside its extremes: where it is cast to the type of Q, K and V,
  /// or added to a fill that is written deeper than the model's, that it holds nothing else may be why.
  double within_range(double value) const {
    if (!keeps_to_range_) return value;
    const bool is_extreme = std::isinf(value) || std::abs(value) >= std::abs(kNearLowest * lowest_);
    return is_extreme || extremes_.least > extremes_.greatest ? value : std::clamp(value, extremes_.least, extremes_.greatest);
  }

  int64_t empty_row() const { return rows_ / 2; }
  /// That row, or all of those of which the site has some.
  bool is_empty_row(int64_t row) const { return row == empty_row() || is_picked_; }
  /// Rows that this term leaves without a key: one with all others, one alone.
  bool empties(int64_t row) const { return is_empty_row(row) || (terms_ > 1 && row == (empty_row() + 2 + term_) % rows_); }
  /// The row in which the terms mask the keys in turn.
  bool is_split_row(int64_t row) const { return terms_ > 1 && (rows_ == 1 || row == (empty_row() + 1) % rows_); }
  bool masks_in_turn(int64_t column) const { return column % terms_ == term_; }
  bool is_future(int64_t row, int64_t column) const {
    return column > row % queries_ + std::max<int64_t>(0, columns_ - queries_);
  }

  double bias(int64_t row, int64_t column) {
    const bool is_plain = request_.kind == DrawKind::kRandom || request_.kind == DrawKind::kLarge;
    const double drawn = random_.bell(), normal = is_lost_beside_lowest_ && !is_plain ? 0 : drawn;
    switch (request_.kind) {
      case DrawKind::kAllKept: return 0;
      case DrawKind::kMixed: return is_empty_row(row) && rows_ > 1 ? fill() : mixed(normal);  // a sole row keeps some keys
      case DrawKind::kEmptyRow:
        if (empties(row) || (is_split_row(row) && masks_in_turn(column))) return -kInfinity;
        return normal;
      case DrawKind::kLowestRow:
        if (is_further_part_) return normal;  // two lowest numbers make -inf
        if (is_empty_row(row) || (is_split_row(row) && masks_in_turn(column))) return lowest_;
        if (row == (empty_row() + 2) % rows_) return around_lowest(column);
        return normal;
      case DrawKind::kFar: return far(row) + normal;
      case DrawKind::kCausal:
        if (queries_ == 1) return around_lowest(column);
        return is_future(row, column) ? -kInfinity : normal;
      case DrawKind::kRandom:
      case DrawKind::kLarge:
      case DrawKind::kAllMasked:
      case DrawKind::kNotFinite:
      case DrawKind::kWide:
      case DrawKind::kNoNumbers:
      case DrawKind::kScattered: break;
    }
    return normal;
  }

  double far(int64_t row) const {
    const double number = row == empty_row() ? kDeepMask : kFarBiases[static_cast<size_t>(row) % kFarBiases.size()];
    return extremes_.least <= extremes_.greatest ? std::clamp(number, extremes_.least, extremes_.greatest) : 0;
  }

  double around_lowest(int64_t column) const { return lowest_ * (column % 2 ? kNearLowest : 1); }

  double fill() {
    switch (random_.below(3)) {
      case 0: return -1e4;
      case 1: return lowest_;
      default: return -kInfinity;
    }
  }

  double mixed(double normal) {
    switch (random_.below(5)) {
      case 0: return 0;
      case 1: return normal;
      default: return fill();
    }
  }

  bool masks(int64_t row, int64_t column) {
    const bool masked = random_.uniform() < kMaskedShare;
    switch (request_.kind) {
      case DrawKind::kAllKept: return false;
      case DrawKind::kAllMasked: return role_ == InputRole::kKeep || role_ == InputRole::kDrop || row % 2 == 1;
      case DrawKind::kEmptyRow:
        if (empties(row)) return true;
        return is_split_row(row) && masks_in_turn(column);
      case DrawKind::kLowestRow: return is_split_row(row) ? masks_in_turn(column) : masked;
      case DrawKind::kCausal: return is_future(row, column);
      case DrawKind::kRandom:
      case DrawKind::kNotFinite: return masked || (row % 2 == 0 && column == columns_ - 1);
      // As padding in front does, which leaves the first query of a causal row no key.
      case DrawKind::kMixed: return masked || (row % 2 == 0 && column == 0);
      case DrawKind::kFar:
      case DrawKind::kLarge:
      case DrawKind::kWide:
      case DrawKind::kNoNumbers:
      case DrawKind::kScattered: break;
    }
    return masked;
  }

  double length(int64_t index) {
    if (request_.kind == DrawKind::kAllKept || most_length_ < 1) return static_cast<double>(most_length_);
    if (request_.kind == DrawKind::kEmptyRow && index == empty_row()) return 0;
    if (request_.kind == DrawKind::kMixed && may_leave_range_)
      return static_cast<double>(index % 2 == 0 ? keys_ + 1 + random_.below(keys_) : -keys_ - random_.below(keys_));
    return static_cast<double>(1 + random_.below(most_length_));
  }

  const DrawRequest& request_;
  InputRole role_;
  RandomNumbers random_;
  int64_t keys_, term_, terms_;
  AxisRange key_axes_;
  int64_t columns_, column_stride_, queries_, rows_;
  double lowest_, deepest_;
  MaskContents extremes_;
  bool is_floating_;
  bool keeps_to_range_;
  bool is_lost_beside_lowest_;  ///< a normal number added to the lowest, in the type; double would keep it
  bool is_further_part_;
  bool is_picked_;
  KeyAxis keys_of_input_;
  double sign_;        ///< of a bias: what masks a key when it is subtracted lies at the other end
  bool has_no_other_;  ///< deep number than the lowest, beside which others leave what a coefficient can tell apart
  int64_t most_length_;
  bool may_leave_range_;  ///< of lengths: negative, or more than there are keys
};

int64_t number_of_keys(const DrawRequest& request) {
  if (request.sdpa.k.views.empty()) return 0;
  return request.sizes.of(request.sdpa.k.views.front().axes.size(Role::kRow)).value_or(0);
}

}  // namespace

Expected<std::function<double(int64_t)>> input_draw(const DrawRequest& request, const SiteInput& input, const Dims& dims,
                                                    RandomNumbers random) {
  const int64_t keys = number_of_keys(request);
  if (most_length(input.value, keys, request) < 0)
    return fail(ErrorCode::kInvalidInput, input.value->name, "no lengths fit the sizes");
  return [draw = InputDraw(request, input, dims, keys, random)](int64_t index) mutable { return draw.element(index); };
}

}  // namespace attn_opt
