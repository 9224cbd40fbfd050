// Branches of If that are taken in every run, as functions that the If calls: so they can be inlined as functions are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/model.h"

namespace attn_opt {

/// The domain of the functions that stand for branches.
inline constexpr const char* kBranchDomain = "attn_opt.branches";

/// A branch of node number NODE of the main graph.
struct TakenBranch {
  int node = 0;
  std::string attribute;                                          ///< that holds it
  std::string function;                                           ///< name of what stands for it
  std::vector<std::string> reads;                                 ///< values of the main graph
  std::vector<std::pair<std::string, std::string>> initializers;  ///< names in the body and, free there, in the main graph
};

/// The branches of VIEW, of the model of TENSORS, that can be functions and whose condition is known in PLAIN: the same without
/// calls, of which nothing is known where their bodies refer to attributes.
std::vector<TakenBranch> taken_branches(ModelGraph& view, ModelGraph& plain, const TensorStore& tensors);

/// MODEL, of whose view BRANCHES are, with calls in the place of their Ifs.
onnx::ModelProto with_calls_of(const std::vector<TakenBranch>& branches, const onnx::ModelProto& model);

}  // namespace attn_opt
