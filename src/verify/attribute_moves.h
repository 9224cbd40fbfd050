// How far the rounding of float attributes may move what a model computes.
#pragma once

#include <deque>

#include "attn_opt/executor.h"

namespace attn_opt {

/// A rewrite that moves a number of the model into an attribute rounds it to a float, and where a sum cancels those 24 bits
/// are all there is: `alpha` of HardSigmoid is 1/6 to 3e-8 only. What such a rewrite makes is right if it is exact for
/// attributes that lie within a unit in the last place of its own.
class AttributeMoves {
 public:
  /// Of all nodes of MODEL but Constant, whose numbers are the model's. None if more than kMostAttributes of them are floats.
  /// TENSORS must outlive what is made.
  static Expected<AttributeMoves> create(const onnx::ModelProto& model, const TensorStore& tensors,
                                         const ExecutorOptions& options);

  /// For each of RESULTS, which the model makes of FEEDS, a tensor of doubles: by how much each element moves if one attribute
  /// moves by a unit in the last place, summed over the attributes. Without value where nothing floating moves.
  std::vector<Tensor> of(const Feeds& feeds, const std::vector<Tensor>& results) const;

 private:
  static constexpr size_t kMostAttributes = 16;
  std::deque<onnx::ModelProto> models_;  ///< each with another attribute moved
  std::vector<Executor> executors_;
};

}  // namespace attn_opt
