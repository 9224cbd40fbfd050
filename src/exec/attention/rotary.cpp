#include "src/exec/attention/rotary.h"

#include "src/exec/attention/contrib_attention.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

enum RotaryInput : size_t { kRotaryX, kRotaryPositions, kRotaryCos, kRotarySin };

/// Position of each row of each batch element: given for each, or the first of them.
Expected<std::vector<int64_t>> positions_of(const KernelContext& context, int64_t batch, int64_t rows) {
  ATTN_OPT_TRY(std::vector<int64_t> given, context.integers(context.input(kRotaryPositions)));
  if (context.input(kRotaryPositions).dims() == Dims{batch, rows}) return given;
  if (given.size() != 1) return context.invalid("position_ids are neither (1) nor (batch, sequence)");
  std::vector<int64_t> positions(static_cast<size_t>(batch * rows));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = given[0] + static_cast<int64_t>(i) % rows;
  return positions;
}

/// X (B, S, heads * size) or (B, heads, S, size), by heads.
Expected<Tensor> by_heads(const KernelContext& context, const RotaryCaches& caches) {
  const Tensor& x = context.input(kRotaryX);
  if (x.rank() == 4) {
    ATTN_OPT_TRY(const Tensor wide, in_double(context, x));
    ATTN_OPT_TRY(Tensor own, context.allocate(onnx::TensorProto::DOUBLE, x.dims()));
    std::ranges::copy(wide.data<double>(), own.mutable_data<double>().begin());
    return own;
  }
  const int64_t given = context.attribute_int("num_heads", 0);
  const int64_t width = x.rank() == 3 ? x.dims()[2] : 0;
  const int64_t size = given > 0 ? width / given : caches.rotated();
  if (size <= 0 || width % size != 0) return context.invalid("input of shape " + print_dims(x.dims()));
  return split_heads(context, x, {width / size, size, 0, size});
}

Outputs rotary_embedding(const KernelContext& context) {
  if (context.attribute_int("is_packed_batching", 0) != 0) return context.unsupported("is_packed_batching");
  if (context.attribute_float("scale", 1) != 1) return context.unsupported("scale");
  ATTN_OPT_TRY(const RotaryCaches caches, RotaryCaches::read(context, kRotaryCos, kRotarySin));
  ATTN_OPT_TRY(Tensor x, by_heads(context, caches));
  ATTN_OPT_TRY(const auto positions, positions_of(context, x.dims()[0], x.dims()[2]));
  ATTN_OPT_CHECK(caches.rotate(context, x, positions, context.attribute_int("interleaved", 0) != 0));
  if (context.input(kRotaryX).rank() == 3) {
    const Dims& dims = x.dims();
    ATTN_OPT_TRY(Tensor merged, context.allocate(onnx::TensorProto::DOUBLE, context.input(kRotaryX).dims()));
    const Dims strides{dims[1] * dims[2] * dims[3], dims[3], dims[2] * dims[3], 1};
    double* to = merged.mutable_data<double>().data();
    StridedLoop<1>({dims[0], dims[2], dims[1], dims[3]}, {strides}).elements([&](std::array<int64_t, 1> at) {
      *to++ = x.data<double>()[static_cast<size_t>(at[0])];
    });
    x = std::move(merged);
  }
  return single(in_type(context, x, context.input(kRotaryX).type()));
}

}  // namespace

Expected<RotaryCaches> RotaryCaches::read(const KernelContext& context, size_t cos, size_t sin) {
  const Dims& dims = context.input(cos).dims();
  if (!context.has(cos) || dims.size() != 2 || context.input(sin).dims() != dims) {
    return context.invalid("cos_cache and sin_cache are not two matrices of one shape");
  }
  RotaryCaches caches;
  caches.half_ = dims[1];
  ATTN_OPT_TRY(caches.cos_, context.reals(context.input(cos)));
  ATTN_OPT_TRY(caches.sin_, context.reals(context.input(sin)));
  return caches;
}

Status RotaryCaches::rotate(const KernelContext& context, Tensor& x, const std::vector<int64_t>& positions,
                            bool interleaved) const {
  const Dims& dims = x.dims();
  if (rotated() > dims[3]) return context.invalid("the caches are wider than a head");
  for (const int64_t position : positions) {
    if (position < 0 || position >= this->positions()) {
      return context.invalid("position " + std::to_string(position) + " is not in the caches");
    }
  }
  double* row = x.mutable_data<double>().data();
  for (int64_t i = 0; i < dims[0] * dims[1] * dims[2]; ++i, row += dims[3]) {
    const int64_t at = i / (dims[1] * dims[2]) * dims[2] + i % dims[2];
    const auto first = static_cast<size_t>(positions[static_cast<size_t>(at)] * half_);
    for (int64_t j = 0; j < half_; ++j) {
      double& real = row[interleaved ? 2 * j : j];
      double& imaginary = row[interleaved ? 2 * j + 1 : half_ + j];
      const double cos = cos_[first + static_cast<size_t>(j)], sin = sin_[first + static_cast<size_t>(j)];
      const double turned = real * cos - imaginary * sin;
      imaginary = imaginary * cos + real * sin;
      real = turned;
    }
  }
  return {};
}

void register_contrib_rotary(KernelRegistry& registry) {
  registry.add("com.microsoft::RotaryEmbedding", 1, 1, rotary_embedding);
}

}  // namespace attn_opt
