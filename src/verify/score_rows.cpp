#include "src/verify/score_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/match/facts/empty_rows.h"
#include "src/trial/infinity.h"

namespace attn_opt {
namespace {

/// A bias below this absorbs every score exactly: no rounding of the scores is left.
constexpr double kAbsorbing = -1e30;
/// Keys with a bias below this are meant to be masked.
constexpr double kMasking = -1000;
/// exp(-100) is nothing beside 1.
constexpr double kNegligibleGap = 100;

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return most;
}

double largest_norm(const std::vector<double>& norms) {
  return std::ranges::any_of(norms, [](double norm) { return std::isnan(norm); }) ? kInfinity : largest(norms);
}

std::vector<double> row_norms(const LogicalTensor& tensor) {
  std::vector<double> norms;
  for (size_t begin = 0; begin < tensor.values.size(); begin += static_cast<size_t>(tensor.features)) {
    double sum = 0;
    for (size_t i = begin; i < begin + static_cast<size_t>(tensor.features); ++i) sum += tensor.values[i] * tensor.values[i];
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

/// Up to here, on both sides of 0, exp() keeps its precision in TYPE and sums of it stay finite.
double exp_range(DataType type) {
  if (type == onnx::TensorProto::FLOAT16) return 8;
  return type == onnx::TensorProto::DOUBLE ? 700 : 80;
}

/// What two sizes broadcast to.
int64_t joint_number(int64_t one, int64_t other) { return one == 1 ? other : one; }

/// At most 1: what biases are multiplied with after the model has added them, in (scores + one + other) * factor.
double least_coefficient_of_biases(const Sdpa& sdpa) {
  double least = 1;
  for (const ScoreTerm& term : sdpa.terms)
    if (term.kind == ScoreTerm::Kind::kBias && term.coefficient != 0) least = std::min(least, std::abs(term.coefficient));
  return least;
}

/// True if a tensor of DIMS broadcasts to FRAME.
bool fits(const Dims& dims, const Dims& frame) {
  if (dims.size() > frame.size()) return false;
  const auto own = frame.end() - std::ssize(dims);
  return std::equal(dims.begin(), dims.end(), own, [](int64_t one, int64_t other) { return one == 1 || one == other; });
}

class RowReader {
 public:
  explicit RowReader(const RowsRequest& request)
      : request_(request), sdpa_(request.sdpa), least_coefficient_(least_coefficient_of_biases(request.sdpa)) {}

  ScoreRows read() {
    if (!read_products()) return {};
    bias_.assign(rows_.size() * static_cast<size_t>(rows_.keys), 0);
    is_masked_.assign(bias_.size(), false);
    added_.assign(bias_.size(), 0);
    summed_.assign(bias_.size(), 0);
    // A clamp lays its own number over masked keys, and so does a floor.
    const bool has_shallow_floor = has_floor(sdpa_) && sdpa_.terms.back().fill > kAbsorbing;
    rows_.has_shallow_fill.assign(rows_.size(), sdpa_.clamp || has_shallow_floor);
    rows_.covers_infinity.assign(rows_.size(), false);
    for (const auto& term : sdpa_.terms) add(term);
    if (sdpa_.is_causal) mask_future();
    if (sdpa_.nonpad_kv_seqlen) mask_padding();
    if (sdpa_.left_window || sdpa_.right_window) mask_outside_window();
    summarise();
    return std::move(rows_);
  }

 private:
  const Tensor* contents(const Value* value) const { return value ? request_.contents(value) : nullptr; }

  /// The first view of OPERAND that has contents: what a description made for itself may have none.
  const OperandView& view_of(const Operand& operand) const {
    const auto found =
        std::ranges::find_if(operand.views, [this](const OperandView& view) { return contents(view.value) != nullptr; });
    return found == operand.views.end() ? operand.views.front() : *found;
  }

  std::optional<LogicalTensor> operand(const Operand& operand) const {
    if (operand.views.empty()) return std::nullopt;
    const OperandView& view = view_of(operand);
    const Tensor* tensor = contents(view.value);
    return tensor ? to_logical(*tensor, view.axes, request_.sizes) : std::nullopt;
  }

  /// Contents of the past of OPERAND, which its view does not hold; null if there is none.
  const Tensor* past_of(const Operand& operand) const { return contents(view_of(operand).past); }

  bool read_products() {
    const auto q = operand(sdpa_.q), k = operand(sdpa_.k), v = operand(sdpa_.v);
    if (!q || !k || !v || q->features < 1 || k->features < 1) return false;
    std::vector<double> key_norms = row_norms(*k);
    double value_magnitude = largest(v->values);
    rows_.values_are_finite = std::ranges::all_of(v->values, [](double value) { return std::isfinite(value); });
    rows_.keys = k->rows;
    if (const Tensor* past = past_of(sdpa_.k); past && past->rank() == 4) {
      if (past->dims()[3] != k->features) return false;
      rows_.keys += past->dims()[2];
      const auto norms = row_norms({0, 0, past->dims()[2], k->features, numbers_of(*past)});
      key_norms.insert(key_norms.end(), norms.begin(), norms.end());
    }
    if (const Tensor* past = past_of(sdpa_.v)) value_magnitude = std::max(value_magnitude, largest(numbers_of(*past)));
    if (value_magnitude > 0) rows_.value_magnitude = value_magnitude;
    read_dims(*q, joint_number(k->batch, v->batch));
    for (const auto& view : sdpa_.k.views)
      if (view.past) past_ = rows_.keys - request_.sizes.of(view.axes.size(Role::kRow)).value_or(rows_.keys);
    const double factor = scale() * largest_norm(key_norms);
    const Tensor norms = Tensor::of({q->batch, q->heads, q->rows}, row_norms(*q));
    const auto norms_of_rows = broadcast_to(norms, {dims_[0], dims_[1], dims_[2]});
    if (!norms_of_rows) return false;
    for (const double norm : *norms_of_rows) {
      const double product = factor * norm;
      const double score = std::isnan(product) ? kInfinity : product;
      rows_.overflows.push_back(!(score <= largest_finite(request_.type)));
      // A softcap bounds the scores but not what a sum of large products that cancel was rounded by before it.
      rows_.magnitude.push_back(score);
    }
    return true;
  }

  /// Finds how many scores there are for Q, of which some may be one for many of the batch of KEYS or of a mask: sizes that are
  /// taken for equal are others in some draws.
  void read_dims(const LogicalTensor& q, int64_t keys) {
    dims_ = {joint_number(q.batch, keys), q.heads, q.rows, rows_.keys};
    for (const ScoreTerm& term : sdpa_.terms) {
      const Tensor* tensor = is_of_other_sizes(term) ? contents(term.value) : nullptr;
      if (!tensor || tensor->dims().size() > dims_.size()) continue;
      const size_t missing = dims_.size() - tensor->dims().size();
      // Of three axes the first is that of batch and heads together.
      const size_t first = term.frame.size() == dims_.size() ? 0 : 2;
      for (size_t axis = std::max(first, missing); axis + 1 < dims_.size(); ++axis)
        dims_[axis] = joint_number(dims_[axis], tensor->dims()[axis - missing]);
    }
  }

  /// True if there are not as many scores as TERM was met at, or it has more, but of the same four axes, or of three of them.
  bool is_of_other_sizes(const ScoreTerm& term) const {
    const bool has_axes = term.frame.size() == dims_.size() || term.frame.size() + 1 == dims_.size();
    const auto frame = has_axes ? request_.sizes.of(term.frame) : std::nullopt;
    const Tensor* tensor = contents(term.value);
    return has_axes && !(frame && element_count(*frame) == element_count(dims_) && tensor && fits(tensor->dims(), *frame));
  }

  /// The sizes of all scores, on as many axes as TERM was met at.
  Dims frame_of(const ScoreTerm& term) const {
    if (!is_of_other_sizes(term)) return request_.sizes.of(term.frame).value_or(Dims());
    return term.frame.size() == dims_.size() ? dims_ : Dims{dims_[0] * dims_[1], dims_[2], dims_[3]};
  }

  double scale() const {
    double scale = sdpa_.scale * view_of(sdpa_.q).scale * view_of(sdpa_.k).scale;
    for (const auto& factor : sdpa_.tensor_scales) {
      const Tensor* tensor = contents(factor.value);
      if (!tensor) continue;
      std::vector<double> values = numbers_of(*tensor);
      if (factor.divides)
        for (double& value : values) value = 1 / value;
      scale *= largest(values);
    }
    return std::abs(scale);
  }

  void add(const ScoreTerm& term) {
    const Tensor* tensor = contents(term.value);
    const Dims frame = frame_of(term);
    if (!tensor || element_count(frame) != static_cast<int64_t>(bias_.size())) return;
    const auto values = broadcast_to(*tensor, frame);
    if (!values) return;
    for (size_t i = 0; i < bias_.size(); ++i) {
      const size_t row = i / static_cast<size_t>(rows_.keys);
      summed_[i] += term.cancelled;
      if (term.kind == ScoreTerm::Kind::kBias) {
        const double number = added_by(term, (*values)[i]);
        if (number > term.coefficient * (*values)[i]) rows_.has_shallow_fill[row] = true;
        added_[i] += number;
        summed_[i] += std::abs(number);
        bias_[i] = rounded(bias_[i] + number, request_.type);
        if (is_half_of_lowest(bias_[i])) rows_.has_shallow_fill[row] = true;
      } else if (((*values)[i] != 0) == (term.kind == ScoreTerm::Kind::kDrop)) {
        const double covered = std::exchange(added_[i], added_by(term, term.fill));
        summed_[i] = std::abs(added_[i]);
        bias_[i] = rounded(added_[i], request_.type);
        is_masked_[i] = true;
        if (std::isinf(rounded(covered / least_coefficient_, request_.type))) rows_.covers_infinity[row] = true;
        // No fill is written lower than half of the lowest half, so that other biases may lie below it.
        const bool is_half = request_.model_type == onnx::TensorProto::FLOAT16 && std::isfinite(term.fill);
        if (bias_[i] > kAbsorbing || is_half) rows_.has_shallow_fill[row] = true;
      }
    }
  }

  /// What TERM makes of VALUE, which stays in its type where rows are lowered before they are multiplied.
  double added_by(const ScoreTerm& term, double value) const {
    const double number = term.coefficient * value;
    const bool stays = is_multiplied_lowered(term) && std::isfinite(value);
    return stays ? std::max(number, lowest_finite(request_.type)) : number;
  }

  /// True of a sum of halves as low as masks are, which is rounded otherwise in the model: by each number that it is made of.
  bool is_half_of_lowest(double bias) const {
    return std::ranges::count_if(sdpa_.terms, is_bias) > 1 && request_.model_type == onnx::TensorProto::FLOAT16 &&
           std::isfinite(bias) && bias <= lowest_finite(onnx::TensorProto::FLOAT16) / 2;
  }

  /// Masks key J of row R where IS_MASKED(R, J).
  void mask(const std::function<bool(int64_t, int64_t)>& is_masked) {
    for (int64_t row = 0; row < static_cast<int64_t>(rows_.size()); ++row)
      for (int64_t key = 0; key < rows_.keys; ++key)
        if (is_masked(row, key)) bias_[static_cast<size_t>(row * rows_.keys + key)] = -kInfinity;
  }

  /// Lengths of the batch's sequences; empty if there are none.
  std::vector<double> lengths() const {
    const Tensor* lengths = contents(sdpa_.nonpad_kv_seqlen);
    return lengths && lengths->size() == dims_[0] ? numbers_of(*lengths) : std::vector<double>();
  }

  size_t batch_of(int64_t row) const {
    const int64_t rows_of_batch = static_cast<int64_t>(rows_.size()) / std::max<int64_t>(1, dims_[0]);
    return static_cast<size_t>(row / std::max<int64_t>(1, rows_of_batch));
  }

  /// The key at which the query of ROW stands.
  int64_t place(int64_t row, const std::vector<double>& counts) const {
    const int64_t first = counts.empty() ? past_ : static_cast<int64_t>(counts[batch_of(row)]) - dims_[2];
    return row % dims_[2] + first;
  }

  void mask_future() {
    mask([this, counts = lengths()](int64_t row, int64_t key) { return key > place(row, counts); });
  }

  void mask_outside_window() {
    mask([this, counts = lengths()](int64_t row, int64_t key) {
      const int64_t distance = place(row, counts) - key;
      return (sdpa_.left_window && distance > *sdpa_.left_window) || (sdpa_.right_window && -distance > *sdpa_.right_window);
    });
  }

  void mask_padding() {
    const std::vector<double> counts = lengths();
    if (counts.empty()) return;
    mask([&](int64_t row, int64_t key) { return static_cast<double>(key) >= counts[batch_of(row)]; });
  }

  void summarise() {
    rows_.adds_masks = sdpa_.terms.size() > 1;
    const double most = rows_.size() && sdpa_.less_largest_of_all ? *std::ranges::max_element(rows_.magnitude) : 0;
    rows_.product = rows_.magnitude;
    for (double& magnitude : rows_.magnitude) magnitude += most;
    const auto keys = static_cast<size_t>(rows_.keys);
    const double largest = largest_bias();
    for (size_t row = 0; row < rows_.size(); ++row) {
      double top = -kInfinity, bottom = kInfinity, most_added = -kInfinity, top_of_kept = -kInfinity;
      bool is_empty = true, is_hidden = true, hides_keys = false, holds_infinity = false;
      for (size_t i = row * keys; i < (row + 1) * keys; ++i) {
        top = std::max(top, bias_[i]);
        if (std::isfinite(bias_[i])) bottom = std::min(bottom, bias_[i]);
        if (!is_masked_[i]) top_of_kept = std::max(top_of_kept, bias_[i]);
        most_added = std::max(most_added, added_[i]);
        is_empty &= is_masked_[i] || bias_[i] == -kInfinity;
        is_hidden &= is_masked_[i] || bias_[i] <= kMasking;
        hides_keys |= is_masked_[i];
        holds_infinity |= std::isinf(bias_[i]);
      }
      if (sdpa_.infinity_makes_nan && holds_infinity && !is_empty) rows_.covers_infinity[row] = true;
      const double least = (most_added - rows_.magnitude[row]) * sdpa_.exponent_power / least_coefficient_;
      rows_.leaves_type.push_back(
          most_added <= kMasking && std::isfinite(least) &&
          (std::isinf(rounded(least, request_.model_type)) || std::isinf(rounded(least, range_of_scores(sdpa_)))));
      note_clamp(row, top_of_kept);
      note_exp_range(row, top, largest, top - bottom);
      double relevant = 0;
      for (size_t i = row * keys; i < (row + 1) * keys; ++i)
        if (bias_[i] > kAbsorbing && bias_[i] >= top - 2 * rows_.magnitude[row] - kNegligibleGap)
          relevant = std::max({relevant, std::abs(bias_[i]), std::isfinite(summed_[i]) ? summed_[i] : 0});
      rows_.magnitude[row] += relevant;
      rows_.reaches_fill.push_back(hides_keys && std::isfinite(top_of_kept) && top_of_kept <= kMasking);
      rows_.may_vanish.push_back((sdpa_.less_row_numbers && !rows_.overflows[row] && !holds_infinity) || has_low_block(row));
      rows_.is_empty.push_back(is_empty);
      rows_.is_hidden.push_back(is_hidden);
    }
  }

  /// TOP is the largest bias of ROW's keys that no fill is laid over. Keys beside it that are clamped from below have the
  /// probability 0.
  void note_clamp(size_t row, double top) {
    const double reach = 2 * rows_.magnitude[row] + (std::isfinite(top) ? std::abs(top) : 0) + kNegligibleGap;
    rows_.passes_clamp.push_back(sdpa_.clamp && !(reach <= *sdpa_.clamp));
  }

  /// What all scores are less by, but for the products: the largest bias, if the model subtracts the largest of all.
  double largest_bias() const {
    double largest = -kInfinity;
    for (const double bias : bias_) largest = std::max(largest, bias);
    return sdpa_.less_largest_of_all && std::isfinite(largest) ? largest : 0;
  }

  /// True if a block of ROW's keys lies so far below 0 that its exponentials may all be 0, and what is divided by their sum
  /// NaN.
  bool has_low_block(size_t row) const {
    const auto keys = static_cast<size_t>(rows_.keys);
    size_t begin = 0;
    for (const Dim& block : sdpa_.key_blocks) {
      const auto size = static_cast<size_t>(std::max<int64_t>(0, request_.sizes.of(block).value_or(0)));
      double top = -kInfinity;
      for (const size_t end = std::min(keys, begin + size); begin < end; ++begin)
        top = std::max(top, bias_[row * keys + begin]);
      if (!in_exp_range(row, top)) return true;
    }
    return false;
  }

  /// True if exp() of ROW's scores is a number above 0, whose bias is at most FARTHEST from 0.
  bool in_exp_range(size_t row, double farthest) const {
    const double range = std::min(exp_range(request_.type) / sdpa_.exponent_power, sdpa_.exponent_range);
    return std::abs(farthest) + rows_.magnitude[row] <= range;
  }

  /// ROW's largest bias is TOP, by SPREAD above the least number, and that of all rows LARGEST where scores are less by it.
  void note_exp_range(size_t row, double top, double largest, double spread) {
    const double center = top - largest + sdpa_.exponent_offset.value_or(0);
    // Scores that are less by others of their row than the largest may be far above 0 there.
    const double farthest = std::max(std::abs(center), sdpa_.less_others ? spread : 0);
    rows_.leaves_exp_range.push_back(sdpa_.exponent_offset && !in_exp_range(row, farthest));
    if (sdpa_.exponent_offset) rows_.magnitude[row] += std::abs(*sdpa_.exponent_offset);
  }

  const RowsRequest& request_;
  const Sdpa& sdpa_;
  double least_coefficient_;
  ScoreRows rows_;
  std::vector<double> bias_;
  std::vector<double> added_;   ///< as bias_, not rounded
  std::vector<double> summed_;  ///< of absolute numbers: what sums in any order round by, where biases cancel
  std::vector<bool> is_masked_;
  Dims dims_;         ///< batch, heads, queries, keys
  int64_t past_ = 0;  ///< keys before those that come with the queries
};

}  // namespace

ScoreRows score_rows(const RowsRequest& request) { return RowReader(request).read(); }

}  // namespace attn_opt
