#include "src/exec/padding_mask.h"

namespace attn_opt {

Expected<PaddingMask> PaddingMask::read(const KernelContext& context, size_t i, const ScoreSizes& sizes,
                                        bool ends_starts) {
  PaddingMask mask;
  if (!context.has(i)) return mask;
  const Dims& dims = context.input(i).dims();
  ATTN_OPT_TRY(mask.numbers_, context.integers(context.input(i)));
  mask.sizes_ = sizes;
  const int64_t batch = sizes.batch;
  if (dims == Dims{batch} || dims == Dims{3 * batch + 2}) {
    mask.kind_ = Kind::kKeyLengths;
  } else if (ends_starts && dims == Dims{2 * batch}) {
    mask.kind_ = Kind::kKeyEndsStarts;
  } else if (dims == Dims{batch, sizes.keys}) {
    mask.kind_ = Kind::kKeys;
  } else if (dims == Dims{batch, sizes.queries, sizes.keys}) {
    mask.kind_ = Kind::kScores;
  } else if (!ends_starts || (dims != Dims{batch, 1} && dims != Dims{1, 1})) {
    return context.invalid("a mask of shape " + print_dims(dims) + " for " + std::to_string(batch) + " x " +
                           std::to_string(sizes.queries) + " x " + std::to_string(sizes.keys) + " scores");
  }
  return mask;
}

bool PaddingMask::is_padding(int64_t batch, int64_t query, int64_t key) const {
  const auto number = [&](int64_t at) { return numbers_[static_cast<size_t>(at)]; };
  switch (kind_) {
    case Kind::kNone: return false;
    case Kind::kKeyLengths: return key >= number(batch);
    case Kind::kKeyEndsStarts: return key >= number(batch) || key < number(sizes_.batch + batch);
    case Kind::kKeys: return number(batch * sizes_.keys + key) <= 0;
    case Kind::kScores: return number((batch * sizes_.queries + query) * sizes_.keys + key) <= 0;
  }
  return false;
}

}  // namespace attn_opt
