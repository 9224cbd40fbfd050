#include "src/verify/score_sizes.h"

#include <limits>

namespace attn_opt {

Dim rows_of(const Operand& operand) { return operand.views.empty() ? Dim(0) : operand.views.front().axes.size(Role::kRow); }

std::vector<Dim> sizes_of_scores(const Sdpa& sdpa) {
  if (sdpa.q.views.empty()) return {};
  const AxisMap& queries = sdpa.q.views.front().axes;
  return {queries.size(Role::kBatch), queries.size(Role::kHead), queries.size(Role::kRow), rows_of(sdpa.k)};
}

int64_t number_of_scores(const Sdpa& sdpa, const SizeAssignment& sizes) {
  if (sdpa.q.views.empty()) return 0;
  int64_t number = 1;
  for (const Dim& size : sizes_of_scores(sdpa))
    if (__builtin_mul_overflow(number, sizes.of(size).value_or(0), &number)) return std::numeric_limits<int64_t>::max();
  return number;
}

}  // namespace attn_opt
