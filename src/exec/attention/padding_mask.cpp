#include "src/exec/attention/padding_mask.h"

#include <limits>

#include "src/exec/wide.h"

namespace attn_opt {

Expected<PaddingMask> PaddingMask::read(const KernelContext& context, size_t i, const ScoreSizes& sizes, bool ends_starts) {
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

Expected<ScoreMasks> ScoreMasks::read(const KernelContext& context, size_t mask, size_t bias, int64_t heads,
                                      const ScoreSizes& sizes, bool ends_starts) {
  ScoreMasks masks;
  ATTN_OPT_TRY(masks.padding, PaddingMask::read(context, mask, sizes, ends_starts));
  ATTN_OPT_TRY(masks.bias, ScoreBias::read(context, bias, heads, sizes));
  masks.in_float = context.input(0).type() != onnx::TensorProto::DOUBLE;
  masks.is_causal = context.attribute_int("unidirectional", 0) == 1;
  masks.fill = static_cast<double>(context.attribute_float("mask_filter_value", -10000));
  return masks;
}

Expected<Tensor> attend_with_masks(const KernelContext& context, const Tensor& q, const Tensor& k, const Tensor& v,
                                   const ScoreMasks& masks, Tensor* scores) {
  const int64_t queries = q.dims()[2], keys = k.dims()[2];
  AttentionScores rule{score_scale(context, q.dims()[3]), masks.in_float, {}};
  rule.finish = [&](const Query& query, std::span<double> of_query) {
    // The last query sees every key, however many there are.
    const bool hides_later = masks.is_causal && query.index + 1 < queries;
    for (int64_t key = 0; key < keys; ++key) {
      double masked = masks.padding.is_padding(query.batch, query.index, key) ? masks.fill : 0;
      if (hides_later && key > masks.past + query.index) {
        masked = static_cast<double>(std::numeric_limits<float>::lowest());
      }
      double& score = of_query[static_cast<size_t>(key)];
      score = rule.rounded(score + rule.rounded(masked + masks.bias.of(query, key)));
    }
    return KeysSeen{0, keys};
  };
  return attend(context, q, k, v, rule, scores);
}

Outputs in_type_of(const KernelContext& context, size_t typed, std::vector<Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (context.wants(static_cast<int>(i))) {
      ATTN_OPT_TRY(outputs[i], in_type(context, outputs[i], context.input(typed).type()));
    } else {
      outputs[i] = Tensor();
    }
  }
  return outputs;
}

}  // namespace attn_opt
