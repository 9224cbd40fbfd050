// com.microsoft::Attention and QAttention, which project their input themselves.
//
// X (B, L, In) times weights (In, H*D + H*D + H*Dv), plus bias, is Q, K and V; past and present (2, B, H, rows, D) hold keys
// and then values. QAttention is given X and weights as integers of 8 bits, each with a zero point that is subtracted before
// the product; the product is multiplied by both scales.
#include <algorithm>
#include <limits>

#include "src/exec/attention/contrib_attention.h"
#include "src/exec/attention/padding_mask.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

constexpr size_t kProjectedX = 0, kProjectedWeights = 1, kProjectedBias = 2;
constexpr size_t kProjectedNone = std::numeric_limits<size_t>::max();

/// Where the inputs of an operator stand that not all have at one place, or at all.
struct ProjectedInputs {
  size_t mask, past, attention_bias = kProjectedNone, past_length = kProjectedNone;
  size_t x_scale = kProjectedNone, weight_scale = kProjectedNone, x_zero = kProjectedNone, weight_zero = kProjectedNone;
  size_t typed;  ///< the input in whose type the operator computes

  bool are_quantized() const { return x_scale != kProjectedNone; }
};

constexpr ProjectedInputs kFloatingProjection{
    .mask = 3, .past = 4, .attention_bias = 5, .past_length = 6, .typed = kProjectedX};
constexpr ProjectedInputs kQuantizedProjection{
    .mask = 5, .past = 8, .x_scale = 3, .weight_scale = 4, .x_zero = 6, .weight_zero = 7, .typed = kProjectedBias};

class ProjectedAttention {
 public:
  ProjectedAttention(const KernelContext& context, const ProjectedInputs& at)
      : context_(context), at_(at), heads_(context.attribute_int("num_heads", 0)) {}

  Outputs run() {
    ATTN_OPT_CHECK(check());
    ATTN_OPT_CHECK(project());
    ATTN_OPT_TRY(k_, behind_past(k_, 0));
    ATTN_OPT_TRY(v_, behind_past(v_, 1));
    const ScoreSizes sizes{q_.dims()[0], q_.dims()[2], k_.dims()[2]};
    ATTN_OPT_TRY(ScoreMasks masks, ScoreMasks::read(context_, at_.mask, at_.attention_bias, heads_, sizes, true));
    masks.past = sizes.keys - sizes.queries;
    masks.in_float = in_float();
    ATTN_OPT_TRY(const Tensor y, attend_with_masks(context_, q_, k_, v_, masks));
    Tensor present;
    if (context_.wants(1)) {
      ATTN_OPT_TRY(present, stacked());
    }
    return in_type_of(context_, at_.typed, {y, present});
  }

 private:
  bool in_float() const { return context_.input(at_.typed).type() != onnx::TensorProto::DOUBLE; }

  Status check() const {
    if (heads_ <= 0) return context_.invalid("num_heads is not positive");
    for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
      if (context_.attribute_int(name, 0) != 0) return context_.unsupported(name);
    }
    if (!context_.has(at_.typed)) return context_.invalid("there is no bias");
    ATTN_OPT_CHECK(check_type_of(at_.typed, {kProjectedBias, at_.past, at_.attention_bias, at_.x_scale, at_.weight_scale}));
    if (at_.are_quantized()) {
      ATTN_OPT_CHECK(check_type_of(kProjectedX, {at_.x_zero}));
      ATTN_OPT_CHECK(check_type_of(kProjectedWeights, {at_.weight_zero}));
    } else {
      ATTN_OPT_CHECK(check_type_of(kProjectedX, {kProjectedWeights}));
    }
    return refuse_inputs(context_, at_.past_length, {"past_sequence_length"});
  }

  /// Those of INPUTS that are given have the type of input OTHER.
  Status check_type_of(size_t other, std::initializer_list<size_t> inputs) const {
    for (const size_t i : inputs) {
      if (!context_.has(i)) continue;
      ATTN_OPT_CHECK(context_.same_type(context_.input(other), context_.input(i)));
    }
    return {};
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
    ATTN_OPT_TRY(const std::vector<double> x, operand(kProjectedX, at_.x_zero, 1));
    ATTN_OPT_TRY(const std::vector<double> weights, operand(kProjectedWeights, at_.weight_zero, width));
    ATTN_OPT_TRY(const std::vector<double> scales, scales_of_columns(width));
    std::vector<double> bias(static_cast<size_t>(width), 0);
    if (context_.has(kProjectedBias)) {
      ATTN_OPT_TRY(bias, context_.reals(context_.input(kProjectedBias)));
      if (static_cast<int64_t>(bias.size()) != width) return misfit_of(context_, kProjectedBias);
    }
    ATTN_OPT_TRY(Tensor all, context_.allocate(onnx::TensorProto::DOUBLE, {x_dims[0], x_dims[1], width}));
    double* row = all.mutable_data<double>().data();
    for (int64_t r = 0; r < x_dims[0] * x_dims[1]; ++r, row += width) {
      std::fill_n(row, width, 0.0);
      for (int64_t i = 0; i < x_dims[2]; ++i)
        for (int64_t j = 0; j < width; ++j)
          row[j] += x[static_cast<size_t>(r * x_dims[2] + i)] * weights[static_cast<size_t>(i * width + j)];
      for (size_t j = 0; j < scales.size(); ++j) row[j] *= scales[j];
      std::transform(row, row + width, bias.begin(), row, [&](double sum, double more) { return rounded(sum + more); });
    }
    return all;
  }

  double rounded(double value) const { return in_float() ? static_cast<double>(static_cast<float>(value)) : value; }

  /// The values of input I less its zero point, which is input ZERO: one value, or one for each of COLUMNS.
  Expected<std::vector<double>> operand(size_t i, size_t zero, int64_t columns) const {
    ATTN_OPT_TRY(const Tensor wide, in_double(context_, context_.input(i)));
    std::vector<double> values(wide.data<double>().begin(), wide.data<double>().end());
    if (!context_.has(zero)) return values;
    ATTN_OPT_TRY(const Tensor zeros, in_double(context_, context_.input(zero)));
    if (zeros.size() != 1 && zeros.size() != columns) return misfit_of(context_, zero);
    const auto less = zeros.data<double>();
    for (size_t at = 0; at < values.size(); ++at) values[at] -= less[at % less.size()];
    return values;
  }

  /// What quantization multiplies each of WIDTH columns by; empty: nothing.
  Expected<std::vector<double>> scales_of_columns(int64_t width) const {
    if (!at_.are_quantized()) return std::vector<double>();
    if (!context_.has(at_.x_scale) || !context_.has(at_.weight_scale)) return context_.invalid("a scale is missing");
    ATTN_OPT_TRY(const std::vector<double> of_x, context_.reals(context_.input(at_.x_scale)));
    ATTN_OPT_TRY(std::vector<double> scales, context_.reals(context_.input(at_.weight_scale)));
    if (of_x.size() != 1) return misfit_of(context_, at_.x_scale);
    if (scales.size() == 1) scales.assign(static_cast<size_t>(width), scales[0]);
    if (static_cast<int64_t>(scales.size()) != width) return misfit_of(context_, at_.weight_scale);
    for (double& scale : scales) scale = rounded(scale * of_x[0]);
    return scales;
  }

  /// FRESH (B, H, L, D) behind part PART of the past.
  Expected<Tensor> behind_past(const Tensor& fresh, int64_t part) const {
    if (!context_.has(at_.past)) return fresh;
    const Dims& dims = context_.input(at_.past).dims();
    if (dims.size() != 5 || dims[0] != 2) return misfit_of(context_, at_.past);
    ATTN_OPT_TRY(const Tensor wide, in_double(context_, context_.input(at_.past)));
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
  const ProjectedInputs& at_;
  int64_t heads_;
  Tensor q_, k_, v_;  ///< (B, H, rows, size), in double
};

Outputs projected_attention(const KernelContext& context) { return ProjectedAttention(context, kFloatingProjection).run(); }
Outputs quantized_attention(const KernelContext& context) { return ProjectedAttention(context, kQuantizedProjection).run(); }

}  // namespace

void register_projected_attention(KernelRegistry& registry) {
  registry.add("com.microsoft::Attention", 1, 1, projected_attention);
  registry.add("com.microsoft::QAttention", 1, 1, quantized_attention);
}

}  // namespace attn_opt
