#include <array>
#include <cmath>
#include <cstring>

#include "src/exec/attention/attention.h"
#include "src/graph/attention_inputs.h"

namespace attn_opt {
namespace {

/// [B, H, S, D] of a tensor, whose rows lie at LAYOUT.
struct HeadShape {
  int64_t batch = 0, heads = 0, positions = 0, width = 0;
  HeadLayout layout;
};

HeadShape of_four(const Dims& dims) {
  return {dims[0], dims[1], dims[2], dims[3], {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3]}};
}

HeadShape of_three(const Dims& dims, int64_t heads) {
  const int64_t width = dims[2] / heads;
  return {dims[0], heads, dims[1], width, {dims[1] * dims[2], width, dims[2]}};
}

class Reader {
 public:
  explicit Reader(const KernelContext& context) : context_(context) {}

  Expected<AttentionProblem> read() {
    ATTN_OPT_CHECK(check_types());
    ATTN_OPT_CHECK(read_new());
    ATTN_OPT_CHECK(read_past());
    ATTN_OPT_CHECK(read_numbers());
    if (element_count(problem_.score_dims()) < 0) return context_.invalid("there are too many scores");
    return problem_;
  }

 private:
  Status check_types() {
    for (const AttentionInput i : {kQ, kK, kV}) {
      if (!is_floating(context_.input(i).type())) {
        return context_.unsupported("element type " + type_name(context_.input(i).type()));
      }
    }
    ATTN_OPT_CHECK(context_.same_type(context_.input(kQ), context_.input(kK)));
    if (context_.has(kPastKey) != context_.has(kPastValue)) {
      return context_.invalid("past_key and past_value are not given together");
    }
    if (context_.has(kNonpad) && context_.has(kPastKey)) {
      return context_.invalid("both past_key and nonpad_kv_seqlen are given");
    }
    return {};
  }

  /// The heads of input I by attribute NAME, which inputs of rank 4 need not have.
  Expected<HeadShape> heads_of(AttentionInput i, const char* name) const {
    const Dims& dims = context_.input(i).dims();
    const auto* attribute = context_.attribute(name);
    if (dims.size() == 4) {
      const HeadShape shape = of_four(dims);
      if (attribute == nullptr) return shape;
      if (context_.version >= 25) return context_.invalid(std::string(name) + " is given for inputs of rank 4");
      if (attribute->i() != 0 && attribute->i() != shape.heads) return misfit(i);
      return shape;
    }
    if (dims.size() != 3) return misfit(i);
    const int64_t heads = attribute != nullptr ? attribute->i() : 0;
    if (heads <= 0 || dims[2] % heads != 0) {
      return context_.invalid(std::string(name) + " does not divide shape " + print_dims(dims));
    }
    return of_three(dims, heads);
  }

  tl::unexpected<Error> misfit(AttentionInput i) const {
    return context_.invalid("input " + std::to_string(static_cast<int>(i)) + " of shape " +
                            print_dims(context_.input(i).dims()) + " does not fit");
  }

  HeadRows rows(AttentionInput i, const HeadLayout& layout) const {
    return {context_.input(i).type(), context_.input(i).bytes().data(), layout};
  }

  Status read_new() {
    if (context_.input(kK).rank() != context_.input(kQ).rank()) return misfit(kK);
    if (context_.input(kV).rank() != context_.input(kQ).rank()) return misfit(kV);
    ATTN_OPT_TRY(const HeadShape q, heads_of(kQ, "q_num_heads"));
    ATTN_OPT_TRY(const HeadShape k, heads_of(kK, "kv_num_heads"));
    ATTN_OPT_TRY(const HeadShape v, heads_of(kV, "kv_num_heads"));
    if (k.batch != q.batch || k.width != q.width) return misfit(kK);
    if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0) return misfit(kK);
    if (v.batch != k.batch || v.heads != k.heads || v.positions != k.positions) return misfit(kV);
    AttentionProblem& p = problem_;
    p.batch = q.batch;
    p.q_heads = q.heads;
    p.kv_heads = k.heads;
    p.queries = q.positions;
    p.keys = k.positions;
    p.head_size = q.width;
    p.v_head_size = v.width;
    p.type = context_.input(kQ).type();
    p.q = rows(kQ, q.layout);
    p.key_parts[1] = rows(kK, k.layout);
    p.value_parts[1] = rows(kV, v.layout);
    const bool flat = context_.input(kQ).rank() == 3;
    p.y_dims = flat ? Dims{q.batch, q.positions, q.heads * v.width} : Dims{q.batch, q.heads, q.positions, v.width};
    p.y = flat ? of_three(p.y_dims, std::max<int64_t>(q.heads, 1)).layout : of_four(p.y_dims).layout;
    return {};
  }

  Status read_past() {
    if (!context_.has(kPastKey)) return {};
    const AttentionProblem& p = problem_;
    for (const AttentionInput i : {kPastKey, kPastValue}) {
      const Tensor& past = context_.input(i);
      ATTN_OPT_CHECK(context_.same_type(past, context_.input(i == kPastKey ? kK : kV)));
      const int64_t width = i == kPastKey ? p.head_size : p.v_head_size;
      const int64_t length = context_.input(kPastKey).rank() == 4 ? context_.input(kPastKey).dims()[2] : 0;
      if (past.dims() != Dims{p.batch, p.kv_heads, length, width}) return misfit(i);
    }
    problem_.key_parts[0] = rows_of_heads(context_.input(kPastKey));
    problem_.value_parts[0] = rows_of_heads(context_.input(kPastValue));
    problem_.past = context_.input(kPastKey).dims()[2];
    problem_.seam = problem_.past;
    problem_.keys += problem_.past;
    return {};
  }

  /// The body rounds the square root of the scale to Q's type and multiplies Q and K by it.
  Status read_numbers() {
    AttentionProblem& p = problem_;
    const auto* scale = context_.attribute("scale");
    const float softcap = context_.attribute_float("softcap", 0.0f);
    double root = 0;
    if (context_.compute_f64) {
      root = std::sqrt(scale != nullptr ? double{scale->f()} : 1 / std::sqrt(static_cast<double>(p.head_size)));
      p.softcap = softcap;
    } else {
      const float default_scale = 1 / std::sqrt(static_cast<float>(p.head_size));
      const auto in_type = [&](float value) { return Tensor::scalar(value).cast(p.type); };
      ATTN_OPT_TRY(const Tensor rounded, in_type(std::sqrt(scale != nullptr ? scale->f() : default_scale)));
      ATTN_OPT_TRY(const Tensor cap, in_type(softcap));
      ATTN_OPT_TRY(const auto roots, context_.reals(rounded));
      ATTN_OPT_TRY(const auto caps, context_.reals(cap));
      root = roots[0];
      p.softcap = caps[0];
    }
    p.scale = root * root;
    const auto precision = static_cast<DataType>(context_.attribute_int("softmax_precision", p.type));
    if (!is_floating(precision)) return context_.invalid("softmax_precision is not a floating type");
    p.softmax_type = context_.compute_f64 ? p.type : precision;
    if (context_.wants(3)) {
      const int64_t mode = context_.attribute_int("qk_matmul_output_mode", 0);
      p.wanted = mode >= 1 && mode <= 3 ? static_cast<ScoreStage>(mode) : ScoreStage::kProduct;
    }
    return {};
  }

  const KernelContext& context_;
  AttentionProblem problem_;
};

}  // namespace

HeadRows rows_of_heads(const Tensor& tensor) { return {tensor.type(), tensor.bytes().data(), of_four(tensor.dims()).layout}; }

Expected<AttentionProblem> read_attention(const KernelContext& context) { return Reader(context).read(); }

Expected<Tensor> joined(const KernelContext& context, const AttentionProblem& p, const Tensor& fresh,
                        const HeadRows (&parts)[2], int64_t width) {
  if (p.past == 0 && fresh.rank() == 4) return fresh;
  ATTN_OPT_TRY(Tensor all, context.allocate(fresh.type(), {p.batch, p.kv_heads, p.keys, width}));
  const size_t size = element_size(fresh.type());
  std::byte* to = all.mutable_bytes().data();
  if (all.size() == 0) return all;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t h = 0; h < p.kv_heads; ++h) {
      for (int64_t j = 0; j < p.keys; ++j, to += static_cast<size_t>(width) * size) {
        const HeadRows& part = parts[j < p.seam ? 0 : 1];
        const int64_t from = part.layout.offset(b, h, j < p.seam ? j : j - p.seam);
        std::memcpy(to, part.data + static_cast<size_t>(from) * size, static_cast<size_t>(width) * size);
      }
    }
  }
  return all;
}

}  // namespace attn_opt
