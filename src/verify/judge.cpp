#include "src/verify/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "attn_opt/operator_traits.h"
#include "src/trial/infinity.h"
#include "src/trial/tensor_difference.h"
#include "src/verify/aligned_rows.h"

namespace attn_opt {
namespace {

/// Taken for the scores of a row whose operands cannot be read.
constexpr double kUnknownMagnitude = 256;
/// A row's own size counts down to this part of the largest element.
constexpr double kRowFloor = 1e-3;
/// The same of values of no attention, whose rows are drawn of very different sizes.
constexpr double kValueFloor = 1e-9;

double finite_magnitude(double value) { return std::isfinite(value) ? std::abs(value) : 0; }

double largest(std::span<const double> values) {
  double most = 0;
  for (const double value : values) most = std::max(most, finite_magnitude(value));
  return most;
}

bool same_exception(double one, double other) {
  if (std::isnan(one) || std::isnan(other)) return std::isnan(one) && std::isnan(other);
  return !std::isinf(one) && !std::isinf(other) ? true : one == other;
}

/// |ONE - OTHER|; infinite where only one is NaN or infinite.
double difference(double one, double other) {
  if (!same_exception(one, other)) return kInfinity;
  return std::isfinite(one) ? std::abs(one - other) : 0;
}

bool all_of_row(std::span<const double> row, bool (*holds)(double)) { return std::ranges::all_of(row, holds); }
bool is_nan(double value) { return std::isnan(value); }
bool is_zero(double value) { return value == 0; }
bool is_zero_or_nan(double value) { return value == 0 || std::isnan(value); }
bool is_finite(double value) { return std::isfinite(value); }

/// The id of the assumed precondition that lets ROW differ; empty if none does.
std::string explanation(const Compared& compared, const AlignedRows& aligned_rows, size_t row) {
  if (!aligned_rows.are_score_rows) return {};
  const ScoreRows& rows = compared.rows;
  const auto& assumed = compared.assumed;
  const auto before = aligned_rows.before_row(row), after = aligned_rows.after_row(row);
  // Probabilities that a mask is laid over behind the softmax are 0 there, in rows of NaN too.
  const bool is_masked = compared.output.kind == OutputKind::kProbabilities && std::ranges::any_of(before, is_nan);
  const bool was_nan = all_of_row(before, is_masked ? is_zero_or_nan : is_nan), was_number = all_of_row(before, is_finite);
  const bool is_number = all_of_row(after, is_finite), stays_number = is_number && was_number;
  const auto is_nothing = rows.values_are_finite ? is_zero : is_zero_or_nan;  // 0 times what is NaN of V stays NaN
  const bool keeps_no_key =
      (rows.is_empty[row] && was_nan && all_of_row(after, compared.output.is_summed ? is_finite : is_nothing)) ||
      (rows.is_hidden[row] && rows.has_shallow_fill[row] && stays_number) ||
      (rows.leaves_type[row] && is_number && (was_nan || stays_number));
  // A sum of masks that leaves the type is a number in double, and NaN in the type.
  const bool was_nan_in_type = rows.adds_masks && rows.leaves_type[row] && !compared.exact;
  const bool may_be_number = !assumed.empty_rows_were_nan || was_nan_in_type;
  if (assumed.rows_keep_a_key && keeps_no_key && (was_nan || may_be_number)) return "rows-keep-a-key";
  if (assumed.scores_above_fill && rows.reaches_fill[row]) return "scores-above-fill";
  if (assumed.scores_within_clamp && rows.passes_clamp[row] && stays_number) return "scores-within-clamp";
  const bool leaves_exp_range = rows.leaves_exp_range[row] || (was_nan && rows.may_vanish[row]);
  if (assumed.exp_in_range && leaves_exp_range && (is_number || !was_number)) return "exp-in-range";
  if (assumed.scores_finite && rows.covers_infinity[row] && was_nan && is_number) return "scores-finite";
  if (assumed.scores_finite && rows.overflows[row] && (was_nan || !assumed.overflow_was_nan)) return "scores-finite";
  if (assumed.values_were_nan && !rows.values_are_finite && was_nan && is_number) return "values-finite";
  return {};
}

std::string shown(double number) { return fmt::format("{:.2g}", number); }

/// The place in the tensors of element FLAT of aligned rows.
Dims place_of(const Compared& compared, size_t flat) {
  const Dims& dims = compared.before.dims();
  std::vector<double> places(static_cast<size_t>(element_count(dims)));
  std::iota(places.begin(), places.end(), 0.0);
  const auto* axes = compared.output.axes;
  if (const auto logical = axes ? to_logical(Tensor::of(dims, places), *axes, compared.sizes) : std::nullopt)
    places = logical->values;
  return index_of(static_cast<int64_t>(places[flat]), dims);
}

/// " at (0, 1, 2): 0.25 before, 0.5 after": where ROW differs most.
std::string worst_of_row(const Compared& compared, const AlignedRows& rows, size_t row) {
  const auto before = rows.before_row(row), after = rows.after_row(row);
  size_t worst = 0;
  for (size_t i = 1; i < before.size(); ++i)
    if (difference(before[i], after[i]) > difference(before[worst], after[worst])) worst = i;
  return fmt::format(" at {}: {:.6g} before, {:.6g} after", to_string(place_of(compared, row * rows.width + worst)),
                     before[worst], after[worst]);
}

/// Compares row by row: MEASURE gives the difference of a row, which is to be at most LIMIT.
template <class Measure>
Judgement judge_rows(const Compared& compared, const AlignedRows& rows, double limit, const std::string& unit,
                     const Measure& measure) {
  Judgement judgement;
  size_t worst = 0;
  for (size_t row = 0; row < rows.count(); ++row) {
    const double difference_of_row = measure(row);
    if (difference_of_row > limit)
      if (const std::string id = explanation(compared, rows, row); !id.empty()) {
        judgement.explained_by.insert(id);
        continue;
      }
    if (difference_of_row > judgement.difference) {
      judgement.difference = difference_of_row;
      worst = row;
    }
    judgement.has_equal_rows = judgement.has_equal_rows || !rows.are_score_rows || !compared.rows.is_empty[row];
  }
  judgement.is_of_zero_row = judgement.difference > limit && largest(rows.before_row(worst)) == 0;
  if (judgement.difference == kInfinity)
    judgement.failure = "NaN or infinity on one side alone";
  else if (judgement.is_of_zero_row)
    judgement.failure = "differs where its row is 0,";  // of which nothing is a part
  else if (judgement.difference > limit)
    judgement.failure = "differs by " + shown(judgement.difference) + unit;
  if (!judgement.failure.empty()) judgement.failure += worst_of_row(compared, rows, worst);
  return judgement;
}

Judgement judge_copy(const Compared& compared) {
  Judgement judgement;
  const auto before = compared.before.bytes(), after = compared.after.bytes();
  if (before.size() == after.size() && std::memcmp(before.data(), after.data(), before.size()) == 0) return judgement;
  judgement.difference = kInfinity;
  judgement.failure = "is not copied exactly";
  return judgement;
}

/// A failure if the tensors cannot be compared at all.
std::string mismatch(const Compared& compared) {
  if (compared.before.type() != compared.after.type())
    return "is of type " + type_name(compared.after.type()) + " instead of " + type_name(compared.before.type());
  if (compared.before.dims() == compared.after.dims()) return {};
  return "is of shape " + to_string(compared.after.dims()) + " instead of " + to_string(compared.before.dims());
}

Judgement unlike(std::string what) {
  Judgement judgement;
  judgement.difference = kInfinity;
  judgement.failure = std::move(what);
  judgement.is_unlike = true;
  return judgement;
}

/// The size of an error of one ulp in ROW, of whose scores MAGNITUDES are the largest.
double row_unit(const Compared& compared, const AlignedRows& rows, size_t row, const std::vector<double>& magnitudes,
                double epsilon) {
  double magnitude = kUnknownMagnitude;
  if (rows.are_score_rows)
    magnitude = magnitudes[row];
  else if (compared.rows.size() > 0)
    magnitude = *std::ranges::max_element(magnitudes);
  switch (compared.output.kind) {
    case OutputKind::kRows: {
      const double added = compared.output.is_summed ? largest(rows.before_row(row)) : 0;
      return epsilon * (1 + magnitude) * std::max(compared.rows.value_magnitude, added);
    }
    case OutputKind::kScores: return epsilon * std::max(1 + magnitude, largest(rows.before_row(row)));
    case OutputKind::kValue:
      return epsilon * std::max(largest(rows.exact_row(row)), std::numeric_limits<double>::min() / epsilon);
    case OutputKind::kProbabilities:
    case OutputKind::kCopy: break;
  }
  return epsilon * (1 + magnitude);
}

/// True if ROW is NaN on the way alone, by an overflow of the type: its exact result is finite, and what is written is.
bool overflows_on_the_way(const Compared& compared, const AlignedRows& rows, size_t row) {
  const auto before = rows.before_row(row);
  return std::ranges::any_of(before, is_nan) && all_of_row(rows.exact_row(row), is_finite) &&
         all_of_row(rows.after_row(row), is_finite) && explanation(compared, rows, row).empty();
}

/// Puts the exact result in the place of NaN that an overflow on the way made. True if there was any.
bool heal_overflows(const Compared& compared, AlignedRows& rows) {
  bool heals = false;
  for (size_t row = 0; row < rows.count(); ++row) {
    if (!overflows_on_the_way(compared, rows, row)) continue;
    heals = true;
    for (size_t i = row * rows.width; i < (row + 1) * rows.width; ++i)
      if (std::isnan(rows.before[i])) rows.before[i] = rows.exact[i];
  }
  return heals;
}

double largest_difference(std::span<const double> one, std::span<const double> other) {
  double most = 0;
  for (size_t i = 0; i < one.size(); ++i) most = std::max(most, difference(one[i], other[i]));
  return most;
}

/// The difference of ROW of a value of no attention beyond what its attributes' rounding makes of it.
double unmoved_difference(const AlignedRows& rows, size_t row) {
  const double most = largest_difference(rows.before_row(row), rows.after_row(row));
  return rows.moves.empty() ? most : std::max(0.0, most - largest(rows.moves_row(row)));
}

/// How far each side of a row lies from the exact result, and what rounding may make of the row: of its scores, and of the
/// product of Q and K alone.
struct RowErrors {
  size_t row = 0;
  double before = 0, after = 0, unit = 0, unit_of_product = 0;
};

/// The errors of all rows that can be measured, those with the largest scores first.
std::vector<RowErrors> row_errors(const Compared& compared, const AlignedRows& rows, double epsilon) {
  std::vector<RowErrors> errors;
  for (size_t row = 0; row < rows.count(); ++row) {
    const RowErrors of_row{row, largest_difference(rows.before_row(row), rows.exact_row(row)),
                           largest_difference(rows.after_row(row), rows.exact_row(row)),
                           row_unit(compared, rows, row, compared.rows.magnitude, epsilon),
                           row_unit(compared, rows, row, compared.rows.product, epsilon)};
    if (std::isfinite(of_row.before) && std::isfinite(of_row.unit)) errors.push_back(of_row);
  }
  std::ranges::sort(errors, std::greater(), &RowErrors::unit);
  return errors;
}

/// Judgement (b), second half: fails where AFTER is much worse than BEFORE is in any row whose scores are about as large, or
/// larger.
std::string much_worse(const Compared& compared, const AlignedRows& rows, double epsilon) {
  constexpr double kAboutAsLarge = 0.5;
  const std::vector<RowErrors> errors = row_errors(compared, rows, epsilon);
  double worst_before = 0;  // of the rows before NEXT, in their units
  auto next = errors.begin();
  for (const auto& [row, before, after, unit, unit_of_product] : errors) {
    for (; next != errors.end() && next->unit >= kAboutAsLarge * unit; ++next)
      if (next->before <= kUlpLimit * next->unit) worst_before = std::max(worst_before, next->before / next->unit);
    const double allowed = kWorseLimit * std::max(before, worst_before * unit) + unit_of_product;
    if (after <= allowed || !explanation(compared, rows, row).empty()) continue;
    return "is off by " + shown(after / unit) + " where the model itself is by " + shown(std::max(before / unit, worst_before));
  }
  return {};
}

/// Judgement of what is not floating: it must be equal.
Judgement judge_exactly(const Compared& compared) {
  const TensorDifference found = attn_opt::difference(compared.before, compared.after, {});
  return found.agrees() ? Judgement{} : unlike("differs: " + to_string(found));
}

/// Judgement (b) of a value of no attention: rounding may put AFTER as far from BEFORE as that is from the exact result, in the
/// same row or, within reason, in others. What is beyond that is measured.
Judgement judge_value(const Compared& compared, double epsilon, const std::string& unit) {
  constexpr double kMostOfOthers = 16;
  const AlignedRows rows = aligned(compared);
  std::vector<double> own;  // the error of each row, in its ulps
  own.reserve(rows.count());
  for (size_t row = 0; row < rows.count(); ++row)
    own.push_back(largest_difference(rows.before_row(row), rows.exact_row(row)) / row_unit(compared, rows, row, {}, epsilon));
  double others = 0;
  for (const double error : own) others = std::max(others, std::min(finite_magnitude(error), kMostOfOthers));
  return judge_rows(compared, rows, kUlpLimit, unit, [&](size_t row) {
    const double most = unmoved_difference(rows, row);
    if (!std::isfinite(most)) return most;
    const double expected = kWorseLimit * std::max(finite_magnitude(own[row]), others);
    return std::max(0.0, most / row_unit(compared, rows, row, {}, epsilon) - expected);
  });
}

/// True if something is added to what the attention of SDPA makes.
bool adds_behind(const Sdpa& sdpa) {
  return std::ranges::any_of(sdpa.output_steps,
                             [](const OutputStep& step) { return operator_has(step.op_type, Trait::kAdds); });
}

}  // namespace

JudgedOutput judged_output(const Value& existing, const Sdpa& sdpa) {
  if (!is_attention(sdpa)) return {OutputKind::kValue, nullptr, existing.name};
  for (const auto& output : sdpa.outputs)
    if (output.value == &existing) return {OutputKind::kRows, &output.axes, existing.name, adds_behind(sdpa)};
  if (sdpa.probabilities && sdpa.probabilities->value == &existing)
    return {OutputKind::kProbabilities, &sdpa.probabilities->axes, existing.name};
  if (sdpa.scores_output && sdpa.scores_output->value == &existing) return {OutputKind::kScores, nullptr, existing.name};
  for (const OperandCopy& copy : sdpa.copies)
    if (copy.value == &existing) return {OutputKind::kCopy, nullptr, existing.name};
  for (const Operand* operand : {&sdpa.k, &sdpa.v})
    for (const auto& view : operand->views)
      if (view.present == &existing || view.value == &existing) return {OutputKind::kCopy, nullptr, existing.name};
  return {OutputKind::kRows, nullptr, existing.name};
}

Assumed::Assumed(std::span<const Precondition> preconditions) {
  auto holds = [&](std::string_view id) {
    return std::ranges::any_of(preconditions,
                               [&](const Precondition& precondition) { return precondition.id == id && !precondition.proven; });
  };
  rows_keep_a_key = holds("rows-keep-a-key");
  auto is_refinement = [&](std::string_view id) {
    return std::ranges::all_of(preconditions, [&](const Precondition& precondition) {
      return precondition.id != id || precondition.proven || precondition.is_refinement;
    });
  };
  empty_rows_were_nan = is_refinement("rows-keep-a-key");
  scores_finite = holds("scores-finite");
  overflow_was_nan = is_refinement("scores-finite");
  values_were_nan = holds("values-finite") && is_refinement("values-finite");
  exp_in_range = holds("exp-in-range");
  scores_above_fill = holds("scores-above-fill");
  scores_within_clamp = holds("scores-within-clamp");
}

void Judgement::merge(const Judgement& other) {
  difference = std::max(difference, other.difference);
  if (failure.empty()) std::tie(failure, is_of_zero_row) = std::tie(other.failure, other.is_of_zero_row);
  explained_by.insert(other.explained_by.begin(), other.explained_by.end());
  has_equal_rows = has_equal_rows || other.has_equal_rows;
  is_unlike = is_unlike || other.is_unlike;
}

Judgement judge_algebra(const Compared& compared) {
  if (std::string what = mismatch(compared); !what.empty()) return unlike(std::move(what));
  if (compared.output.kind == OutputKind::kCopy) return judge_copy(compared);
  if (!is_floating(compared.before.type())) return judge_exactly(compared);
  const std::vector<double> all = numbers_of(compared.before);
  const double row_floor = compared.output.kind == OutputKind::kValue ? kValueFloor : kRowFloor;
  const double floor = std::max(row_floor * largest(all), std::numeric_limits<double>::min());
  const AlignedRows rows = aligned(compared);
  return judge_rows(compared, rows, compared.algebra_limit, " relative to its row", [&](size_t row) {
    const double scale = std::max(floor, largest(rows.before_row(row)));
    return unmoved_difference(rows, row) / scale;
  });
}

Judgement judge_in_type(const Compared& compared, DataType type) {
  if (std::string what = mismatch(compared); !what.empty()) return unlike(std::move(what));
  if (compared.output.kind == OutputKind::kCopy) return judge_copy(compared);
  if (!is_floating(compared.before.type())) return judge_exactly(compared);
  const double epsilon = type_epsilon(type);
  const std::string unit = " ulp of its row in " + type_name(type);
  if (compared.output.kind == OutputKind::kValue) return judge_value(compared, epsilon, unit);
  AlignedRows rows = aligned(compared);
  const bool heals = compared.exact && heal_overflows(compared, rows);
  Judgement judgement = judge_rows(compared, rows, kUlpLimit, unit, [&](size_t row) {
    const double most = largest_difference(rows.before_row(row), rows.after_row(row));
    return std::isfinite(most) ? most / row_unit(compared, rows, row, compared.rows.magnitude, epsilon) : most;
  });
  if (heals) judgement.explained_by.insert("scores-finite");
  if (!judgement.failure.empty() || !compared.is_finer) return judgement;
  if (const std::string worse = much_worse(compared, rows, epsilon); !worse.empty()) judgement.failure = worse + unit;
  return judgement;
}

double type_epsilon(DataType type) {
  switch (type) {
    case onnx::TensorProto::DOUBLE: return 0x1p-52;
    case onnx::TensorProto::FLOAT16: return 0x1p-10;
    case onnx::TensorProto::BFLOAT16: return 0x1p-7;
    default: return 0x1p-23;
  }
}

}  // namespace attn_opt
