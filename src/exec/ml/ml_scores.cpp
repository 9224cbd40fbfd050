#include "src/exec/ml/ml_scores.h"

#include <array>
#include <cmath>
#include <numbers>

#include "src/exec/layout/copy.h"

namespace attn_opt {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Winitzki's approximation, which the operators' results are defined by in practice.
double inverse_erf(double x) {
  constexpr double kA = 0.147;
  const double log = std::log((1 - x) * (1 + x));
  const double half = 2 / (std::numbers::pi * kA) + 0.5 * log;
  const double root = std::sqrt(std::sqrt(half * half - log / kA) - half);
  return x < 0 ? -root : root;
}

/// Elements that are 0 stay 0 where KEEPS_ZEROS is set.
void softmax(std::span<double> row, bool keeps_zeros) {
  constexpr double kZero = 1e-7;
  if (row.empty()) return;
  const double largest = *std::ranges::max_element(row);
  double sum = 0;
  for (double& value : row) {
    const bool is_zero = keeps_zeros && std::abs(value) <= kZero;
    value = is_zero ? value * std::exp(-largest) : std::exp(value - largest);
    sum += value;
  }
  for (double& value : row) value = sum != 0 ? value / sum : 0.5;
}

}  // namespace

Expected<PostTransform> read_post_transform(const KernelContext& context) {
  constexpr std::array kNames{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const auto* given = context.attribute("post_transform");
  if (given == nullptr) return PostTransform::kNone;
  if (given->type() == onnx::AttributeProto::INT) {
    if (given->i() >= 0 && given->i() < static_cast<int64_t>(kNames.size())) {
      return static_cast<PostTransform>(given->i());
    }
    return context.invalid("post_transform " + std::to_string(given->i()));
  }
  const auto found = std::ranges::find(kNames, given->s());
  if (found == kNames.end()) return context.invalid("post_transform " + given->s());
  return static_cast<PostTransform>(found - kNames.begin());
}

void transform_scores(PostTransform transform, std::span<double> row) {
  switch (transform) {
    case PostTransform::kNone: return;
    case PostTransform::kSoftmax: return softmax(row, false);
    case PostTransform::kSoftmaxZero: return softmax(row, true);
    case PostTransform::kLogistic:
      for (double& value : row) value = logistic(value);
      return;
    case PostTransform::kProbit:
      for (double& value : row) value = std::numbers::sqrt2 * inverse_erf(2 * value - 1);
      return;
  }
}

Expected<Tensor> read_labels(const KernelContext& context, const char* integers, const char* strings) {
  const auto numbers = context.attribute_ints(integers);
  const auto words = context.attribute_strings(strings);
  if (numbers.empty() == words.empty()) return context.invalid("class labels are not given once");
  if (!words.empty()) return Tensor::of<std::string>({static_cast<int64_t>(words.size())}, words);
  return Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, numbers);
}

void Classified::add(PostTransform transform, std::vector<double> row) {
  winners.push_back(std::ranges::max_element(row) - row.begin());
  transform_scores(transform, row);
  scores.insert(scores.end(), row.begin(), row.end());
}

void Classified::add_binary(PostTransform transform, double score, double complement, double threshold) {
  winners.push_back(score > threshold ? 1 : 0);
  std::array pair{complement, score};
  if (transform == PostTransform::kLogistic) pair = {logistic(-score), logistic(score)};
  scores.insert(scores.end(), pair.begin(), pair.end());
}

Outputs classes_and_scores(const KernelContext& context, const Tensor& labels, const Classified& classified) {
  ATTN_OPT_TRY(Tensor classes, slices_at(context, labels, 0, classified.winners));
  Tensor scores(onnx::TensorProto::FLOAT, {classes.size(), labels.size()});
  std::ranges::transform(classified.scores, scores.mutable_data<float>().begin(),
                         [](double score) { return static_cast<float>(score); });
  return std::vector<Tensor>{std::move(classes), std::move(scores)};
}

}  // namespace attn_opt
