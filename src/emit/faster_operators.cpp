#include "src/emit/faster_operators.h"

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

/// True if WRITTEN's operator is given nothing beside Q, K and V.
bool is_given_no_more(const Emission& written) {
  const std::vector<Value*> given = written.given();
  return std::all_of(given.begin() + std::min<ptrdiff_t>(3, std::ssize(given)), given.end(),
                     [](const Value* value) { return !value; });
}

}  // namespace

bool may_have_faster_operator(const Sdpa& sdpa) {
  const Dim queries = sdpa.q.views[0].axes.size(Role::kRow), keys = sdpa.k.views[0].axes.size(Role::kRow);
  const bool is_long = std::ranges::any_of(kFaster, [&](const FasterOperator& faster) {
    return is_at_least(queries, faster.least_rows) && is_at_least(keys, faster.least_rows);
  });
  return is_long && sdpa.type == onnx::TensorProto::FLOAT && sdpa.softcap == 0 && !sdpa.left_window && !sdpa.right_window;
}

const FasterOperator* faster_at(std::string_view op, const Emission& written) {
  if (!is_given_no_more(written)) return nullptr;
  const auto found = std::ranges::find_if(kFaster, [&](const FasterOperator& faster) {
    return faster.name == op && faster.is_causal == written.is_causal && is_at_least(written.scores[2], faster.least_rows) &&
           is_at_least(written.scores[3], faster.least_rows);
  });
  return found == kFaster.end() ? nullptr : &*found;
}

std::string in_words(const FasterOperator& faster, const Emission& written) {
  return std::string(faster.name) + " is " + number_text(faster.least) + " to " + number_text(faster.most) +
         " times as fast as Attention with " + written.scores[2].str() + " queries, " + written.scores[3].str() + " keys and " +
         (faster.is_causal ? "no mask but the causal one" : "no mask");
}

}  // namespace attn_opt
