// Operators of ai.onnx.ml that select, scale and replace features.
#include <cmath>
#include <numeric>

#include "src/exec/elementwise/elementwise.h"
#include "src/exec/families.h"
#include "src/exec/layout/copy.h"

namespace attn_opt {
namespace {

using FeatureTypes = TypeList<float, double, int32_t, int64_t>;

Outputs array_feature_extractor(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.rank() == 0) return context.invalid("data is a scalar");
  ATTN_OPT_TRY(const auto indices, context.integers(context.input(1)));
  for (const int64_t index : indices) {
    if (index >= 0 && index < x.dims().back()) continue;
    return context.invalid("index " + std::to_string(index) + " is out of range for an axis of " +
                           std::to_string(x.dims().back()));
  }
  ATTN_OPT_TRY(const Tensor selected, slices_at(context, x, x.rank() - 1, indices));
  return single(x.rank() == 1 ? selected.reshaped({1, selected.size()}) : selected);
}

Outputs binarizer(const KernelContext& context) {
  const float threshold = context.attribute_float("threshold", 0);
  return map_elements<FeatureTypes>(context,
                                    [=](auto x) { return static_cast<double>(x) > static_cast<double>(threshold) ? 1 : 0; });
}

/// FEATURES of shape [N, C], a vector being one row, with WIDTH columns: cut, or filled up with zeros.
Expected<Tensor> with_columns(const KernelContext& context, const Tensor& features, int64_t width) {
  const int64_t columns = features.dims().back();
  AxisMap taken(static_cast<size_t>(width), -1);
  std::iota(taken.begin(), taken.begin() + std::min(width, columns), 0);
  AxisMap rows(static_cast<size_t>(features.dims()[0]));
  std::iota(rows.begin(), rows.end(), 0);
  return gathered(context, features, {rows, taken}, Tensor::scalar<float>(0));
}

Outputs feature_vectorizer(const KernelContext& context) {
  const auto widths = context.attribute_ints("inputdimensions");
  if (!widths.empty() && widths.size() != context.inputs.size()) {
    return context.invalid("inputdimensions are not one for each input");
  }
  std::vector<Tensor> parts;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    ATTN_OPT_TRY(Tensor part, context.input(i).cast(onnx::TensorProto::FLOAT));
    if (part.rank() == 1) part = part.reshaped({1, part.size()});
    if (part.rank() != 2) return context.invalid("input of shape " + print_dims(part.dims()));
    const int64_t width = widths.empty() ? part.dims()[1] : widths[i];
    ATTN_OPT_CHECK(context.within_budget(width, sizeof(int64_t)));
    ATTN_OPT_CHECK(context.within_budget(part.dims()[0], sizeof(int64_t)));
    ATTN_OPT_TRY(part, with_columns(context, part, width));
    parts.push_back(std::move(part));
  }
  return single(concatenated(context, parts, 1));
}

template <class T>
Outputs imputed(const KernelContext& context, const std::vector<T>& values, T replaced) {
  const Tensor& x = context.input(0);
  const auto features = static_cast<size_t>(x.rank() == 0 ? 1 : x.dims().back());
  if (values.empty() || (values.size() != 1 && values.size() != features)) {
    return context.invalid("imputed values are neither one nor one for each feature");
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  return single(dispatch(context, x.type(), FeatureTypes{}, [&]<class E>() -> Expected<Tensor> {
    for (size_t i = 0; i < x.data<E>().size(); ++i) {
      const E value = x.data<E>()[i];
      const bool missing = value == static_cast<E>(replaced) || (value != value && replaced != replaced);
      out.mutable_data<E>()[i] = missing ? static_cast<E>(values[values.size() == 1 ? 0 : i % features]) : value;
    }
    return std::move(out);
  }));
}

Outputs imputer(const KernelContext& context) {
  if (is_floating(context.input(0).type())) {
    return imputed<float>(context, context.attribute_floats("imputed_value_floats"),
                          context.attribute_float("replaced_value_float", 0));
  }
  return imputed<int64_t>(context, context.attribute_ints("imputed_value_int64s"),
                          context.attribute_int("replaced_value_int64", 0));
}

/// X, of shape [C] or [N, C], in double.
Expected<Tensor> rows_of(const KernelContext& context, const Tensor& x) {
  if (x.rank() < 1 || x.rank() > 2) return context.invalid("input of shape " + print_dims(x.dims()));
  ATTN_OPT_CHECK(context.within_budget(x.size(), 2 * sizeof(double)));
  return x.cast(onnx::TensorProto::DOUBLE);
}

Outputs scaler(const KernelContext& context) {
  ATTN_OPT_TRY(const Tensor x, rows_of(context, context.input(0)));
  auto offset = context.attribute_floats("offset");
  auto scale = context.attribute_floats("scale");
  if (offset.empty()) offset = {0};
  if (scale.empty()) scale = {1};
  const auto features = static_cast<size_t>(x.dims().back());
  for (const auto* factors : {&offset, &scale}) {
    if (factors->size() == 1 || factors->size() == features) continue;
    return context.invalid("offset or scale is neither one nor one for each feature");
  }
  const auto factor = [&](const std::vector<float>& factors, size_t i) -> double {
    return factors[factors.size() == 1 ? 0 : i % features];
  };
  Tensor out(onnx::TensorProto::FLOAT, x.dims());
  for (size_t i = 0; i < x.data<double>().size(); ++i) {
    out.mutable_data<float>()[i] = static_cast<float>((x.data<double>()[i] - factor(offset, i)) * factor(scale, i));
  }
  return single(std::move(out));
}

/// What ROW is divided by; L1 sums absolute values, L2 keeps signs, and MAX takes the largest value as it is.
Expected<double> norm_of(const KernelContext& context, std::span<const double> row) {
  const std::string norm = context.attribute_string("norm", "MAX");
  if (norm == "MAX") return *std::ranges::max_element(row);
  double sum = 0;
  for (const double value : row) sum += norm == "L1" ? std::abs(value) : value * value;
  if (norm == "L1") return sum;
  if (norm == "L2") return std::sqrt(sum);
  return context.invalid("norm " + norm + " is not MAX, L1 or L2");
}

Outputs normalizer(const KernelContext& context) {
  ATTN_OPT_TRY(const Tensor x, rows_of(context, context.input(0)));
  Tensor out(onnx::TensorProto::FLOAT, x.dims());
  const auto features = static_cast<size_t>(x.dims().back());
  const auto values = x.data<double>();
  for (size_t start = 0; start < values.size(); start += features) {
    const auto row = values.subspan(start, features);
    ATTN_OPT_TRY(const double norm, norm_of(context, row));
    std::ranges::transform(row, out.mutable_data<float>().begin() + static_cast<int64_t>(start),
                           [=](double value) { return static_cast<float>(norm == 0 ? value : value / norm); });
  }
  return single(std::move(out));
}

}  // namespace

void register_ml_features(KernelRegistry& registry) {
  registry.add("ai.onnx.ml::ArrayFeatureExtractor", 1, 1, array_feature_extractor);
  registry.add("ai.onnx.ml::Binarizer", 1, 1, binarizer);
  registry.add("ai.onnx.ml::FeatureVectorizer", 1, 1, feature_vectorizer);
  registry.add("ai.onnx.ml::Imputer", 1, 1, imputer);
  registry.add("ai.onnx.ml::Scaler", 1, 1, scaler);
  registry.add("ai.onnx.ml::Normalizer", 1, 1, normalizer);
}

}  // namespace attn_opt
