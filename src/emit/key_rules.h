// What an Attention node says by itself of the keys that a query sees, and which masks that says.
//
// Query i stands at key i + P behind a past of P keys, at i + n[b] - L where n are lengths (nonpad_kv_seqlen), else at i.
//   is_causal             keys up to where it stands
//   nonpad_kv_seqlen      keys j < n[b]
//   left_window_size, right_window_size     keys within so many of where it stands (opset 25)
#pragma once

#include "src/emit/plan.h"
#include "src/emit/site.h"

namespace attn_opt {

/// LIST[b] + ADDED, LIST having one element for each of the batch, or for all.
struct KeyLengths {
  Value* list = nullptr;
  Dim added;
  bool is_of_mask = false;  ///< what a mask compares keys with may lie outside 0 to S, the input may not
};

struct KeyRules {
  bool is_causal = false;
  std::optional<KeyLengths> lengths;
  std::optional<int64_t> left_window, right_window;

  bool is_bound() const { return is_causal || left_window || right_window; }
};

class KeyRuleReader {
 public:
  /// Rules that the description has already, and may be added to.
  KeyRuleReader(const WritingPlan& plan, Site& site);

  /// Takes the lengths that MASK hangs on for the node's if they can be.
  void offer_lengths(const ScoreTerm& mask);
  /// Why the node cannot say MASK, which its positions tell; empty if it can, and does from now on.
  std::string say(const ScoreTerm& mask);
  /// Keys of its own and of all before: query i sees key i + P at least if the rules say no more than MASK.
  bool keeps_own_key(const CausalMask& mask) const;

  const KeyRules& rules() const { return rules_; }

 private:
  std::string check_frame(const ScoreTerm& mask) const;
  std::string say_bounds(const CausalMask& mask, KeyRules& rules) const;
  /// Where query 0 stands, counted from the lengths if there are some.
  Dim stand() const;

  const WritingPlan& plan_;
  Site& site_;
  KeyRules rules_;
};

/// "keeps key j of query i if j <= i".
std::string text_of(const CausalMask& mask);

/// LENGTHS as nonpad_kv_seqlen: int64 (B), those of a mask within what the target takes. Miss "emit.shape".
Matched<Value*> write_lengths(const KeyLengths& lengths, Site& site);

}  // namespace attn_opt
