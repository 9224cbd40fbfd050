// What com.microsoft::Attention and QAttention have in common: they project their input themselves, and differ in how.
#pragma once

#include <cstddef>

#include "patterns/contrib/description.h"

namespace attn_opt {

/// Where inputs stand that not all of these operators have at one place, or at all.
struct ProjectedInputs {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t mask, past, attention_bias, past_length;
  size_t typed;  ///< the input in whose type the operator computes
};

/// Inputs 0 and 1 are X (B, L, In) and weights (In, columns of Q, K and V); past and present (2, B, H, rows, D).
class ProjectedReader {
 public:
  ProjectedReader(Node& node, MatchContext& context, const ProjectedInputs& at);
  virtual ~ProjectedReader() = default;

  Matched<Match> read();

 protected:
  static constexpr size_t kX = 0, kWeights = 1, kBias = 2;

  /// Ranks and types of what project() reads.
  virtual Matched<void> check_operands() const = 0;
  /// (B, L, columns): X times weights, plus bias.
  virtual Value* project() = 0;

  Node& node_;
  MatchContext& context_;
  Facts& facts_;
  InnerValues inner_;

 private:
  Matched<void> refuse() const;
  Matched<void> read_sizes();
  Matched<ContribOperands> projected();
  void join_caches(ContribOperands& operands, Match& match);

  const ProjectedInputs& at_;
  int64_t heads_;
  std::vector<int64_t> sizes_;  ///< hidden sizes of Q, K and V
  ContribScores scores_;
};

}  // namespace attn_opt
