#include "src/exec/attention/attention_core.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/exec/attention/attention_panel.h"
#include "src/exec/attention/attention_rows.h"
#include "src/exec/interleave.h"

namespace attn_opt {
namespace {

constexpr int64_t kKeysAtOnce = 192;
constexpr int64_t kMostRows = 512;  // the more there are, the more rarely K and V are fetched

int64_t keys_at_once(const AttentionProblem& p) {
  const int64_t width = std::max<int64_t>({p.head_size, p.v_head_size, 1});
  return std::clamp<int64_t>((int64_t{1} << 18) / width, 8, kKeysAtOnce);
}

int64_t rounded_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

}  // namespace

/// One call of sum().
template <class C>
class AttentionCore<C>::Sum {
 public:
  Sum(const AttentionCore& core, const QueryBlock& block, Workspace<C>& work, Partial<C>& result)
      : core_(core),
        p_(core.problem_),
        block_(block),
        result_(result),
        rows_(block.queries * p_.group()),
        lanes_(panel_lanes<C>(rows_)),
        panels_((rows_ + lanes_ - 1) / lanes_),
        tile_(value_tile(panel_bytes<C>(rows_), has_wide_vectors())),
        keys_at_once_(std::min(keys_at_once(p_), std::max<int64_t>(block.keys.size(), 1))) {
    const int64_t width = std::max(p_.head_size, p_.v_head_size);
    q_ = work.q.reserve(panels_ * lanes_ * p_.head_size);
    rows_buffer_ = work.rows.reserve(std::max(keys_at_once_, int64_t{lanes_}) * width);
    values_buffer_ = work.values.reserve(keys_at_once_ * rounded_up(p_.v_head_size, tile_));
    score_buffer_ = work.scores.reserve(keys_at_once_ * lanes_);
    given_buffer_ = work.given.reserve(core_.scores_ != nullptr ? keys_at_once_ * lanes_ : 0);
    bias_buffer_ = work.bias.reserve(2 * keys_at_once_ * lanes_);
    result.clear(panels_, lanes_, p_.v_head_size);
    result.queries.clear();
    for (int64_t panel = 0; panel < panels_; ++panel) result.queries.push_back(core.lanes_of(block, panel, lanes_));
  }

  void run() {
    load_queries();
    const KeyRange keys = usable();
    for (const int part : {0, 1}) {
      const KeyRange whole = part == 0 ? KeyRange{0, p_.seam} : KeyRange{p_.seam, p_.keys};
      const KeyRange range = keys & whole;
      for (int64_t j = range.begin; j < range.end; j += keys_at_once_) {
        add_keys(part, {j, std::min(j + keys_at_once_, range.end)});
      }
    }
    for (int64_t panel = 0; panel < panels_; ++panel)
      if (!result_.has_out[static_cast<size_t>(panel)]) std::fill_n(out_of(panel), lanes_ * p_.v_head_size, C{0});
  }

 private:
  /// Asks for the rows of a panel in the order of memory; to move them into lanes is to read many at once.
  void fetch_queries(int64_t panel) {
    if (panel >= panels_) return;
    const QueryLanes& lanes = result_.queries[static_cast<size_t>(panel)];
    const int64_t size = static_cast<int64_t>(element_size(p_.q.type));
    for (size_t lane = 0; lane < static_cast<size_t>(lanes.used); ++lane) {
      const std::byte* row = p_.q.data + p_.q.layout.offset(lanes.batch, lanes.head[lane], lanes.query[lane]) * size;
      for (int64_t i = 0; i < p_.head_size * size; i += 64) __builtin_prefetch(row + i);
    }
  }

  void load_queries() {
    std::array<const C*, kMostLanes> rows{};
    fetch_queries(0);
    for (int64_t panel = 0; panel < panels_; ++panel) {
      fetch_queries(panel + 1);
      const QueryLanes& lanes = result_.queries[static_cast<size_t>(panel)];
      for (size_t lane = 0; lane < static_cast<size_t>(lanes_); ++lane) {
        rows[lane] = load_rows(p_.q, lanes.batch, lanes.head[lane], lanes.query[lane], 1, p_.head_size,
                               rows_buffer_ + static_cast<int64_t>(lane) * p_.head_size)
                         .data;
      }
      interleave(rows.data(), lanes_, p_.head_size, static_cast<C>(p_.scale), q_ + panel * lanes_ * p_.head_size);
    }
  }

  /// The block's keys but for those at either end that no row may use.
  KeyRange usable() {
    if (!core_.bias_.excludes_others()) return block_.keys;
    KeyRange hull{block_.keys.end, block_.keys.begin};
    for (int64_t i = 0; i < block_.queries; ++i) {
      const KeyRange range = core_.bias_.allowed(block_.batch, block_.first_query + i) & block_.keys;
      if (!range.empty()) hull = {std::min(hull.begin, range.begin), std::max(hull.end, range.end)};
    }
    return hull.covers(block_.keys) || !may_skip() ? block_.keys : hull;
  }

  /// Keys that no row may use can be passed by only where their scores and values are finite: elsewhere -inf
  /// and 0 do not hide them.
  bool may_skip() {
    if (may_skip_ < 0) {
      const C largest = largest_magnitude(q_, panels_ * lanes_ * p_.head_size);
      may_skip_ = core_.scores_ == nullptr && core_.may_skip(block_, largest) ? 1 : 0;
    }
    return may_skip_ == 1;
  }

  void add_keys(int part, KeyRange keys) {
    RowBlock<C> k;
    ValueBlock<C> v;
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const QueryLanes& lanes = result_.queries[static_cast<size_t>(panel)];
      auto bias = core_.bias_.block(lanes, keys, true, bias_buffer_);
      const bool trims = bias.keys.begin != keys.begin || bias.keys.end != keys.end;
      if (trims && !may_skip()) bias = core_.bias_.block(lanes, keys, false, bias_buffer_);
      if (bias.keys.empty()) continue;
      const bool is_first = k.data == nullptr;
      if (is_first) load(part, keys, k, v);
      add_panel(lanes, panel, keys, bias, k, v, is_first);
    }
  }

  void load(int part, KeyRange keys, RowBlock<C>& k, ValueBlock<C>& v) {
    const int64_t first = keys.begin - (part == 0 ? 0 : p_.seam);
    const auto rows =
        load_rows(p_.value_parts[part], block_.batch, block_.kv_head, first, keys.size(), p_.v_head_size, rows_buffer_);
    v = {rows.data, tile_, rows.stride};
    if (is_worth_packing(rows.stride) || rows.data == rows_buffer_) v = packed(rows, keys.size());
    k = load_rows(p_.key_parts[part], block_.batch, block_.kv_head, first, keys.size(), p_.head_size, rows_buffer_);
  }

  /// Rows that do not follow each other closely share few places in the nearest cache, and put each other out.
  bool is_worth_packing(int64_t stride) const { return panels_ >= (stride > p_.v_head_size ? 4 : 6); }

  /// Tiles of V after each other, so that reading one runs through memory.
  ValueBlock<C> packed(const RowBlock<C>& rows, int64_t count) {
    pack_tiles(rows.data, rows.stride, count, p_.v_head_size, tile_, values_buffer_);
    return {values_buffer_, tile_ * count, tile_};
  }

  void add_panel(const QueryLanes& lanes, int64_t panel, KeyRange loaded, const typename AttentionBias<C>::Block& bias,
                 const RowBlock<C>& k, const ValueBlock<C>& v, bool is_first) {
    const int64_t skipped = bias.keys.begin - loaded.begin;
    Panel<C> work;
    work.lanes = lanes_;
    work.head_size = p_.head_size;
    work.v_head_size = p_.v_head_size;
    work.type = p_.type;
    work.softmax_type = p_.softmax_type;
    work.softcap = static_cast<C>(p_.softcap);
    work.wanted = p_.wanted;
    work.q = q_ + panel * lanes_ * p_.head_size;
    work.keys = bias.keys.size();
    work.k = k.data + skipped * k.stride;
    work.k_stride = k.stride;
    work.v = {v.data + skipped * v.key_stride, v.tile_stride, v.key_stride};
    work.is_first = is_first;
    work.bias = bias.bias;
    work.bias_rows = bias.rows[0] != nullptr ? bias.rows.data() : nullptr;
    work.unbiased = bias.unbiased;
    work.scores = score_buffer_;
    work.given = given_buffer_;
    work.most = result_.most.data() + panel * lanes_;
    work.sum = result_.sum.data() + panel * lanes_;
    work.has_key = result_.has_key.data() + panel * lanes_;
    work.out = out_of(panel);
    work.goes_on = result_.has_out[static_cast<size_t>(panel)];
    attend(work);
    result_.has_out[static_cast<size_t>(panel)] = true;
    if (core_.scores_ != nullptr) give(lanes, bias.keys);
  }

  C* out_of(int64_t panel) { return result_.out.data() + panel * lanes_ * p_.v_head_size; }

  void give(const QueryLanes& lanes, KeyRange keys) {
    std::array<C*, kMostLanes> rows{};
    for (int lane = 0; lane < lanes_; ++lane) rows[static_cast<size_t>(lane)] = score_buffer_ + lane * keys.size();
    std::array<C, kMostLanes> ones{};
    ones.fill(1);
    deinterleave(given_buffer_, lanes_, keys.size(), ones.data(), rows.data());
    for (size_t lane = 0; lane < static_cast<size_t>(lanes.used); ++lane) {
      store_row(rows[lane], keys.size(), *core_.scores_, core_.score_row(lanes, lane) + keys.begin);
    }
  }

  const AttentionCore& core_;
  const AttentionProblem& p_;
  const QueryBlock& block_;
  Partial<C>& result_;
  int64_t rows_;
  int lanes_;
  int64_t panels_;
  int tile_;
  int64_t keys_at_once_;
  int may_skip_ = -1;
  C *q_, *rows_buffer_, *values_buffer_, *score_buffer_, *bias_buffer_, *given_buffer_;
};

template <class C>
void Partial<C>::clear(int64_t its_panels, int its_lanes, int64_t its_width) {
  panels = its_panels;
  lanes = its_lanes;
  width = its_width;
  const int64_t rows = panels * lanes;
  std::fill_n(most.reserve(rows), rows, -std::numeric_limits<C>::infinity());
  std::fill_n(sum.reserve(rows), rows, C{0});
  std::fill_n(has_key.reserve(rows), rows, C{0});
  out.reserve(rows * width);
  has_out.assign(static_cast<size_t>(panels), false);
}

template <class C>
AttentionCore<C>::AttentionCore(const AttentionProblem& problem, const AttentionBias<C>& bias, Tensor& y, Tensor* scores)
    : problem_(problem),
      bias_(bias),
      y_(y),
      y_data_(y.type() == data_type_of<C>() ? y.mutable_data<C>().data() : nullptr),
      scores_(scores),
      largest_keys_(static_cast<size_t>(problem.batch * problem.kv_heads)) {
  for (auto& largest : largest_keys_) largest = -1;
}

template <class C>
int64_t AttentionCore<C>::rows_at_once(const AttentionProblem& p) {
  const int64_t width = std::max<int64_t>(p.head_size + p.v_head_size, 1);
  return std::clamp<int64_t>(kMostRows * 128 / width, panel_lanes<C>(kMostRows), kMostRows);
}

template <class C>
int64_t AttentionCore<C>::scratch_bytes(const AttentionProblem& p) {
  const int64_t width = p.head_size + p.v_head_size + kMostLanes;
  const int64_t rows = std::max(rows_at_once(p), p.group()) + kMostLanes;
  return (width * (rows + 2 * std::max<int64_t>(keys_at_once(p), kMostLanes)) + 4 * kKeysAtOnce * kMostLanes) *
         static_cast<int64_t>(sizeof(C));
}

template <class C>
QueryLanes AttentionCore<C>::lanes_of(const QueryBlock& block, int64_t panel, int lanes) const {
  QueryLanes result{block.batch, lanes, 0, {}, {}};
  const int64_t row = panel * lanes;
  result.used = static_cast<int>(std::min<int64_t>(lanes, block.queries * problem_.group() - row));
  int64_t head = block.kv_head * problem_.group() + row / block.queries;
  int64_t query = row % block.queries;
  for (int lane = 0; lane < lanes; ++lane) {
    result.head[static_cast<size_t>(lane)] = head;
    result.query[static_cast<size_t>(lane)] = block.first_query + query;
    if (lane + 1 >= result.used) continue;
    if (++query < block.queries) continue;
    query = 0;
    ++head;
  }
  return result;
}

template <class C>
int64_t AttentionCore<C>::score_row(const QueryLanes& lanes, size_t lane) const {
  const int64_t head = lanes.batch * problem_.q_heads + lanes.head[lane];
  return (head * problem_.queries + lanes.query[lane]) * problem_.keys;
}

template <class C>
bool AttentionCore<C>::may_skip(const QueryBlock& block, C largest_query) const {
  const double largest =
      double{largest_query} * double{largest_key(block.batch, block.kv_head)} * static_cast<double>(problem_.head_size);
  return largest < largest_finite(problem_.type) / 2;
}

template <class C>
C AttentionCore<C>::largest_key(int64_t batch, int64_t kv_head) const {
  auto& known = largest_keys_[static_cast<size_t>(batch * problem_.kv_heads + kv_head)];
  if (known >= 0) return known;
  const int64_t step = keys_at_once(problem_);
  AlignedBuffer<C> buffer(step * std::max(problem_.head_size, problem_.v_head_size));
  C most = 0;
  const auto look_at = [&](const HeadRows& rows, int64_t width, int64_t first, int64_t count) {
    const auto block = load_rows(rows, batch, kv_head, first, count, width, buffer.data());
    if (block.stride == width) return largest_magnitude(block.data, count * width);
    C largest = 0;
    for (int64_t j = 0; j < count; ++j) largest = std::max(largest, largest_magnitude(block.data + j * block.stride, width));
    return largest;
  };
  for (const int part : {0, 1}) {
    const int64_t count = part == 0 ? problem_.seam : problem_.keys - problem_.seam;
    for (int64_t j = 0; j < count; j += step) {
      const int64_t n = std::min(step, count - j);
      most = std::max(most, look_at(problem_.key_parts[part], problem_.head_size, j, n));
      if (std::isinf(look_at(problem_.value_parts[part], problem_.v_head_size, j, n)))
        most = std::numeric_limits<C>::infinity();
    }
  }
  known = most;
  return most;
}

template <class C>
void AttentionCore<C>::sum(const QueryBlock& block, Workspace<C>& work, Partial<C>& result) const {
  Sum(*this, block, work, result).run();
}

template struct Partial<float>;
template struct Partial<double>;
template class AttentionCore<float>;
template class AttentionCore<double>;

}  // namespace attn_opt
