#include "src/exec/attention/attention_bias.h"

#include <cstring>
#include <limits>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/elementwise/round_to_type.h"
#include "src/exec/interleave.h"

namespace attn_opt {
namespace {

constexpr int64_t kFar = int64_t{1} << 60;  // beyond every position, and sums of a few do not overflow

template <class C>
constexpr C kMinusInfinity = -std::numeric_limits<C>::infinity();

/// The mask with its dims as four, [B, H, L, S]; an omitted axis is 1.
Expected<Dims> four_dims(const KernelContext& context, const Tensor& mask, const AttentionProblem& problem) {
  Dims dims = mask.dims();
  if (dims.size() > 4) return context.invalid("the mask's rank is above 4");
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  const Dims scores = problem.score_dims();
  for (size_t i = 0; i < 4; ++i) {
    const bool is_padded = i == 3 && context.version >= 24 && mask.rank() > 0;
    if (is_padded || dims[i] == 1 || dims[i] == scores[i]) continue;
    return context.invalid("mask " + print_dims(mask.dims()) + " does not broadcast to " + print_dims(scores));
  }
  return dims;
}

/// True if no value is NaN or +inf. Values are compared many at once, as a loop that ends at the first cannot.
template <class U>
bool is_below_infinity(std::span<const U> values) {
  constexpr size_t kAtOnce = 1024;
  for (size_t first = 0; first < values.size(); first += kAtOnce) {
    int below = 1;
    for (const U x : values.subspan(first, std::min(kAtOnce, values.size() - first))) {
      below &= static_cast<int>(static_cast<Compute<U>>(x) < std::numeric_limits<Compute<U>>::infinity());
    }
    if (below == 0) return false;
  }
  return true;
}

/// Behind the last key of KEYS that ROW allows, of which there is one.
int64_t end_of_true(const bool* row, KeyRange keys) {
  for (uint64_t eight; keys.size() >= 8; keys.end -= 8) {  // padding is long
    std::memcpy(&eight, row + keys.end - 8, 8);
    if (eight != 0) break;
  }
  while (!row[keys.end - 1]) --keys.end;
  return keys.end;
}

}  // namespace

template <class C>
Expected<AttentionBias<C>> AttentionBias<C>::create(const KernelContext& context, const AttentionProblem& problem) {
  AttentionBias bias;
  bias.type_ = problem.type;
  bias.keys_ = bias.mask_keys_ = problem.keys;
  bias.causal_ = context.attribute_int("is_causal", 0) == 1;
  if (context.version >= 25) {
    bias.left_ = std::min(kFar, context.attribute_int("left_window_size", -1));
    bias.right_ = std::min(kFar, context.attribute_int("right_window_size", -1));
    if (bias.left_ < -1 || bias.right_ < -1) return context.invalid("a window's size is below -1");
  }
  bias.valid_.assign(static_cast<size_t>(problem.batch), problem.keys);
  bias.offsets_.assign(static_cast<size_t>(problem.batch), problem.past);
  if (context.has(6)) {
    ATTN_OPT_TRY(bias.valid_, context.integers(context.input(6)));
    if (context.input(6).dims() != Dims{problem.batch}) return context.invalid("nonpad_kv_seqlen is not [B]");
    for (size_t b = 0; b < bias.valid_.size(); ++b) {
      bias.valid_[b] = std::clamp(bias.valid_[b], -kFar, kFar);
      bias.offsets_[b] = bias.valid_[b] - problem.queries;
    }
  }
  if (!context.has(3)) return bias;
  bias.mask_ = context.input(3);
  ATTN_OPT_TRY(const Dims dims, four_dims(context, bias.mask_, problem));
  const Dims strides = strides_of({dims[0], dims[1], dims[2]});
  for (size_t i = 0; i < 3; ++i) bias.row_strides_[i] = dims[i] == 1 ? 0 : strides[i];
  bias.row_size_ = dims[3];
  const bool broadcasts_keys = dims[3] == 1 && (context.version < 24 || bias.mask_.rank() == 0);
  if (!broadcasts_keys) bias.mask_keys_ = std::min(problem.keys, dims[3]);
  bias.key_stride_ = broadcasts_keys ? 0 : 1;
  bias.by_integers_ = bias.mask_.type() != onnx::TensorProto::BOOL && !is_floating(bias.mask_.type());
  ATTN_OPT_TRY(bias.minus_infinity_, Tensor::scalar(kMinusInfinity<float>).cast(bias.mask_.type()));
  ATTN_OPT_CHECK(dispatch(context, bias.mask_.type(), FixedSizeTypes{}, [&]<class U>() -> Status {
    bias.fill_ = &AttentionBias::fill<U>;
    if constexpr (std::is_same_v<U, C>) {
      const bool is_exact = problem.type == data_type_of<C>() && bias.key_stride_ == 1;
      if (is_exact) bias.as_it_is_ = bias.mask_.template data<U>().data();
    }
    if constexpr (kIsFloat<U>) {
      bias.excludes_others_ = is_below_infinity(bias.mask_.template data<U>());
    }
    return {};
  }));
  if (bias.mask_.type() == onnx::TensorProto::BOOL && bias.key_stride_ == 1) bias.find_runs(context.threads);
  return bias;
}

/// Of short rows a table is larger than the mask.
template <class C>
void AttentionBias<C>::find_runs(ThreadPool& threads) {
  constexpr int64_t kFewestKeysOfATable = 128, kRowsAtOnce = 64;
  if (row_size_ < kFewestKeysOfATable) return;
  runs_.resize(static_cast<size_t>(mask_.size() / row_size_));
  const int64_t rows = static_cast<int64_t>(runs_.size());
  threads.parallel_for((rows + kRowsAtOnce - 1) / kRowsAtOnce, [&](int64_t i) {
    for (int64_t row = i * kRowsAtOnce; row < std::min(rows, (i + 1) * kRowsAtOnce); ++row) {
      Run& run = runs_[static_cast<size_t>(row)];
      run.keys = run_of_true(row, {0, mask_keys_}, run.has_holes);
    }
  });
}

template <class C>
KeyRange AttentionBias<C>::allowed(int64_t batch, int64_t query) const {
  if (by_integers_) return {0, keys_};
  const auto b = static_cast<size_t>(batch);
  const int64_t position = query + offsets_[b];
  KeyRange range{0, std::min(mask_keys_, valid_[b])};
  if (causal_) range.end = std::min(range.end, position + 1);
  if (right_ >= 0) range.end = std::min(range.end, position + right_ + 1);
  if (left_ >= 0) range.begin = std::max(range.begin, position - left_);
  range.end = std::max(range.end, range.begin);
  return range;
}

template <class C>
int64_t AttentionBias<C>::mask_row(const QueryLanes& lanes, int lane) const {
  const auto l = static_cast<size_t>(lane);
  return lanes.batch * row_strides_[0] + lanes.head[l] * row_strides_[1] + lanes.query[l] * row_strides_[2];
}

/// The mask of one row from FROM on; of integers, as the schema's body adds it up with -inf.
template <class C>
template <class U>
void AttentionBias<C>::fill(int64_t row_number, int64_t query, int64_t batch, KeyRange keys, C* to) const {
  const U* row = mask_.data<U>().data() + row_number * row_size_;
  const int64_t step = key_stride_;
  const int64_t last = std::min(keys.end, mask_keys_);
  if constexpr (std::is_same_v<U, bool>) {
    for (int64_t j = keys.begin; j < last; ++j, ++to) *to = row[j * step] ? C{0} : kMinusInfinity<C>;
  } else if constexpr (kIsFloat<U>) {
    for (int64_t j = keys.begin; j < last; ++j, ++to) *to = static_cast<C>(static_cast<Compute<U>>(row[j * step]));
  } else {
    using Bits = std::make_unsigned_t<U>;
    const Bits excluded = static_cast<Bits>(minus_infinity_.data<U>()[0]);
    const auto b = static_cast<size_t>(batch);
    const int64_t position = query + offsets_[b];
    for (int64_t j = keys.begin; j < keys.end; ++j, ++to) {
      Bits sum = j < mask_keys_ ? static_cast<Bits>(row[j * step]) : excluded;
      const auto exclude = [&](bool out) { sum = static_cast<Bits>(sum + (out ? excluded : Bits{0})); };
      exclude(causal_ && j > position);
      exclude((left_ >= 0 && position - j > left_) || (right_ >= 0 && j - position > right_));
      exclude(j >= valid_[b]);
      *to = static_cast<C>(static_cast<U>(sum));
    }
    return;
  }
  for (int64_t j = std::max(keys.begin, last); j < keys.end; ++j, ++to) *to = C{0};
}

/// The keys of KEYS that a row of a bool mask allows, and those between them.
template <class C>
KeyRange AttentionBias<C>::true_keys(int64_t row, KeyRange keys, bool& has_holes) const {
  if (runs_.empty()) return run_of_true(row, keys, has_holes);
  const Run& run = runs_[static_cast<size_t>(row)];
  return run.has_holes ? run_of_true(row, keys, has_holes) : run.keys & keys;
}

template <class C>
KeyRange AttentionBias<C>::run_of_true(int64_t row_number, KeyRange keys, bool& has_holes) const {
  const bool* row = mask_.data<bool>().data() + row_number * row_size_;
  if (key_stride_ == 0) return row[0] ? keys : KeyRange{keys.begin, keys.begin};
  const auto size = [](KeyRange range) { return static_cast<size_t>(range.size()); };
  const void* first = std::memchr(row + keys.begin, 1, size(keys));
  if (first == nullptr) return {keys.begin, keys.begin};
  keys.begin = static_cast<const bool*>(first) - row;
  keys.end = end_of_true(row, keys);
  has_holes |= std::memchr(row + keys.begin, 0, size(keys)) != nullptr;
  return keys;
}

/// Behind the keys at the begin of KEYS that all lanes allow.
template <class C>
int64_t AttentionBias<C>::end_of_common(const LaneRanges& ranges, int lanes, KeyRange keys) {
  int64_t end = keys.end;
  for (size_t lane = 0; lane < static_cast<size_t>(lanes); ++lane) {
    const bool begins = ranges[lane].begin <= keys.begin && !ranges[lane].empty();
    end = std::min(end, begins ? ranges[lane].end : keys.begin);
  }
  return end;
}

template <class C>
typename AttentionBias<C>::Block AttentionBias<C>::block(const QueryLanes& lanes, KeyRange keys, bool trim, C* buffer) const {
  const bool by_bools = mask_.type() == onnx::TensorProto::BOOL;
  const bool by_numbers = mask_.has_value() && !by_bools;
  bool has_holes = by_numbers;
  LaneRanges ranges;
  KeyRange hull{keys.end, keys.begin}, of_query;
  const bool is_by_query = causal_ || left_ >= 0 || right_ >= 0;
  for (int lane = 0; lane < lanes.count; ++lane) {
    const auto l = static_cast<size_t>(lane);
    if (lane == 0 || is_by_query) of_query = allowed(lanes.batch, lanes.query[l]) & keys;
    const bool asks = by_bools && !of_query.empty();
    const KeyRange range = asks ? true_keys(mask_row(lanes, lane), of_query, has_holes) : of_query;
    ranges[l] = range;
    if (range.empty()) continue;
    hull.begin = std::min(hull.begin, range.begin);
    hull.end = std::max(hull.end, range.end);
  }
  if (trim && excludes_others_) keys = hull;
  if (keys.empty()) return {{keys.begin, keys.begin}};
  KeyRange biased = keys;
  if (!has_holes) biased.begin = end_of_common(ranges, lanes.count, keys);
  if (biased.empty()) return {keys};
  Block in_place{keys};
  if (read_in_place(lanes, ranges, in_place)) return in_place;
  write(lanes, ranges, biased, buffer);
  return trim && by_numbers ? without_excluded_ends(keys, lanes.count, buffer) : Block{keys, buffer, biased.begin - keys.begin};
}

/// True if the mask's rows can be added as they are, and exclude no key at either end for all lanes.
template <class C>
bool AttentionBias<C>::read_in_place(const QueryLanes& lanes, const LaneRanges& ranges, Block& block) const {
  if (as_it_is_ == nullptr) return false;
  bool has_first = false, has_last = false;
  for (int lane = 0; lane < lanes.count; ++lane) {
    const auto l = static_cast<size_t>(lane);
    if (!ranges[l].covers(block.keys)) return false;
    const C* row = as_it_is_ + mask_row(lanes, lane) * row_size_ + block.keys.begin;
    has_first |= row[0] != kMinusInfinity<C>;
    has_last |= row[block.keys.size() - 1] != kMinusInfinity<C>;
    block.rows[l] = row;
  }
  return has_first && has_last;
}

template <class C>
void AttentionBias<C>::write_row(const QueryLanes& lanes, int lane, KeyRange range, KeyRange keys, C* row) const {
  if (mask_.has_value()) {
    (this->*fill_)(mask_row(lanes, lane), lanes.query[static_cast<size_t>(lane)], lanes.batch, keys, row);
  } else {
    std::fill_n(row, keys.size(), C{0});
  }
  const auto exclude = [&](int64_t begin, int64_t end) {
    for (int64_t j = std::max(begin, keys.begin); j < std::min(end, keys.end); ++j) row[j - keys.begin] += kMinusInfinity<C>;
  };
  exclude(keys.begin, range.begin);
  exclude(std::max(range.begin, range.end), keys.end);
  if (mask_.has_value()) round_to_type(row, keys.size(), type_);
}

template <class C>
void AttentionBias<C>::write(const QueryLanes& lanes, const LaneRanges& ranges, KeyRange keys, C* panel) const {
  std::array<const C*, kMostLanes> rows{};
  C* next = panel + keys.size() * lanes.count;
  for (int lane = 0; lane < lanes.count; ++lane) {
    const auto l = static_cast<size_t>(lane);
    const bool repeats = lane > 0 && !by_integers_ && mask_row(lanes, lane) == mask_row(lanes, lane - 1) &&
                         ranges[l].begin == ranges[l - 1].begin && ranges[l].end == ranges[l - 1].end;
    if (repeats) {
      rows[l] = rows[l - 1];
      continue;
    }
    if (as_it_is_ != nullptr && ranges[l].covers(keys)) {
      rows[l] = as_it_is_ + mask_row(lanes, lane) * row_size_ + keys.begin;
      continue;
    }
    write_row(lanes, lane, ranges[l], keys, next);
    rows[l] = next;
    next += keys.size();
  }
  interleave(rows.data(), lanes.count, keys.size(), C{1}, panel);
}

template <class C>
typename AttentionBias<C>::Block AttentionBias<C>::without_excluded_ends(KeyRange keys, int lanes, const C* bias) const {
  const auto is_excluded = [&](int64_t j) {
    const C* row = bias + j * lanes;
    return std::all_of(row, row + lanes, [](C x) { return x == kMinusInfinity<C>; });
  };
  int64_t first = 0, last = keys.size();
  while (first < last && is_excluded(first)) ++first;
  while (last > first && is_excluded(last - 1)) --last;
  return {{keys.begin + first, keys.begin + last}, bias + first * lanes};
}

template class AttentionBias<float>;
template class AttentionBias<double>;

}  // namespace attn_opt
