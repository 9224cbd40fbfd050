#include <cmath>
#include <limits>

#include "src/exec/attention/attention_core.h"
#include "src/exec/attention/attention_rows.h"
#include "src/exec/attention/interleave.h"
#include "src/exec/elementwise/round_to_type.h"

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

template <class C>
void AttentionCore<C>::divide(const QueryBlock& block, Partial<C>& partial) const {
  const int64_t lanes = partial.lanes;
  C* out = partial.out.data();
  for (int64_t panel = 0; panel < partial.panels; ++panel) {
    const C* sum = partial.sum.data() + panel * lanes;
    for (int64_t d = 0; d < partial.width; ++d, out += lanes) {
      for (int64_t lane = 0; lane < lanes; ++lane) out[lane] /= sum[lane];
    }
  }
  std::vector<C> zeros;  // of rows without a key
  for (int64_t i = 0; i < partial.panels * lanes; ++i) {
    if (partial.has_key.data()[i] != 0) continue;
    if (zeros.empty()) {
      zeros.assign(static_cast<size_t>(partial.width), C{0});
      if (std::isinf(largest_key(block.batch, block.kv_head)))
        zeros = zero_times_values<C>(problem_, block.batch, block.kv_head);
    }
    C* column = partial.out.data() + i / lanes * partial.width * lanes + i % lanes;
    for (int64_t d = 0; d < partial.width; ++d) column[d * lanes] = zeros[static_cast<size_t>(d)];
  }
}

template <class C>
void AttentionCore<C>::finish(const QueryBlock& block, Partial<C>& partial) const {
  divide(block, partial);
  std::vector<C> buffer(static_cast<size_t>(partial.lanes * partial.width));
  std::array<C*, kMostLanes> rows{};
  for (int lane = 0; lane < partial.lanes; ++lane) rows[static_cast<size_t>(lane)] = buffer.data() + lane * partial.width;
  for (int64_t panel = 0; panel < partial.panels; ++panel) {
    const QueryLanes lanes = lanes_of(block, panel, partial.lanes);
    deinterleave(partial.out.data() + panel * partial.width * partial.lanes, partial.lanes, partial.width, rows.data());
    for (size_t lane = 0; lane < static_cast<size_t>(lanes.used); ++lane) {
      store_row(rows[lane], partial.width, y_, problem_.y.offset(block.batch, lanes.head[lane], lanes.query[lane]));
      if (problem_.wanted != ScoreStage::kProbabilities) continue;
      const int64_t i = panel * partial.lanes + static_cast<int64_t>(lane);
      give_probabilities(score_row(lanes, lane), partial.most.data()[i], partial.sum.data()[i], partial.has_key.data()[i] != 0);
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
template void AttentionCore<float>::finish(const QueryBlock&, Partial<float>&) const;
template void AttentionCore<double>::finish(const QueryBlock&, Partial<double>&) const;

}  // namespace attn_opt
