// TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml.
#include <array>

#include "src/exec/families.h"
#include "src/exec/ml/ml_forest.h"
#include "src/exec/ml/ml_scores.h"

namespace attn_opt {
namespace {

enum class Aggregate { kAverage, kSum, kMin, kMax };

/// Attribute aggregate_function, a name or, in TreeEnsemble, its number.
Expected<Aggregate> read_aggregate(const KernelContext& context) {
  constexpr std::array kNames{"AVERAGE", "SUM", "MIN", "MAX"};
  const auto* given = context.attribute("aggregate_function");
  if (given == nullptr) return Aggregate::kSum;
  const auto found = std::ranges::find(kNames, given->s());
  const int64_t number = given->type() == onnx::AttributeProto::INT ? given->i() : found - kNames.begin();
  if (number < 0 || number >= static_cast<int64_t>(kNames.size())) return context.invalid("aggregate_function");
  return static_cast<Aggregate>(number);
}

/// A batch of features and the forest that looks at them.
struct Ensemble {
  Forest forest;
  Tensor x;  ///< in double
  int64_t rows = 0, features = 0, targets = 0;
  std::vector<double> base_values;  ///< none, or one for each target

  std::span<const double> row(int64_t i) const {
    return x.data<double>().subspan(static_cast<size_t>(i * features), static_cast<size_t>(features));
  }
};

Expected<Ensemble> read_ensemble(const KernelContext& context, Expected<Forest> forest, int64_t targets) {
  Ensemble ensemble;
  ATTN_OPT_TRY(ensemble.forest, std::move(forest));
  const Tensor& x = context.input(0);
  if (x.rank() != 2) return context.invalid("input of shape " + print_dims(x.dims()));
  ensemble.rows = x.dims()[0];
  ensemble.features = x.dims()[1];
  ensemble.targets = targets;
  if (targets < 1) return context.invalid("there are no targets");
  ATTN_OPT_CHECK(check_forest(context, ensemble.forest, ensemble.features, targets));
  ATTN_OPT_CHECK(context.within_budget(x.size(), sizeof(double)));
  ATTN_OPT_TRY(ensemble.x, x.cast(onnx::TensorProto::DOUBLE));
  ATTN_OPT_TRY(ensemble.base_values, attribute_reals(context, "base_values"));
  return ensemble;
}

/// What the trees say of one row for each target; targets without a vote are 0.
Expected<std::vector<double>> aggregated(const KernelContext& context, const Ensemble& ensemble, Aggregate aggregate,
                                         int64_t row) {
  std::vector<double> scores(static_cast<size_t>(ensemble.targets), 0);
  std::vector<bool> voted(scores.size(), false);
  ATTN_OPT_CHECK(ensemble.forest.each_vote(context, ensemble.row(row), [&](int64_t target, double weight) {
    const auto at = static_cast<size_t>(target);
    double& score = scores[at];
    if (aggregate == Aggregate::kMin && voted[at])
      score = std::min(score, weight);
    else if (aggregate == Aggregate::kMax && voted[at])
      score = std::max(score, weight);
    else
      score += weight;
    voted[at] = true;
  }));
  if (aggregate == Aggregate::kAverage) {
    for (double& score : scores) score /= static_cast<double>(ensemble.forest.roots.size());
  }
  for (size_t i = 0; i < ensemble.base_values.size(); ++i) scores[i] += ensemble.base_values[i];
  return scores;
}

Outputs regress(const KernelContext& context, const Ensemble& ensemble, DataType type) {
  ATTN_OPT_TRY(const Aggregate aggregate, read_aggregate(context));
  ATTN_OPT_TRY(const PostTransform transform, read_post_transform(context));
  if (!ensemble.base_values.empty() && static_cast<int64_t>(ensemble.base_values.size()) != ensemble.targets) {
    return context.invalid("base_values are not one for each target");
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, {ensemble.rows, ensemble.targets}));
  auto to = out.mutable_data<double>().begin();
  for (int64_t row = 0; row < ensemble.rows; ++row) {
    ATTN_OPT_TRY(auto scores, aggregated(context, ensemble, aggregate, row));
    transform_scores(transform, scores);
    to = std::ranges::copy(scores, to).out;
  }
  return single(out.cast(type));
}

Outputs tree_ensemble(const KernelContext& context) {
  ATTN_OPT_TRY(const Ensemble ensemble, read_ensemble(context, read_forest(context), context.attribute_int("n_targets", 0)));
  return regress(context, ensemble, context.input(0).type());
}

Outputs tree_ensemble_regressor(const KernelContext& context) {
  ATTN_OPT_TRY(const Ensemble ensemble,
               read_ensemble(context, read_listed_forest(context, "target"), context.attribute_int("n_targets", 0)));
  return regress(context, ensemble, onnx::TensorProto::FLOAT);
}

/// Whether all votes go to the first class, and whether one of them is negative.
struct VoteSummary {
  bool first_only = true, any_negative = false;
};

VoteSummary summary_of(const Forest& forest) {
  VoteSummary summary;
  for (const TreeNode& node : forest.nodes) {
    for (const Vote& vote : node.votes) {
      summary.first_only = summary.first_only && vote.target == 0;
      summary.any_negative = summary.any_negative || vote.weight < 0;
    }
  }
  return summary;
}

/// Two classes of which only the first gets votes: they are the second's score, measured against 0, or
/// against 1/2 where no vote is negative.
Outputs classify_by_one_score(const KernelContext& context, const Ensemble& ensemble, const Tensor& labels,
                              PostTransform transform, bool any_negative) {
  if (ensemble.base_values.size() > 1 || transform == PostTransform::kProbit) {
    return context.unsupported("votes for one of two classes and base_values or this post_transform");
  }
  const double base = ensemble.base_values.empty() ? 0 : ensemble.base_values[0];
  Classified classified;
  for (int64_t row = 0; row < ensemble.rows; ++row) {
    double score = base;
    ATTN_OPT_CHECK(ensemble.forest.each_vote(context, ensemble.row(row), [&](int64_t, double weight) { score += weight; }));
    classified.add_binary(transform, score, any_negative ? -score : 1 - score, any_negative ? 0 : 0.5);
  }
  return classes_and_scores(context, labels, classified);
}

Outputs tree_ensemble_classifier(const KernelContext& context) {
  ATTN_OPT_TRY(const Tensor labels, read_labels(context, "classlabels_int64s", "classlabels_strings"));
  ATTN_OPT_TRY(const Ensemble ensemble, read_ensemble(context, read_listed_forest(context, "class"), labels.size()));
  ATTN_OPT_TRY(const PostTransform transform, read_post_transform(context));
  ATTN_OPT_CHECK(context.within_budget(ensemble.rows, 2 * sizeof(double) * static_cast<size_t>(labels.size())));
  const VoteSummary summary = summary_of(ensemble.forest);
  if (labels.size() == 1) return context.unsupported("one class");
  if (labels.size() == 2 && summary.first_only) {
    return classify_by_one_score(context, ensemble, labels, transform, summary.any_negative);
  }
  if (!ensemble.base_values.empty() && static_cast<int64_t>(ensemble.base_values.size()) != labels.size()) {
    return context.invalid("base_values are not one for each class");
  }
  Classified classified;
  for (int64_t row = 0; row < ensemble.rows; ++row) {
    ATTN_OPT_TRY(auto scores, aggregated(context, ensemble, Aggregate::kSum, row));
    classified.add(transform, std::move(scores));
  }
  return classes_and_scores(context, labels, classified);
}

}  // namespace

void register_ml_trees(KernelRegistry& registry) {
  registry.add("ai.onnx.ml::TreeEnsemble", 5, 5, tree_ensemble);
  registry.add("ai.onnx.ml::TreeEnsembleRegressor", 1, 3, tree_ensemble_regressor);
  registry.add("ai.onnx.ml::TreeEnsembleClassifier", 1, 3, tree_ensemble_classifier);
}

}  // namespace attn_opt
