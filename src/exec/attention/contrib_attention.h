// What the attention operators of com.microsoft share: their operands by heads, and the softmax of their scores.
//
// Operands are held as (B, H, rows, size) in double. Scores are rounded to what the operator computes in, float unless the
// model is computed in double, since a mask of -10000 that is added leaves few digits of them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "src/exec/kernel.h"

namespace attn_opt {

/// (B, S, ...) with the features of HEADS heads from FIRST on, as (B, HEADS, S, SIZE) in double: head h of the tensor begins at
/// FIRST + h * STEP of the elements that follow the two leading axes.
struct HeadColumns {
  int64_t heads = 0, size = 0, first = 0, step = 0;
};
Expected<Tensor> split_heads(const KernelContext& context, const Tensor& tensor, const HeadColumns& columns);

/// PAST, which may be without value, and then NEW along the rows, both (B, H, rows, size) in double.
Expected<Tensor> join_rows(const KernelContext& context, const Tensor& past, const Tensor& fresh);
/// Adds to head h of X (B, H, rows, size), in place, elements FIRST + h * size and on of BIAS.
void add_bias(Tensor& x, std::span<const double> bias, int64_t first, bool in_float);

/// The keys [begin, end) that a query sees; all others have no weight.
struct KeysSeen {
  int64_t begin = 0, end = 0;
};
struct Query {
  int64_t batch = 0, head = 0, index = 0;
};

struct AttentionScores {
  double scale = 1;
  bool in_float = true;
  std::vector<double> sinks = {};  ///< of each head: one score more in the softmax, without a value; empty: none
  /// Turns a query's scaled products with all keys into its scores and says which of them count.
  std::function<KeysSeen(const Query&, std::span<double>)> finish = {};

  double rounded(double score) const { return in_float ? static_cast<double>(static_cast<float>(score)) : score; }
};

/// softmax(scores) V as (B, L, H * Dv) in double; Q (B, H, L, D), K (B, kv heads, S, D), V (B, kv heads, S, Dv). A query whose
/// scores are all -inf gives NaN. SCORES receives the scores (B, H, L, S) if it is not null.
Expected<Tensor> attend(const KernelContext& context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionScores& rule, Tensor* scores = nullptr);

/// Sizes of the scores: B, L queries, S keys.
struct ScoreSizes {
  int64_t batch = 0, queries = 0, keys = 0;
};

/// What is added to the scores: (B or 1, H or 1, L, S).
class ScoreBias {
 public:
  /// Input I, which may be omitted.
  static Expected<ScoreBias> read(const KernelContext& context, size_t i, int64_t heads, const ScoreSizes& sizes);
  double of(const Query& query, int64_t key) const;

 private:
  Dims dims_;
  std::vector<double> values_;
};

/// Attribute `scale`, of which 0 means 1 / sqrt(SIZE).
double score_scale(const KernelContext& context, int64_t size);
/// kUnsupported if the node has one of the inputs from FIRST on: NAMES are their names.
Status refuse_inputs(const KernelContext& context, size_t first, std::initializer_list<const char*> names);

/// Input I has a shape that does not fit the others.
tl::unexpected<Error> misfit_of(const KernelContext& context, size_t i);

}  // namespace attn_opt
