#include "src/exec/attention/contrib_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/exec/layout/strided.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

constexpr double kNoSink = -std::numeric_limits<double>::infinity();

/// Weights of the scores in RANGE, in place, beside one score more, SINK, that may be -inf for none.
void soften(std::span<double> scores, const KeysSeen& range, double sink) {
  const auto seen = scores.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin));
  if (seen.empty()) return;
  const double most = std::max(*std::ranges::max_element(seen), sink);
  double sum = std::exp(sink - most);
  for (double& score : seen) sum += score = std::exp(score - most);
  for (double& score : seen) score /= sum;
}

struct HeadRowsView {
  const double* data;
  int64_t count, size;
};

/// Rows of head HEAD, of HEADS, of batch element BATCH of X (B, H, rows, size).
HeadRowsView rows_of(const Tensor& x, int64_t batch, int64_t head, int64_t heads) {
  const Dims& dims = x.dims();
  const int64_t shared = head / (heads / dims[1]);
  return {x.data<double>().data() + (batch * dims[1] + shared) * dims[2] * dims[3], dims[2], dims[3]};
}

double dot(const double* a, const double* b, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Expected<Tensor> split_heads(const KernelContext& context, const Tensor& tensor, const HeadColumns& columns) {
  ATTN_OPT_TRY(const Tensor wide, in_double(context, tensor));
  const int64_t batch = wide.dims()[0], rows = wide.dims()[1];
  const int64_t width = element_count(std::span(wide.dims()).subspan(2));
  ATTN_OPT_TRY(Tensor heads, context.allocate(onnx::TensorProto::DOUBLE, {batch, columns.heads, rows, columns.size}));
  const double* from = wide.data<double>().data() + columns.first;
  double* to = heads.mutable_data<double>().data();
  StridedLoop<1>(heads.dims(), {Dims{rows * width, columns.step, width, 1}}).elements([&](std::array<int64_t, 1> at) {
    *to++ = from[at[0]];
  });
  return heads;
}

Expected<Tensor> join_rows(const KernelContext& context, const Tensor& past, const Tensor& fresh) {
  if (!past.has_value()) return fresh;
  const Dims &before = past.dims(), &now = fresh.dims();
  if (before.size() != 4 || before[0] != now[0] || before[1] != now[1] || before[3] != now[3]) {
    return context.invalid("a past of shape " + print_dims(before) + " does not fit " + print_dims(now));
  }
  ATTN_OPT_TRY(const Tensor wide, in_double(context, past));
  ATTN_OPT_TRY(Tensor joined, context.allocate(onnx::TensorProto::DOUBLE, {now[0], now[1], before[2] + now[2], now[3]}));
  double* to = joined.mutable_data<double>().data();
  for (int64_t head = 0; head < now[0] * now[1]; ++head) {
    to = std::copy_n(wide.data<double>().data() + head * before[2] * before[3], before[2] * before[3], to);
    to = std::copy_n(fresh.data<double>().data() + head * now[2] * now[3], now[2] * now[3], to);
  }
  return joined;
}

void add_bias(Tensor& x, std::span<const double> bias, int64_t first, bool in_float) {
  const Dims& dims = x.dims();
  double* at = x.mutable_data<double>().data();
  for (int64_t head = 0; head < dims[0] * dims[1]; ++head) {
    const double* of_head = bias.data() + first + head % dims[1] * dims[3];
    for (int64_t row = 0; row < dims[2]; ++row)
      for (int64_t i = 0; i < dims[3]; ++i, ++at) {
        *at += of_head[i];
        if (in_float) *at = static_cast<double>(static_cast<float>(*at));
      }
  }
}

Expected<Tensor> attend(const KernelContext& context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionScores& rule, Tensor* scores) {
  const int64_t batch = q.dims()[0], heads = q.dims()[1], queries = q.dims()[2], keys = k.dims()[2];
  ATTN_OPT_TRY(Tensor output, context.allocate(onnx::TensorProto::DOUBLE, {batch, queries, heads * v.dims()[3]}));
  if (scores != nullptr) {
    ATTN_OPT_TRY(*scores, context.allocate(onnx::TensorProto::DOUBLE, {batch, heads, queries, keys}));
  }
  ATTN_OPT_CHECK(context.within_budget(keys, sizeof(double)));
  double* const to = output.mutable_data<double>().data();
  double* const kept = scores != nullptr ? scores->mutable_data<double>().data() : nullptr;
  context.threads.parallel_for(batch * heads * queries, [&](int64_t row) {
    const Query query{row / (heads * queries), row / queries % heads, row % queries};
    const HeadRowsView q_rows = rows_of(q, query.batch, query.head, heads);
    const HeadRowsView k_rows = rows_of(k, query.batch, query.head, heads);
    const HeadRowsView v_rows = rows_of(v, query.batch, query.head, heads);
    std::vector<double> weights(static_cast<size_t>(keys));
    for (int64_t key = 0; key < keys; ++key) {
      const double* of_query = q_rows.data + query.index * q_rows.size;
      weights[static_cast<size_t>(key)] =
          rule.rounded(rule.scale * dot(of_query, k_rows.data + key * k_rows.size, q_rows.size));
    }
    const KeysSeen range = rule.finish(query, weights);
    if (kept != nullptr) std::copy_n(weights.data(), keys, kept + row * keys);
    soften(weights, range, rule.sinks.empty() ? kNoSink : rule.sinks[static_cast<size_t>(query.head)]);
    double* y = to + ((query.batch * queries + query.index) * heads + query.head) * v_rows.size;
    for (int64_t key = range.begin; key < range.end; ++key)
      for (int64_t i = 0; i < v_rows.size; ++i) y[i] += weights[static_cast<size_t>(key)] * v_rows.data[key * v_rows.size + i];
  });
  return output;
}

Expected<ScoreBias> ScoreBias::read(const KernelContext& context, size_t i, int64_t heads, const ScoreSizes& sizes) {
  ScoreBias bias;
  if (!context.has(i)) return bias;
  bias.dims_ = context.input(i).dims();
  const Dims& dims = bias.dims_;
  const bool fits = dims.size() == 4 && (dims[0] == 1 || dims[0] == sizes.batch) && (dims[1] == 1 || dims[1] == heads) &&
                    dims[2] == sizes.queries && dims[3] == sizes.keys;
  if (!fits) return misfit_of(context, i);
  ATTN_OPT_TRY(bias.values_, context.reals(context.input(i)));
  return bias;
}

double ScoreBias::of(const Query& query, int64_t key) const {
  if (values_.empty()) return 0;
  const int64_t matrix = query.batch % dims_[0] * dims_[1] + query.head % dims_[1];
  return values_[static_cast<size_t>((matrix * dims_[2] + query.index) * dims_[3] + key)];
}

double score_scale(const KernelContext& context, int64_t size) {
  const auto given = static_cast<double>(context.attribute_float("scale", 0));
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(size));
}

Status refuse_inputs(const KernelContext& context, size_t first, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (context.has(first++)) return context.unsupported(name);
  }
  return {};
}

tl::unexpected<Error> misfit_of(const KernelContext& context, size_t i) {
  return context.invalid("input " + std::to_string(i) + " of shape " + print_dims(context.input(i).dims()) + " does not fit");
}

}  // namespace attn_opt
