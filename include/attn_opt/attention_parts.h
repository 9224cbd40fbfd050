// Attention told by its parts: what a pattern that is not one of attn-opt's own fills in.
//
//   AttentionParts parts;
//   parts.q = {q, "bhsd"};
//   parts.k = {k, "bhsd"};
//   parts.v = {v, "bhsd"};
//   parts.output = {y, "bs(hd)"};
//   parts.heads = 8;
//   parts.scale = 0.125;
//   parts.terms = {bias(mask)};
//   return match_of(parts, anchor, context);
//
// Axes are spelled with a letter for each: b batch, h heads, s rows (queries of Q and Y, keys of K and V), d features. Letters
// in brackets share an axis, the outer one first. What is not spelled has size 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// A value and what its axes are.
struct PartView {
  Value* value = nullptr;
  std::string axes = "bhsd";
};

/// Attention by its parts, each a value with the names of its axes; match_of() makes a Match of it.
struct AttentionParts {
  PartView q, k, v;
  PartView output;                  ///< the product of the probabilities with V, or a layout of it
  int64_t heads = 0, kv_heads = 0;  ///< where they share an axis; 0: as the axes say, kv_heads as heads
  std::optional<double> scale;      ///< of the scores Q K^T; none: 1 / sqrt(D)
  double softcap = 0;               ///< softcap * tanh(scores / softcap) before any term; 0: none
  std::vector<ScoreTerm> terms;     ///< innermost first, each of a shape that broadcasts to (B, H, L, S); frames are filled in
  bool is_causal = false;           ///< query i sees keys j <= i + length of the past
  Value* nonpad_kv_seqlen = nullptr;                 ///< int64 (B): keys from there on are masked
  Value *past_key = nullptr, *past_value = nullptr;  ///< (B, Hkv, P, D): K is past_key and then k along the rows
  /// What the model makes of both, if it does; without a past: outputs of the node that makes OUTPUT, which are K and V.
  Value *present_key = nullptr, *present_value = nullptr;
  DataType softmax_precision = onnx::TensorProto::UNDEFINED;  ///< type of the softmax if it is not that of Q
  bool guarded = false;              ///< probabilities of a row without a key are made 0 (else they are NaN)
  bool subtracts_maximum = true;     ///< false: the softmax takes exp() of the scores as they are
  std::vector<std::string> assumed;  ///< ids of preconditions (docs/verification.md) that the pattern takes for granted
  std::vector<std::string> peeled;   ///< what was recognised, for the report
};

/// Terms of the scores, as AttentionParts::terms takes them.
ScoreTerm bias(Value* value, double coefficient = 1);  ///< scores + coefficient * value
ScoreTerm keep(Value* mask, double fill);              ///< Where(mask, scores, fill); bool
ScoreTerm drop(Value* mask, double fill);              ///< Where(mask, fill, scores); bool

/// What is wrong with AXES, the spelling of a PartView; empty if nothing is.
std::string wrong_axes(const std::string& axes);

/// The match of PARTS at ANCHOR, operands and output walked through layout, scales, repeated heads and caches.
/// Misses: "parts.axes", "parts.rank", "parts.type", "parts.scale", "parts.order".
Matched<Match> match_of(const AttentionParts& parts, Node& anchor, MatchContext& context);

}  // namespace attn_opt
