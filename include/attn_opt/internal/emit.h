// Back end: writes an Sdpa as an ONNX Attention node (opset 24) and what must stand around it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/emit_options.h"
#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"

namespace attn_opt {

/// What was written for a match, not yet committed.
struct Emission {
  Edit edit;
  std::string form = {};  ///< "3d" or "4d"
  int64_t kv_group = 1;   ///< query heads per key/value head
  bool has_past = false;  ///< the node takes past_key and past_value
  Node* attention = nullptr;
  double scale = 1;                              ///< of the scores, in double; the node's attribute holds it rounded to float
  std::vector<Precondition> preconditions = {};  ///< the match's, and those the written form adds
  Shape scores = {};                             ///< (B, H, L, S)
  std::vector<Node*> removed = {};               ///< nodes that the edit leaves dead
  bool is_causal = false;                        ///< the node's attribute
  const TargetRules* target = &rules_of(Target::kPortable);  ///< what was written keeps its rules
  std::string mask_reading = {};      ///< which masks is_causal says, and why not the others; empty if there are none
  std::vector<Value*> computed = {};  ///< are not drawn: verification computes them as the model does
  std::vector<std::pair<Dim, Dim>> equal_sizes = {};  ///< sizes that broadcast against numbers: verified where they are those
  /// Of a node whose inputs are others: Q, K, V, mask, past_key, past_value and lengths as it is given them; null: omitted.
  std::vector<Value*> attention_inputs = {};

  /// False for a call of a local function as well, which has no node of attention.
  bool writes(const char* op) const { return attention && attention->is(op); }
  /// Q, K, V, mask, past_key, past_value and lengths, in this order and as far as there are any; null: omitted.
  std::vector<Value*> given() const {
    const bool are_its_own = writes("Attention");
    return are_its_own ? std::vector<Value*>(attention->inputs.begin(), attention->inputs.end()) : attention_inputs;
  }
};

/// Plans the nodes for MATCH. Misses: "target.dtype", "stage.*" (what a local function cannot say), "emit.*" when the form
/// asked for, or any, cannot be written.
Matched<Emission> emit_attention(const Match& match, MatchContext& context, const SharedNodes& shared,
                                 const EmitOptions& options);

}  // namespace attn_opt
