#include "src/verify/aligned_rows.h"

#include <algorithm>

namespace attn_opt {

AlignedRows aligned(const Compared& compared) {
  AlignedRows rows;
  const auto* axes = compared.output.axes;
  const auto before = axes ? to_logical(compared.before, *axes, compared.sizes) : std::nullopt;
  const auto after = axes ? to_logical(compared.after, *axes, compared.sizes) : std::nullopt;
  if (before && after) {
    rows.before = before->values;
    rows.after = after->values;
    if (compared.exact) rows.exact = to_logical(*compared.exact, *axes, compared.sizes)->values;
    rows.width = static_cast<size_t>(std::max<int64_t>(1, before->features));
  } else {
    rows.before = numbers_of(compared.before);
    rows.after = numbers_of(compared.after);
    if (compared.exact) rows.exact = numbers_of(*compared.exact);
    if (compared.moves) rows.moves = numbers_of(*compared.moves);
    const Dims& dims = compared.before.dims();
    rows.width = static_cast<size_t>(dims.empty() ? 1 : std::max<int64_t>(1, dims.back()));
  }
  const bool fits = (before && after) || compared.output.kind != OutputKind::kRows;
  rows.are_score_rows = fits && compared.rows.size() > 0 && rows.count() == compared.rows.size();
  return rows;
}

}  // namespace attn_opt
