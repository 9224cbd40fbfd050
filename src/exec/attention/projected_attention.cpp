// com.microsoft::Attention.
//
// X (B, L, In) times weights (In, H*D + H*D + H*Dv), plus bias, is Q, K and V; past and present (2, B, H, rows, D) hold keys
// and then values.
#include <algorithm>

#include "src/exec/attention/contrib_attention.h"
#include "src/exec/attention/padding_mask.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

enum ProjectedInput : size_t {
  kProjectedX,
  kProjectedWeights,
  kProjectedBias,
  kProjectedMask,
  kProjectedPast,
  kProjectedAttentionBias,
  kProjectedPastLength
};

class ProjectedAttention {
 public:
  explicit ProjectedAttention(const KernelContext& context)
      : context_(context), heads_(context.attribute_int("num_heads", 0)) {}

  Outputs run() {
    ATTN_OPT_CHECK(check());
    ATTN_OPT_CHECK(project());
    ATTN_OPT_TRY(k_, behind_past(k_, 0));
    ATTN_OPT_TRY(v_, behind_past(v_, 1));
    const ScoreSizes sizes{q_.dims()[0], q_.dims()[2], k_.dims()[2]};
    ATTN_OPT_TRY(ScoreMasks masks, ScoreMasks::read(context_, kProjectedMask, kProjectedAttentionBias, heads_, sizes, true));
    masks.past = sizes.keys - sizes.queries;
    ATTN_OPT_TRY(const Tensor y, attend_with_masks(context_, q_, k_, v_, masks));
    Tensor present;
    if (context_.wants(1)) {
      ATTN_OPT_TRY(present, stacked());
    }
    return in_own_type(context_, {y, present});
  }

 private:
  Status check() const {
    if (heads_ <= 0) return context_.invalid("num_heads is not positive");
    for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
      if (context_.attribute_int(name, 0) != 0) return context_.unsupported(name);
    }
    for (const size_t i : {kProjectedX, kProjectedWeights, kProjectedBias, kProjectedPast, kProjectedAttentionBias}) {
      if (!context_.has(i)) continue;
      ATTN_OPT_CHECK(context_.same_type(context_.input(kProjectedX), context_.input(i)));
    }
    return refuse_inputs(context_, kProjectedPastLength, {"past_sequence_length"});
  }

  Status project() {
    const Dims &x = context_.input(kProjectedX).dims(), &weights = context_.input(kProjectedWeights).dims();
    if (x.size() != 3 || weights.size() != 2 || x[2] != weights[0]) return misfit_of(context_, kProjectedWeights);
    ATTN_OPT_TRY(const std::vector<int64_t> sizes, hidden_sizes(weights[1]));
    ATTN_OPT_TRY(const Tensor all, product(x, weights[1]));
    int64_t first = 0;
    for (auto [heads, size] : {std::pair{&q_, sizes[0]}, std::pair{&k_, sizes[1]}, std::pair{&v_, sizes[2]}}) {
      ATTN_OPT_TRY(*heads, split_heads(context_, all, {heads_, size / heads_, first, size / heads_}));
      first += size;
    }
    return {};
  }

  Expected<std::vector<int64_t>> hidden_sizes(int64_t width) const {
    std::vector<int64_t> sizes = context_.attribute_ints("qkv_hidden_sizes");
    if (sizes.empty()) sizes.assign(3, width / 3);
    const bool fit = sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == width && sizes[0] == sizes[1] &&
                     std::ranges::all_of(sizes, [&](int64_t size) { return size > 0 && size % heads_ == 0; });
    if (!fit) return context_.invalid("weights of " + std::to_string(width) + " columns do not fit the heads");
    return sizes;
  }

  /// X weights + bias: (B, L, WIDTH), in double and rounded to what is computed in.
  Expected<Tensor> product(const Dims& x_dims, int64_t width) const {
    ATTN_OPT_TRY(const std::vector<double> x, context_.reals(context_.input(kProjectedX)));
    ATTN_OPT_TRY(const std::vector<double> weights, context_.reals(context_.input(kProjectedWeights)));
    std::vector<double> bias(static_cast<size_t>(width), 0);
    if (context_.has(kProjectedBias)) {
      ATTN_OPT_TRY(bias, context_.reals(context_.input(kProjectedBias)));
      if (static_cast<int64_t>(bias.size()) != width) return misfit_of(context_, kProjectedBias);
    }
    ATTN_OPT_TRY(Tensor all, context_.allocate(onnx::TensorProto::DOUBLE, {x_dims[0], x_dims[1], width}));
    double* row = all.mutable_data<double>().data();
    const bool in_float = context_.input(kProjectedX).type() != onnx::TensorProto::DOUBLE;
    for (int64_t r = 0; r < x_dims[0] * x_dims[1]; ++r, row += width) {
      std::ranges::copy(bias, row);
      for (int64_t i = 0; i < x_dims[2]; ++i)
        for (int64_t j = 0; j < width; ++j)
          row[j] += x[static_cast<size_t>(r * x_dims[2] + i)] * weights[static_cast<size_t>(i * width + j)];
      if (in_float) {
        std::transform(row, row + width, row, [](double value) { return static_cast<double>(static_cast<float>(value)); });
      }
    }
    return all;
  }

  /// FRESH (B, H, L, D) behind part PART of the past.
  Expected<Tensor> behind_past(const Tensor& fresh, int64_t part) const {
    if (!context_.has(kProjectedPast)) return fresh;
    const Dims& dims = context_.input(kProjectedPast).dims();
    if (dims.size() != 5 || dims[0] != 2) return misfit_of(context_, kProjectedPast);
    ATTN_OPT_TRY(const Tensor wide, in_double(context_, context_.input(kProjectedPast)));
    ATTN_OPT_TRY(Tensor past, context_.allocate(onnx::TensorProto::DOUBLE, Dims(dims.begin() + 1, dims.end())));
    std::copy_n(wide.data<double>().data() + part * past.size(), past.size(), past.mutable_data<double>().data());
    return join_rows(context_, past, fresh);
  }

  Expected<Tensor> stacked() const {
    if (k_.dims() != v_.dims()) return context_.unsupported("a present of keys and values of two sizes");
    Dims dims = k_.dims();
    dims.insert(dims.begin(), 2);
    ATTN_OPT_TRY(Tensor present, context_.allocate(onnx::TensorProto::DOUBLE, std::move(dims)));
    double* to = std::ranges::copy(k_.data<double>(), present.mutable_data<double>().data()).out;
    std::ranges::copy(v_.data<double>(), to);
    return present;
  }

  const KernelContext& context_;
  int64_t heads_;
  Tensor q_, k_, v_;  ///< (B, H, rows, size), in double
};

Outputs projected_attention(const KernelContext& context) { return ProjectedAttention(context).run(); }

}  // namespace

void register_projected_attention(KernelRegistry& registry) {
  registry.add("com.microsoft::Attention", 1, 1, projected_attention);
}

}  // namespace attn_opt
