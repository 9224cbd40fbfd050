// LinearRegressor and LinearClassifier of ai.onnx.ml.
#include "src/exec/families.h"
#include "src/exec/ml/ml_scores.h"

namespace attn_opt {
namespace {

/// Rows of features and, for each of TARGETS, coefficients and an intercept.
struct LinearModel {
  Tensor x;  ///< in double
  int64_t rows = 1, features = 0, targets = 1;
  std::vector<float> coefficients, intercepts;

  std::vector<double> scores(int64_t row) const {
    const auto width = static_cast<size_t>(features);
    const auto in = x.data<double>().subspan(static_cast<size_t>(row) * width, width);
    std::vector<double> result(intercepts.begin(), intercepts.end());
    result.resize(static_cast<size_t>(targets), 0);
    for (size_t target = 0; target < result.size(); ++target) {
      for (size_t i = 0; i < width; ++i) result[target] += in[i] * coefficients[target * width + i];
    }
    return result;
  }
};

/// TARGETS: -1 for as many as there are coefficients for.
Expected<LinearModel> read_model(const KernelContext& context, int64_t targets) {
  LinearModel model;
  const Tensor& x = context.input(0);
  if (x.rank() < 1 || x.rank() > 2) return context.invalid("input of shape " + print_dims(x.dims()));
  if (x.rank() == 2) model.rows = x.dims()[0];
  model.features = x.dims().back();
  model.coefficients = context.attribute_floats("coefficients");
  model.intercepts = context.attribute_floats("intercepts");
  const auto coefficients = static_cast<int64_t>(model.coefficients.size());
  if (targets < 0) targets = model.features == 0 ? 0 : coefficients / model.features;
  model.targets = targets;
  if (targets < 1 || targets > coefficients || targets * model.features != coefficients) {
    return context.invalid("coefficients do not fit targets and features");
  }
  if (!model.intercepts.empty() && static_cast<int64_t>(model.intercepts.size()) != targets) {
    return context.invalid("intercepts are not one for each target");
  }
  ATTN_OPT_CHECK(context.within_budget(x.size(), sizeof(double)));
  ATTN_OPT_TRY(model.x, x.cast(onnx::TensorProto::DOUBLE));
  return model;
}

Outputs linear_regressor(const KernelContext& context) {
  ATTN_OPT_TRY(const LinearModel model, read_model(context, std::max<int64_t>(0, context.attribute_int("targets", 1))));
  ATTN_OPT_TRY(const PostTransform transform, read_post_transform(context));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::FLOAT, {model.rows, model.targets}));
  auto to = out.mutable_data<float>().begin();
  for (int64_t row = 0; row < model.rows; ++row) {
    auto scores = model.scores(row);
    transform_scores(transform, scores);
    to = std::ranges::transform(scores, to, [](double score) { return static_cast<float>(score); }).out;
  }
  return single(std::move(out));
}

Outputs linear_classifier(const KernelContext& context) {
  ATTN_OPT_TRY(const LinearModel model, read_model(context, -1));
  ATTN_OPT_TRY(const PostTransform transform, read_post_transform(context));
  ATTN_OPT_TRY(const Tensor labels, read_labels(context, "classlabels_ints", "classlabels_strings"));
  const bool is_binary = model.targets == 1 && labels.size() == 2;
  if (!is_binary && labels.size() != model.targets) return context.invalid("coefficients do not fit the class labels");
  if (model.targets == 1 && (!is_binary || transform == PostTransform::kProbit)) {
    return context.unsupported("one score and these labels or this post_transform");
  }
  ATTN_OPT_CHECK(context.within_budget(model.rows, 2 * sizeof(double) * static_cast<size_t>(labels.size())));
  Classified classified;
  for (int64_t row = 0; row < model.rows; ++row) {
    auto scores = model.scores(row);
    if (is_binary)
      classified.add_binary(transform, scores[0], 1 - scores[0], 0);
    else
      classified.add(transform, std::move(scores));
  }
  return classes_and_scores(context, labels, classified);
}

}  // namespace

void register_ml_linear(KernelRegistry& registry) {
  registry.add("ai.onnx.ml::LinearRegressor", 1, 1, linear_regressor);
  registry.add("ai.onnx.ml::LinearClassifier", 1, 1, linear_classifier);
}

}  // namespace attn_opt
