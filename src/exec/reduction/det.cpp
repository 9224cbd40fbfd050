// Det: determinants by Gaussian elimination with partial pivoting.
#include <algorithm>
#include <cmath>

#include "src/exec/families.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

/// Of the SIZE x SIZE matrix at ROWS, which it overwrites.
double determinant(double* rows, int64_t size) {
  double product = 1;
  for (int64_t k = 0; k < size; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < size; ++i) {
      if (std::abs(rows[i * size + k]) > std::abs(rows[pivot * size + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(rows + k * size, rows + (k + 1) * size, rows + pivot * size);
      product = -product;
    }
    const double head = rows[k * size + k];
    product *= head;
    if (head == 0) return 0;
    for (int64_t i = k + 1; i < size; ++i) {
      const double factor = rows[i * size + k] / head;
      for (int64_t j = k + 1; j < size; ++j) rows[i * size + j] -= factor * rows[k * size + j];
    }
  }
  return product;
}

Outputs det(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.rank() < 2 || x.dims().back() != x.dims()[x.dims().size() - 2]) {
    return context.invalid("input of shape " + print_dims(x.dims()) + " is not of square matrices");
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, Dims(x.dims().begin(), x.dims().end() - 2)));
  const int64_t size = x.dims().back();
  const int64_t elements = size == 0 ? 0 : x.size() / std::max<int64_t>(1, out.size());
  ATTN_OPT_CHECK(context.within_budget(elements, sizeof(double)));
  ATTN_OPT_TRY(const Tensor values, in_double(context, x));
  std::vector<double> matrix(static_cast<size_t>(elements));
  const double* from = values.data<double>().data();
  for (double& to : out.mutable_data<double>()) {
    std::copy_n(from, elements, matrix.begin());
    to = determinant(matrix.data(), size);
    from += elements;
  }
  return single(out.cast(x.type()));
}

}  // namespace

void register_det(KernelRegistry& registry) { registry.add("Det", 11, 22, det); }

}  // namespace attn_opt
