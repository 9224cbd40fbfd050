// What Attention adds to its scores: the mask, and -inf for keys that causality, a window or nonpad_kv_seqlen
// keeps a query from.
//
// A mask of integers is what the schema's body makes of it: -inf is cast to the mask's type and added there, so
// that no key need be excluded at all.
#pragma once

#include <array>

#include "src/exec/attention/attention.h"

namespace attn_opt {

/// Most query rows that one block of scores has.
inline constexpr int kMostLanes = 32;

/// Query rows (head, position) of one batch entry that are computed side by side.
struct QueryLanes {
  int64_t batch = 0;
  int count = 0;
  int used = 0;  ///< those behind hold the last row again
  std::array<int64_t, kMostLanes> head{}, query{};
};

template <class C>
class AttentionBias {
 public:
  static Expected<AttentionBias> create(const KernelContext& context, const AttentionProblem& problem);

  /// The keys that QUERY may use as far as causality, windows, nonpad_kv_seqlen and the mask's length say.
  KeyRange allowed(int64_t batch, int64_t query) const;
  /// True if the bias of all other keys is -inf whatever the mask holds.
  bool excludes_others() const { return excludes_others_; }

  struct Block {
    KeyRange keys;            ///< that some lane may use, or all that were asked for
    const C* bias = nullptr;  ///< [keys][lanes]; null: nothing is added
    int64_t unbiased = 0;     ///< keys before those of `bias`, which all lanes may use
    /// Instead of `bias`, where the mask needs no change: by lane, its values for `keys`. Else null.
    std::array<const C*, kMostLanes> rows{};
  };
  /// The bias of LANES for KEYS; with TRIM, keys at either end that no lane may use are left out. BUFFER is for twice
  /// [keys][lanes].
  Block block(const QueryLanes& lanes, KeyRange keys, bool trim, C* buffer) const;

 private:
  struct Run {
    KeyRange keys;  ///< from the first that is true to the last
    bool has_holes = false;
  };
  using LaneRanges = std::array<KeyRange, kMostLanes>;
  using Fill = void (AttentionBias::*)(int64_t row_number, int64_t query, int64_t batch, KeyRange keys, C* to) const;

  template <class U>
  void fill(int64_t row_number, int64_t query, int64_t batch, KeyRange keys, C* to) const;
  int64_t mask_row(const QueryLanes& lanes, int lane) const;
  void find_runs(ThreadPool& threads);
  KeyRange true_keys(int64_t row, KeyRange keys, bool& has_holes) const;
  KeyRange run_of_true(int64_t row_number, KeyRange keys, bool& has_holes) const;
  static int64_t end_of_common(const LaneRanges& ranges, int lanes, KeyRange keys);
  bool read_in_place(const QueryLanes& lanes, const LaneRanges& ranges, Block& block) const;
  void write(const QueryLanes& lanes, const LaneRanges& ranges, KeyRange keys, C* panel) const;
  void write_row(const QueryLanes& lanes, int lane, KeyRange range, KeyRange keys, C* row) const;
  Block without_excluded_ends(KeyRange keys, int lanes, const C* bias) const;

  int64_t keys_ = 0;
  bool causal_ = false;
  int64_t left_ = -1, right_ = -1;
  std::vector<int64_t> offsets_, valid_;  ///< by batch entry
  DataType type_;                         ///< that sums are rounded to

  Tensor mask_;
  Fill fill_ = nullptr;
  const C* as_it_is_ = nullptr;           ///< the mask's values where they need no conversion
  Tensor minus_infinity_;                 ///< in the mask's type
  int64_t mask_keys_ = 0;                 ///< keys that the mask speaks of; those behind are excluded
  std::array<int64_t, 3> row_strides_{};  ///< in rows of the mask, by [B, H, L]
  int64_t row_size_ = 0, key_stride_ = 0;
  std::vector<Run> runs_;  ///< by row of a bool mask, which many heads ask for; empty: not looked for
  bool by_integers_ = false;
  bool excludes_others_ = true;  ///< the mask holds no NaN and no infinity that -inf does not hide
};

extern template class AttentionBias<float>;
extern template class AttentionBias<double>;

}  // namespace attn_opt
