#include "src/rewrite/faster_operators.h"

#include <algorithm>
#include <array>

#include "src/io/number_text.h"

namespace attn_opt {
namespace {

// CPU time of Attention divided by that of the operator, one thread, ONNX Runtime 1.32.0 on AMD EPYC, as bench/operators.py
// prints it (docs/runtimes.md has all of it). Fewer rows gave 0.8 to 1.1, unidirectional MultiHeadAttention 0.9 to 1.0.
constexpr std::array<FasterOperator, 2> kFaster = {{
    {.name = "MultiHeadAttention", .is_causal = false, .least_rows = 1024, .least = 1.08, .most = 1.24},
    {.name = "GroupQueryAttention", .is_causal = true, .least_rows = 2048, .least = 1.31, .most = 1.48},
}};

bool is_at_least(const Dim& size, int64_t number) { return size.is_constant() && size.value() >= number; }

bool is_long_enough(const FasterOperator& faster, const Dim& queries, const Dim& keys) {
  return is_at_least(queries, faster.least_rows) && is_at_least(keys, faster.least_rows);
}

// CPU time of two or three Attention nodes divided by that of one softmax and its products with V, from 64 to 1024 rows, as
// bench/products.py prints its inverse.
constexpr double kLeastOfProducts = 1.33, kMostOfProducts = 2;

}  // namespace

bool may_have_faster_operator(const Sdpa& sdpa) {
  const Dim queries = sdpa.q.views[0].axes.size(Role::kRow), keys = sdpa.k.views[0].axes.size(Role::kRow);
  return (has_faster_operator(false, queries, keys) || has_faster_operator(true, queries, keys)) &&
         sdpa.type == onnx::TensorProto::FLOAT && sdpa.softcap == 0 && !sdpa.left_window && !sdpa.right_window;
}

const FasterOperator* faster_at(std::string_view op, bool is_causal, const Dim& queries, const Dim& keys) {
  const auto* found = std::ranges::find_if(kFaster, [&](const FasterOperator& faster) {
    return faster.name == op && faster.is_causal == is_causal && is_long_enough(faster, queries, keys);
  });
  return found == kFaster.end() ? nullptr : found;
}

bool has_faster_operator(bool is_causal, const Dim& queries, const Dim& keys) {
  return std::ranges::any_of(kFaster, [&](const FasterOperator& faster) {
    return faster.is_causal == is_causal && is_long_enough(faster, queries, keys);
  });
}

std::string in_words(const FasterOperator& faster, const Dim& queries, const Dim& keys) {
  return std::string(faster.name) + " is " + number_text(faster.least) + " to " + number_text(faster.most) +
         " times as fast as Attention with " + queries.str() + " queries, " + keys.str() + " keys and " +
         (faster.is_causal ? "no mask but the causal one" : "no mask");
}

std::string several_products_in_words(size_t products) {
  return "its softmax has " + std::to_string(products) +
         " products with V, for each of which a node makes the scores again: " + number_text(kLeastOfProducts) + " to " +
         number_text(kMostOfProducts) + " times the time";
}

}  // namespace attn_opt
