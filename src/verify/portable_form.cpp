#include "src/verify/portable_form.h"

#include <algorithm>

#include "attn_opt/internal/mask_contents.h"
#include "src/graph/attention_inputs.h"
#include "src/io/number_text.h"
#include "src/trial/tensor_difference.h"
#include "src/verify/logical.h"

namespace attn_opt {
namespace {

const Tensor* input(const std::vector<const Tensor*>& inputs, AttentionInput which) {
  return which < inputs.size() ? inputs[which] : nullptr;
}

/// Size of axis AXIS counted from the back.
int64_t from_back(const Tensor& tensor, size_t axis) { return tensor.dims()[tensor.dims().size() - 1 - axis]; }

std::string against(const Tensor& one, const std::string& other) { return to_string(one.dims()) + " against " + other; }

std::string wrong_operands(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (q.rank() != k.rank() || q.rank() != v.rank() || (q.rank() != 3 && q.rank() != 4))
    return "Q, K and V of ranks " + std::to_string(q.rank()) + ", " + std::to_string(k.rank()) + " and " +
           std::to_string(v.rank());
  for (const Tensor* operand : {&k, &v})
    if (operand->dims()[0] != q.dims()[0]) return "a batch of K or V " + against(*operand, to_string(q.dims()));
  if (q.rank() == 3) return {};
  if (from_back(q, 0) != from_back(k, 0)) return "features of keys " + against(k, to_string(q.dims()) + " of queries");
  const int64_t query_heads = q.dims()[1], heads = k.dims()[1];
  if (heads != v.dims()[1] || heads < 1 || query_heads % heads != 0)
    return "heads of K and V " + against(k, to_string(v.dims())) + " and " + std::to_string(query_heads) + " query heads";
  return {};
}

/// Of (B, Hkv, P, D) and (B, Hkv, P, Dv), both or none; the heads and features of operands of three axes are not known here.
std::string wrong_past(const Tensor* key, const Tensor* value, const Tensor& k, const Tensor& v) {
  if (!key && !value) return {};
  if (!key || !value) return "a past of one of keys and values";
  for (const Tensor* past : {key, value})
    if (past->rank() != 4) return "a past of rank " + std::to_string(past->rank());
  for (const auto& [past, present] : {std::pair(key, &k), std::pair(value, &v)})
    for (const size_t axis : {0, 2, 3})  // from the back
      if (present->rank() == 4 && from_back(*past, axis) != from_back(*present, axis))
        return "a past of shape " + against(*past, to_string(present->dims()) + " of what is new");
  if (from_back(*key, 1) == from_back(*value, 1)) return {};
  return "a past of " + std::to_string(from_back(*key, 1)) + " keys and " + std::to_string(from_back(*value, 1)) + " values";
}

/// What a MASK of more batch elements or heads than Q, or of others, is. The heads of a Q of three axes are not known here.
std::string wrong_leading_axes(const Tensor& mask, const Tensor& q) {
  constexpr size_t kBatchFromBack = 3, kHeadsFromBack = 2;
  const auto widens = [&](size_t axis, int64_t own) {
    return mask.dims().size() > axis && from_back(mask, axis) != 1 && from_back(mask, axis) != own;
  };
  const bool fits = !widens(kBatchFromBack, q.dims()[0]) && (q.rank() != 4 || !widens(kHeadsFromBack, q.dims()[1]));
  return fits ? "" : "a mask of shape " + against(mask, to_string(q.dims()) + " of Q");
}

std::string wrong_mask(const Tensor& mask, const Tensor& q, int64_t keys, const TargetRules& target) {
  constexpr size_t kRowAxis = 1;  // from the back, in (B, H, L, D) and in (B, L, H * D)
  const int64_t queries = from_back(q, kRowAxis);
  const int64_t least_rank = target.takes_rank_1_masks ? 1 : target.takes_masks_of_few_axes ? 2 : 4;
  const bool has_rank = mask.rank() >= least_rank && mask.rank() <= 4;
  const int64_t rows = mask.rank() < 2 ? 1 : from_back(mask, 1);
  const bool has_rows = rows == queries || (rows == 1 && target.broadcasts_mask_rows);
  const int64_t columns = has_rank ? from_back(mask, 0) : 0;
  const bool fits = has_rank && has_rows && (columns == keys || (columns < keys && target.takes_short_masks));
  if (!fits)
    return "a mask of shape " + against(mask, std::to_string(queries) + " queries and " + std::to_string(keys) + " keys");
  if (std::string what = wrong_leading_axes(mask, q); !what.empty()) return what;
  if (!target.broadcasts_masks && mask.dims()[0] != q.dims()[0])
    return "a mask of " + std::to_string(mask.dims()[0]) + " batch elements of " + std::to_string(q.dims()[0]);
  if (!is_floating(mask.type()) && !target.takes_bool_masks) return "a mask that is bool";
  if (!is_floating(mask.type()) || target.tells_lowest_from_infinity) return {};
  const std::vector<double> numbers = numbers_of(mask);
  const bool holds_lowest = std::ranges::find(numbers, lowest_finite(mask.type())) != numbers.end();
  return holds_lowest ? "a mask that holds the lowest number of its type" : "";
}

std::string wrong_heads(const Tensor& q, const Tensor& k, const TargetRules& target) {
  constexpr size_t kHeadAxis = 1, kRankWithHeads = 4;
  if (target.infers_shared_heads || q.dims().size() != kRankWithHeads || k.dims().size() != kRankWithHeads) return {};
  const int64_t queries = q.dims()[kHeadAxis], keys = k.dims()[kHeadAxis];
  return queries == keys ? ""
                         : std::to_string(queries) + " query heads that share " + std::to_string(keys) + " in the 4-D form";
}

std::string wrong_lengths(const Tensor& lengths, int64_t keys, const TargetRules& target) {
  if (target.takes_any_length) return {};
  for (const double length : numbers_of(lengths))
    if (length < 0 || length > static_cast<double>(keys))
      return "a length of " + number_text(length) + " among " + std::to_string(keys) + " keys";
  return {};
}

}  // namespace

std::string unportable(const std::vector<const Tensor*>& inputs, const TargetRules& target) {
  const Tensor *q = input(inputs, kQ), *k = input(inputs, kK), *v = input(inputs, kV);
  if (!q || !k || !v) return {};
  if (std::string what = wrong_operands(*q, *k, *v); !what.empty()) return what;
  if (std::string what = wrong_heads(*q, *k, target); !what.empty()) return what;
  const Tensor *mask = input(inputs, kMask), *past = input(inputs, kPastKey);
  if (std::string what = wrong_past(past, input(inputs, kPastValue), *k, *v); !what.empty()) return what;
  if (from_back(*k, 1) != from_back(*v, 1)) return "keys of shape " + against(*k, to_string(v->dims()) + " of values");
  if (const Tensor* lengths = input(inputs, kNonpad))
    if (std::string what = wrong_lengths(*lengths, from_back(*k, 1), target); !what.empty()) return what;
  if (!mask) return {};
  return wrong_mask(*mask, *q, from_back(*k, 1) + (past ? past->dims()[2] : 0), target);
}

}  // namespace attn_opt
