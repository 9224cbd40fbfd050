// What the linear and tree models of ai.onnx.ml make of their scores.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

/// Attribute post_transform, a name or, in TreeEnsemble, its number.
Expected<PostTransform> read_post_transform(const KernelContext& context);

/// Turns the scores of one row into what TRANSFORM says.
void transform_scores(PostTransform transform, std::span<double> row);

/// The attribute of class labels that there is: one of NAMES, of integers and strings.
Expected<Tensor> read_labels(const KernelContext& context, const char* integers, const char* strings);

/// Scores by row and the class that wins each.
struct Classified {
  std::vector<double> scores;
  std::vector<int64_t> winners;

  /// The class of the highest score, then the transformed scores.
  void add(PostTransform transform, std::vector<double> row);
  /// For a model of two classes with a score for the second alone, which wins beyond THRESHOLD: the first
  /// one's is COMPLEMENT. Of the transforms only LOGISTIC applies, to the score and its negative.
  void add_binary(PostTransform transform, double score, double complement, double threshold);
};

/// Labels of the winners, and scores in float.
Outputs classes_and_scores(const KernelContext& context, const Tensor& labels, const Classified& classified);

}  // namespace attn_opt
