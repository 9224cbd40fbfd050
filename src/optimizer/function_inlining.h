// Attention that lies in model-local functions, or across their calls, comes to light by inlining them; so does what reaches
// into or out of a branch that is taken in every run.
#pragma once

#include <optional>
#include <set>

#include "attn_opt/model.h"
#include "attn_opt/optimizer.h"
#include "src/rewrite/function_inliner.h"

namespace attn_opt {

/// The model as it was before its functions were inlined, and where its nodes are now.
struct Inlining {
  onnx::ModelProto before;
  InlinedCalls calls;
  std::optional<onnx::ModelProto> with_branches = {};  ///< what was read, where branches became functions of BEFORE
};

/// Makes MODEL what it was before INLINING.
void undo(Inlining& inlining, Model& model);

/// Inlines the functions NAMES of MODEL. Nothing, and MODEL is as it was, if a node would read something else by that.
std::optional<Inlining> inlined(Model& model, const std::set<FunctionName>& names);

/// Inlines those local functions of MODEL whose nodes some site that can be written covers, and the functions that call
/// them, and branches that are taken in every run where a site shows by that; all others stay, unless a site is lost. Nothing,
/// and MODEL is as it was, if there are none.
Expected<std::optional<Inlining>> inline_attention_functions(Model& model, const OptimizeOptions& options);

}  // namespace attn_opt
