// The part of a graph that a rule for one attention spells: from the product of Q and K to the product with V.
#pragma once

#include <vector>

#include "attn_opt/facts.h"

namespace attn_opt {

struct RulePart {
  std::vector<const Node*> nodes;  ///< each behind those it reads; those that change nothing are left out, as rules want it
  const Node* anchor = nullptr;
  const Node* product = nullptr;  ///< of Q and K; null: none was found, and all that ANCHOR is made of nearby is in NODES
  const Node* last = nullptr;     ///< the product with V; ANCHOR, if that is a whole attention or no product was found
};

/// True for MatMul, Gemm, Einsum and what is made of them ("com.microsoft::FusedMatMul").
bool is_matrix_product(const Node& node);

/// True for what is made of initializers and constants alone.
bool is_fixed(const Value& value, Facts& facts);

/// The part around ANCHOR. Errors: kUnsupported (it leads through a body or has more nodes than a rule may have).
Expected<RulePart> rule_part(const Node& anchor, Facts& facts);

}  // namespace attn_opt
