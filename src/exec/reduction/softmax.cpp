// Softmax, LogSoftmax and Hardmax; before opset 13 over all axes from the given one on, flattened.
#include <cmath>
#include <limits>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/vector_functions.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

/// OUTER * INNER rows of COUNT elements that lie INNER apart.
struct SoftmaxRows {
  int64_t outer = 1, count = 1, inner = 1;
};

Expected<SoftmaxRows> rows_of(const KernelContext& context) {
  const std::span<const int64_t> dims(context.input(0).dims());
  const int64_t rank = context.input(0).rank();
  const bool flattened = context.version < 13;
  if (rank == 0) return SoftmaxRows{};
  const int64_t given = context.attribute_int("axis", flattened ? 1 : -1);
  ATTN_OPT_TRY(const int64_t axis, context.axis(given, flattened && given >= 0 ? rank + 1 : rank));
  const auto at = static_cast<size_t>(axis);
  if (flattened) return SoftmaxRows{element_count(dims.first(at)), element_count(dims.subspan(at)), 1};
  return SoftmaxRows{element_count(dims.first(at)), dims[at], element_count(dims.subspan(at + 1))};
}

/// Largest of ROW, NaN if it holds one.
template <class C>
C largest(const std::vector<C>& row) {
  C most = -std::numeric_limits<C>::infinity();
  for (const C x : row) {
    if (x > most || std::isnan(x)) most = x;  // nothing is greater than a NaN, so it stays
  }
  return most;
}

template <class C>
double exp_sum(const std::vector<C>& row, C most) {
  double sum = 0;
  for (const C x : row) sum += static_cast<double>(std::exp(static_cast<C>(x - most)));
  return sum;
}

struct SoftmaxRow {
  template <class C>
  void operator()(std::vector<C>& row) const {
    const C most = largest(row);
    double sum = 0;
    for (C& x : row) {
      x = std::exp(static_cast<C>(x - most));
      sum += static_cast<double>(x);
    }
    for (C& x : row) x = static_cast<C>(static_cast<double>(x) / sum);
  }
};

struct LogSoftmaxRow {
  template <class C>
  void operator()(std::vector<C>& row) const {
    const C most = largest(row);
    const double shift = std::log(exp_sum(row, most));
    for (C& x : row) x = static_cast<C>(static_cast<double>(static_cast<C>(x - most)) - shift);
  }
};

struct HardmaxRow {
  template <class C>
  void operator()(std::vector<C>& row) const {
    const auto first = std::ranges::max_element(row);
    const auto at = first - row.begin();
    std::ranges::fill(row, C{0});
    row[static_cast<size_t>(at)] = C{1};
  }
};

template <class RowOp>
Outputs by_rows(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const SoftmaxRows rows, rows_of(context));
  ATTN_OPT_TRY(Tensor out, context.allocate_unset(x.type(), x.dims()));
  if (out.size() == 0) return single(std::move(out));
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* from = x.data<T>().data();
    T* to = out.mutable_data<T>().data();
    if constexpr (std::is_same_v<T, float> && std::is_same_v<RowOp, SoftmaxRow>) {
      if (rows.inner == 1) {
        for (int64_t o = 0; o < rows.outer; ++o) softmax(from + o * rows.count, rows.count, to + o * rows.count);
        return std::move(out);
      }
    }
    std::vector<Compute<T>> row(static_cast<size_t>(rows.count));
    for (int64_t o = 0; o < rows.outer; ++o) {
      for (int64_t i = 0; i < rows.inner; ++i) {
        const int64_t start = o * rows.count * rows.inner + i;
        for (size_t k = 0; k < row.size(); ++k) {
          row[k] = static_cast<Compute<T>>(from[start + static_cast<int64_t>(k) * rows.inner]);
        }
        RowOp()(row);
        for (size_t k = 0; k < row.size(); ++k) {
          to[start + static_cast<int64_t>(k) * rows.inner] = round_to<T>(row[k]);
        }
      }
    }
    return std::move(out);
  }));
}

}  // namespace

void register_softmax(KernelRegistry& registry) {
  registry.add("Softmax", 1, 13, by_rows<SoftmaxRow>);
  registry.add("LogSoftmax", 1, 13, by_rows<LogSoftmaxRow>);
  registry.add("Hardmax", 1, 13, by_rows<HardmaxRow>);
}

}  // namespace attn_opt
