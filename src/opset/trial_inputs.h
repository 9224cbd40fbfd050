// Small inputs for one node, drawn from what is known of them.
#pragma once

#include <vector>

#include "src/opset/raise_site.h"

namespace attn_opt {

struct TrialChoice {
  int draw = 0;
  int unknown_rank = 0;  ///< of inputs whose rank is not known
  bool shrink = true;    ///< large sizes become small ones, equal ones the same
  bool alike = false;    ///< all sizes that are names are the same: an operator may run with no others
  bool fit = false;      ///< the axes that attributes speak of have a size that these allow
};

class TrialInputs {
 public:
  static constexpr int kDraws = 3;

  TrialInputs(const onnx::NodeProto& node, const RaiseSite& site);

  bool has_names() const { return symbols_.size() > 1; }
  bool has_unknown_rank() const { return has_unknown_rank_; }
  /// True if some attribute allows only certain sizes: axes that are squeezed, split or searched for their
  /// largest.
  bool has_fitting_sizes() const { return !fitting_sizes_.empty(); }
  /// One tensor for each input, without value for omitted ones. Errors: kUnsupported (a type that cannot be
  /// drawn), kLimit.
  Expected<std::vector<Tensor>> draw(const TrialChoice& choice) const;

 private:
  struct Input {
    bool given = false;
    DataType type = onnx::TensorProto::FLOAT;
    MaybeShape shape;
    const Tensor* constant = nullptr;
  };
  using Numbers = std::unordered_map<std::string, int64_t>;
  /// Small numbers for the symbols, in which sizes are positive where they can be.
  Numbers numbers_for(const TrialChoice& choice) const;
  Expected<Dims> dims_of(const Input& input, const Numbers& numbers, const TrialChoice& choice) const;
  void fit(Dims& dims) const;

  std::vector<Input> inputs_;
  std::vector<std::pair<int64_t, int64_t>> fitting_sizes_;  ///< axis of input 0, negative from the end, and its size
  std::unordered_map<std::string, size_t> symbols_;         ///< number of each symbol
  bool has_unknown_rank_ = false;
  bool resizes_ = false;  ///< input 1 and those behind it are regions, scales and sizes: some for each axis of input 0
};

}  // namespace attn_opt
