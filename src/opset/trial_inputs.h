// Small inputs for one node, drawn from what is known of them.
#pragma once

#include <vector>

#include "src/opset/raise_site.h"

namespace attn_opt {

struct TrialChoice {
  int draw = 0;
  int unknown_rank = 0;  ///< of inputs whose rank is not known
  bool shrink = true;    ///< large sizes become small ones, equal ones the same
};

class TrialInputs {
 public:
  static constexpr int kDraws = 3;

  TrialInputs(const onnx::NodeProto& node, const RaiseSite& site);

  bool has_unknown_rank() const { return has_unknown_rank_; }
  /// One tensor for each input, without value for omitted ones. Errors: kUnsupported (a type that cannot be
  /// drawn), kLimit.
  Expected<std::vector<Tensor>> draw(const TrialChoice& choice) const;
  /// What the drawn inputs depend on; symbols by the order in which they come.
  std::string text() const;

 private:
  struct Input {
    bool given = false;
    DataType type = onnx::TensorProto::FLOAT;
    const Shape* shape = nullptr;
    const Tensor* constant = nullptr;
  };
  Expected<Dims> dims_of(const Input& input, const TrialChoice& choice) const;

  std::vector<Input> inputs_;
  std::unordered_map<std::string, size_t> symbols_;  ///< number of each symbol
  bool has_unknown_rank_ = false;
};

}  // namespace attn_opt
