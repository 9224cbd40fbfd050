// Operators of com.microsoft that ONNX Runtime runs in less time than Attention, by what was measured.
#pragma once

#include <string>
#include <string_view>

#include "attn_opt/internal/sdpa.h"

namespace attn_opt {

/// A class of attentions, and how many times as fast as Attention an operator was in it: with no mask, or only causal, in
/// float, without a past. bench/operators.py measures it.
struct FasterOperator {
  std::string_view name;
  bool is_causal = false;
  int64_t least_rows = 0;  ///< queries, and keys, at least
  double least = 1, most = 1;
};

/// Cheap: false where nothing of SDPA can be in a class.
bool may_have_faster_operator(const Sdpa& sdpa);
/// The class in which OP, of com.microsoft, is faster than Attention with these sizes and no mask but the causal one of
/// IS_CAUSAL; null if it is in none.
const FasterOperator* faster_at(std::string_view op, bool is_causal, const Dim& queries, const Dim& keys);
/// True if some operator is.
bool has_faster_operator(bool is_causal, const Dim& queries, const Dim& keys);
/// "MultiHeadAttention is 1.08 to 1.24 times as fast as Attention with 4096 queries, 4096 keys and no mask".
std::string in_words(const FasterOperator& faster, const Dim& queries, const Dim& keys);
/// Why as many nodes as a softmax has PRODUCTS, several, are slower than these.
std::string several_products_in_words(size_t products);

}  // namespace attn_opt
