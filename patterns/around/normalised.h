// Where normalisations (norm_form.h) begin and end, and what both operators take of them.
#pragma once

#include "attn_opt/rewrite.h"
#include "patterns/around/norm_form.h"

namespace attn_opt {

/// FORM, which NODE makes, with the cast behind it that undoes one in front, a weight and a bias as far as nothing else reads
/// what is in front of them; where there is no weight also the number of ones that stand for it. Miss: "norm.size".
Matched<RewriteMatch> norm_match(const NormForm& form, const Node& node, Facts& facts);

/// The weight of MATCH, or ones.
Value* weight_of(const RewriteMatch& match, GraphBuilder& build);

/// The attributes that both operators have.
GraphBuilder::Attributes norm_attributes(const RewriteMatch& match);

/// Nodes that make normalisations.
inline bool may_normalise(const Node& node) { return node.is("Mul") || node.is("Div") || node.is("Add") || node.is("Sub"); }

}  // namespace attn_opt
