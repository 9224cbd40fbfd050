// Attention of a block of queries over a run of keys, key block by key block, without ever holding a row of scores.
//
//   sum() of each query block, over all keys or a part of them; merge() parts in the order of their keys; finish().
#pragma once

#include <atomic>

#include "src/exec/aligned_buffer.h"
#include "src/exec/attention/attention_bias.h"

namespace attn_opt {

/// Query rows of the heads that share one key head, and the keys that they are taken against.
struct QueryBlock {
  int64_t batch = 0, kv_head = 0;
  int64_t first_query = 0, queries = 0;
  KeyRange keys;
};

/// What a query block's rows have summed up, by panels of lanes; not divided by the sum of the weights yet.
template <class C>
struct Partial {
  int64_t panels = 0;
  int lanes = 0;
  int64_t width = 0;                    ///< features of V
  std::vector<QueryLanes> queries;      ///< by panel
  std::vector<bool> has_out;            ///< by panel: OUT holds sums
  AlignedBuffer<C> most, sum, has_key;  ///< [panels][lanes]
  AlignedBuffer<C> out;                 ///< [panels][width][lanes]

  /// Makes it that of rows without keys, but for OUT, which holds anything where HAS_OUT is not set.
  void clear(int64_t its_panels, int its_lanes, int64_t its_width);
};

/// Memory for one block after the other; none needs what another left there.
template <class C>
struct Workspace {
  AlignedBuffer<C> q, rows, values, scores, given, bias;
  Partial<C> partial;
};

template <class C>
class AttentionCore {
 public:
  /// SCORES is where the scores go that the node asks for, or null.
  AttentionCore(const AttentionProblem& problem, const AttentionBias<C>& bias, Tensor& y, Tensor* scores);

  /// Query rows that a block should have, and bytes that one call of sum() allocates.
  static int64_t rows_at_once(const AttentionProblem& problem);
  static int64_t scratch_bytes(const AttentionProblem& problem);

  void sum(const QueryBlock& block, Workspace<C>& work, Partial<C>& result) const;
  static void merge(Partial<C>& into, const Partial<C>& later);
  /// Writes BLOCK's rows of Y, and its probabilities where they are asked for.
  void finish(const QueryBlock& block, const Partial<C>& partial, Workspace<C>& work) const;

 private:
  class Sum;

  QueryLanes lanes_of(const QueryBlock& block, int64_t panel, int lanes) const;
  /// Where the scores of a lane begin.
  int64_t score_row(const QueryLanes& lanes, size_t lane) const;
  bool may_skip(const QueryBlock& block, C largest_query) const;
  C largest_key(int64_t batch, int64_t kv_head) const;
  std::vector<C> of_no_key(const QueryBlock& block) const;
  void give_probabilities(int64_t first, C most, C sum, bool has_key) const;

  const AttentionProblem& problem_;
  const AttentionBias<C>& bias_;
  Tensor& y_;
  C* y_data_;  ///< of Y where it has type C
  Tensor* scores_;
  /// By batch entry and key head: the largest |K|, infinity if K or V is not finite; -1: not known yet.
  mutable std::vector<std::atomic<C>> largest_keys_;
};

}  // namespace attn_opt
