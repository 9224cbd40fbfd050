// Runs a draft and the node that it stands for on the same drawn inputs.
#pragma once

#include <string>

#include "src/opset/draft.h"
#include "src/opset/raise_site.h"

namespace attn_opt {

enum class Agreement {
  kEqual,
  kDifferent,
  kUnknown,  ///< there is nothing that both could be run on
};

struct Comparison {
  Agreement agreement = Agreement::kUnknown;
  std::string why;  ///< of kDifferent and kUnknown
};

/// ORIGINAL, of opset FROM, against DRAFT, of opset TO: results must be the same to the last bit. Inputs that
/// are constant stay so, others are drawn: symbolic sizes small, unknown ranks tried out, and large sizes
/// shrunk if the node allows it.
Comparison compare(const onnx::NodeProto& original, int from, const Draft& draft, int to, const RaiseSite& site);

}  // namespace attn_opt
