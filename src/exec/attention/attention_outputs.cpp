#include <cmath>
#include <limits>

#include "src/exec/attention/attention_core.h"
#include "src/exec/attention/attention_rows.h"
#include "src/exec/elementwise/round_to_type.h"
#include "src/exec/interleave.h"

namespace attn_opt {
namespace {

/// What scales sums of weights exp(score - FROM) to exp(score - TO).
template <class C>
C rescaling(C from, C to) {
  return std::exp(from - (to == -std::numeric_limits<C>::infinity() ? C{0} : to));
}

/// 0 * V summed over all keys: 0, or NaN for features that are not finite somewhere.
template <class C>
std::vector<C> zero_times_values(const AttentionProblem& p, int64_t batch, int64_t kv_head) {
  std::vector<C> sums(static_cast<size_t>(p.v_head_size), C{0}), buffer(sums.size());
  for (int64_t j = 0; j < p.keys; ++j) {
    const int part = j < p.seam ? 0 : 1;
    const auto row =
        load_rows(p.value_parts[part], batch, kv_head, part == 0 ? j : j - p.seam, 1, p.v_head_size, buffer.data());
    for (size_t d = 0; d < sums.size(); ++d) sums[d] += C{0} * row.data[d];
  }
  return sums;
}

}  // namespace

template <class C>
void AttentionCore<C>::merge(Partial<C>& into, const Partial<C>& later) {
  const int64_t lanes = into.lanes;
  for (int64_t i = 0; i < into.panels * lanes; ++i) {
    const C a = into.most.data()[i], b = later.most.data()[i];
    const C most = a > b ? a : b;
    const C scale_a = rescaling(a, most), scale_b = rescaling(b, most);
    into.most.data()[i] = most;
    into.sum.data()[i] = into.sum.data()[i] * scale_a + later.sum.data()[i] * scale_b;
    into.has_key.data()[i] = std::max(into.has_key.data()[i], later.has_key.data()[i]);
    const int64_t first = i / lanes * into.width * lanes + i % lanes;
    for (int64_t d = 0; d < into.width; ++d) {
      C& out = into.out.data()[first + d * lanes];
      out = out * scale_a + later.out.data()[first + d * lanes] * scale_b;
    }
  }
}

/// The row of Y of a query without a key.
template <class C>
std::vector<C> AttentionCore<C>::of_no_key(const QueryBlock& block) const {
  if (std::isinf(largest_key(block.batch, block.kv_head))) return zero_times_values<C>(problem_, block.batch, block.kv_head);
  return std::vector<C>(static_cast<size_t>(problem_.v_head_size), C{0});
}

template <class C>
void AttentionCore<C>::finish(const QueryBlock& block, const Partial<C>& partial, Workspace<C>& work) const {
  const int64_t width = partial.width;
  C* const buffer = work.rows.reserve(partial.lanes * width);
  std::array<C*, kMostLanes> rows{};
  std::array<C, kMostLanes> factors{};
  std::vector<C> none;
  for (int64_t panel = 0; panel < partial.panels; ++panel) {
    const QueryLanes& lanes = partial.queries[static_cast<size_t>(panel)];
    const int64_t first = panel * partial.lanes;
    const auto y_offset = [&](size_t lane) { return problem_.y.offset(block.batch, lanes.head[lane], lanes.query[lane]); };
    for (size_t lane = 0; lane < static_cast<size_t>(partial.lanes); ++lane) {
      const bool in_place = y_data_ != nullptr && static_cast<int>(lane) < lanes.used;
      rows[lane] = in_place ? y_data_ + y_offset(lane) : buffer + static_cast<int64_t>(lane) * width;
      factors[lane] = 1 / partial.sum.data()[first + static_cast<int64_t>(lane)];
    }
    deinterleave(partial.out.data() + first * width, partial.lanes, width, factors.data(), rows.data());
    for (size_t lane = 0; lane < static_cast<size_t>(lanes.used); ++lane) {
      const int64_t i = first + static_cast<int64_t>(lane);
      const bool has_key = partial.has_key.data()[i] != 0;
      if (!has_key && none.empty()) none = of_no_key(block);
      if (!has_key) std::copy(none.begin(), none.end(), rows[lane]);
      if (y_data_ == nullptr) store_row(rows[lane], width, y_, y_offset(lane));
      if (problem_.wanted != ScoreStage::kProbabilities) continue;
      give_probabilities(score_row(lanes, lane), partial.most.data()[i], partial.sum.data()[i], has_key);
    }
  }
}

/// Makes probabilities of the row of biased scores that sum() left from element FIRST on.
template <class C>
void AttentionCore<C>::give_probabilities(int64_t first, C most, C sum, bool has_key) const {
  const AttentionProblem& p = problem_;
  std::vector<C> values(static_cast<size_t>(p.keys), C{0});
  if (has_key) {
    const HeadRows scores{scores_->type(), scores_->bytes().data(), {first, 0, 0}};
    const auto given = load_rows(scores, 1, 0, 0, 1, p.keys, values.data());
    std::copy_n(given.data, p.keys, values.data());
    round_to_type(values.data(), p.keys, p.softmax_type);
    for (C& x : values) x = std::exp(x - most) / sum;
    round_to_type(values.data(), p.keys, p.softmax_type);
  }
  store_row(values.data(), p.keys, *scores_, first);
}

template void AttentionCore<float>::merge(Partial<float>&, const Partial<float>&);
template void AttentionCore<double>::merge(Partial<double>&, const Partial<double>&);
template void AttentionCore<float>::finish(const QueryBlock&, const Partial<float>&, Workspace<float>&) const;
template void AttentionCore<double>::finish(const QueryBlock&, const Partial<double>&, Workspace<double>&) const;

}  // namespace attn_opt
