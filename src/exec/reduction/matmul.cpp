#include "src/exec/reduction/matmul.h"

#include <numeric>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"
#include "src/exec/layout/copy.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

using ProductTypes = decltype(join(TypeList<float, double>{}, IntegerTypes{}));

Dims batch_of(const Dims& dims) { return dims.size() <= 2 ? Dims{} : Dims(dims.begin(), dims.end() - 2); }

}  // namespace

Status check_extents(const KernelContext& context, const MatrixProduct& p) {
  constexpr int64_t kMost = kLargestExtent;
  if (p.m <= kMost && p.n <= kMost && p.k <= kMost) return {};
  return fail(ErrorCode::kLimit, describe(context.node), context.node.op_type() + ": a matrix is too large");
}

DataType product_type(DataType type) {
  return type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16 ? onnx::TensorProto::FLOAT : type;
}

namespace {

/// True if COUNT such products together do not pay for another thread.
bool is_small(const MatrixProduct& p, int64_t count) {
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  return work * static_cast<double>(count) < static_cast<double>(kBlockWork);
}

Expected<Tensor> batched(const KernelContext& context, const Tensor& a, const Tensor& b) {
  const Dims a_batch = batch_of(a.dims());
  const Dims b_batch = batch_of(b.dims());
  MatrixProduct p{a.dims()[a.dims().size() - 2], b.dims().back(), a.dims().back()};
  if (b.dims()[b.dims().size() - 2] != p.k) {
    return context.invalid("shapes " + print_dims(a.dims()) + " and " + print_dims(b.dims()) + " do not multiply");
  }
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, a_batch, b_batch));
  const Dims batch = dims;
  dims.insert(dims.end(), {p.m, p.n});
  ATTN_OPT_TRY(Tensor out, context.allocate_unset(a.type(), std::move(dims)));
  ATTN_OPT_CHECK(check_extents(context, p));
  if (out.size() == 0) return out;
  const StridedLoop<2> loop(batch, {broadcast_strides(a_batch, batch), broadcast_strides(b_batch, batch)});
  return dispatch(context, a.type(), ProductTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* a_data = a.data<T>().data();
    const T* b_data = b.data<T>().data();
    T* to = out.mutable_data<T>().data();
    loop.rows([&](std::array<int64_t, 2> at, int64_t count, const std::array<int64_t, 2>& step) {
      MatrixProduct run = p;
      // Where B is one matrix for all of A's, theirs are rows of one taller matrix.
      const bool as_one = step[0] == 1 && step[1] == 0 && p.m * count <= kLargestExtent;
      if (as_one) run.m *= count;
      const auto product = [&](int64_t i) {
        multiply(context.threads, run, a_data + (at[0] + i * step[0]) * p.m * p.k, b_data + (at[1] + i * step[1]) * p.k * p.n,
                 to + i * p.m * p.n);
      };
      const int64_t products = as_one ? 1 : count;
      if (is_small(p, products)) {
        for (int64_t i = 0; i < products; ++i) product(i);
      } else {
        context.threads.parallel_for(products, product);
      }
      to += count * p.m * p.n;
    });
    return std::move(out);
  });
}

Outputs matmul_kernel(const KernelContext& context) { return single(matmul(context, context.input(0), context.input(1))); }

Expected<Tensor> with_last_axes_swapped(const KernelContext& context, const Tensor& tensor) {
  if (tensor.rank() < 2) return tensor;
  std::vector<int64_t> order(tensor.rank());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transposed(context, tensor, order);
}

/// The axes behind the first but for the last moved before it: the first becomes the last but one.
Expected<Tensor> with_batch_first(const KernelContext& context, const Tensor& tensor) {
  if (tensor.rank() < 3) return context.invalid("a factor without batch axes has them moved");
  std::vector<int64_t> order(tensor.rank());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  return transposed(context, tensor, order);
}

/// Factor I of a FusedMatMul as it is multiplied.
Expected<Tensor> fused_factor(const KernelContext& context, size_t i) {
  Tensor factor = context.input(i);
  ATTN_OPT_TRY(factor, in_type(context, factor, product_type(factor.type())));
  if (context.attribute_int(i == 0 ? "transBatchA" : "transBatchB", 0) != 0) {
    ATTN_OPT_TRY(factor, with_batch_first(context, factor));
  }
  if (context.attribute_int(i == 0 ? "transA" : "transB", 0) != 0) return with_last_axes_swapped(context, factor);
  return factor;
}

/// com.microsoft: alpha * op(A) op(B).
Outputs fused_matmul(const KernelContext& context) {
  const DataType type = context.input(0).type();
  ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(1)));
  ATTN_OPT_TRY(const Tensor a, fused_factor(context, 0));
  ATTN_OPT_TRY(const Tensor b, fused_factor(context, 1));
  ATTN_OPT_TRY(Tensor product, matmul(context, a, b));
  const float alpha = context.attribute_float("alpha", 1.0f);
  return dispatch(context, product.type(), TypeList<float, double>{}, [&]<class T>() -> Outputs {
    for (T& element : product.mutable_data<T>()) element *= static_cast<T>(alpha);
    return single(product.cast(type));
  });
}

Outputs gemm(const KernelContext& context) {
  const DataType type = context.input(0).type();
  ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(1)));
  ATTN_OPT_TRY(const Tensor a, context.input(0).cast(product_type(type)));
  ATTN_OPT_TRY(const Tensor b, context.input(1).cast(product_type(type)));
  if (a.rank() != 2 || b.rank() != 2) return context.invalid("a factor is not a matrix");
  MatrixProduct p;
  p.transpose_a = context.attribute_int("transA", 0) != 0;
  p.transpose_b = context.attribute_int("transB", 0) != 0;
  p.alpha = context.attribute_float("alpha", 1.0f);
  p.m = a.dims()[p.transpose_a ? 1 : 0];
  p.k = a.dims()[p.transpose_a ? 0 : 1];
  p.n = b.dims()[p.transpose_b ? 0 : 1];
  if (b.dims()[p.transpose_b ? 1 : 0] != p.k) {
    return context.invalid("shapes " + print_dims(a.dims()) + " and " + print_dims(b.dims()) + " do not multiply");
  }
  ATTN_OPT_CHECK(check_extents(context, p));
  ATTN_OPT_TRY(Tensor out, context.allocate_unset(a.type(), {p.m, p.n}));
  const double beta = context.attribute_float("beta", 1.0f);
  if (context.has(2) && beta != 0) {
    ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(2)));
    ATTN_OPT_TRY(const Tensor c, context.input(2).cast(a.type()));
    ATTN_OPT_TRY(const Dims dims, broadcast_dims(context, c.dims(), out.dims()));
    if (dims != out.dims()) return context.invalid("C does not broadcast to " + print_dims(out.dims()));
    ATTN_OPT_TRY(const Tensor addend, expand(context, c, dims));
    std::ranges::copy(addend.bytes(), out.mutable_bytes().begin());
    p.beta = beta;
  }
  return dispatch(context, a.type(), ProductTypes{}, [&]<class T>() -> Outputs {
    multiply(context.threads, p, a.data<T>().data(), b.data<T>().data(), out.mutable_data<T>().data());
    return single(out.cast(type));
  });
}

}  // namespace

Expected<Tensor> matmul(const KernelContext& context, const Tensor& a, const Tensor& b) {
  ATTN_OPT_CHECK(context.same_type(a, b));
  if (a.rank() == 0 || b.rank() == 0) return context.invalid("a factor is a scalar");
  ATTN_OPT_TRY(Tensor left, a.cast(product_type(a.type())));
  ATTN_OPT_TRY(Tensor right, b.cast(product_type(b.type())));
  if (a.rank() == 1) left = left.reshaped({1, a.dims()[0]});
  if (b.rank() == 1) right = right.reshaped({b.dims()[0], 1});
  ATTN_OPT_TRY(Tensor product, batched(context, left, right));
  Dims dims = product.dims();
  if (b.rank() == 1) dims.pop_back();
  if (a.rank() == 1) dims.erase(dims.end() - (b.rank() == 1 ? 1 : 2));
  ATTN_OPT_TRY(product, product.cast(a.type()));
  return product.reshaped(std::move(dims));
}

void register_matmul(KernelRegistry& registry) {
  registry.add("MatMul", 1, 13, matmul_kernel);
  registry.add("Gemm", 1, 13, gemm);
  registry.add("com.microsoft::FusedMatMul", 1, 1, fused_matmul);
}

}  // namespace attn_opt
