// What the parts of the back end share while they write one site.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/pattern.h"
#include "attn_opt/target.h"
#include "src/emit/sizes.h"

namespace attn_opt {

/// A value that new nodes read, and its shape.
struct Placed {
  Value* value = nullptr;
  Shape shape;
};

/// What the operator that is written says of keys by itself (key_rules.h).
struct KeySayings {
  bool lengths = false;
  bool counts_from_lengths = false;  ///< queries stand where lengths have them
  bool left_window = false, right_window = false;
  bool causal_of_other_rows = false;  ///< is_causal where new keys are not as many as queries
  bool causal = true;
  bool hides_later_keys = true;  ///< is_causal masks them whatever else does; else by a number that others may undercut
};

/// One axis of a batch of several: what it comes to in each run, and what it is called where not all operands are joined yet.
struct BatchAxis {
  Dim joint;
  std::vector<Dim> names;
};

struct Site {
  /// An axis of the scores.
  enum Axis : size_t { kBatch, kHeads, kQueries, kKeys };

  const Match& match;
  const Sdpa& sdpa;
  Facts& facts;
  const TargetRules& target;
  GraphBuilder build;
  SizeSource sizes;
  Shape scores;                       ///< (B, Hq, L, S)
  std::vector<Precondition> assumed;  ///< what the written form adds
  std::vector<std::pair<Dim, Dim>> equal_sizes = {};
  KeySayings says = {};
  /// A batch of several axes whose sizes broadcast (joint_batch.h).
  std::vector<BatchAxis> batch = {};
  bool guards_nan = false;  ///< Y is made 0 where it is NaN (nan_rows.h): masks are added

  /// ONE is OTHER, of WHAT.
  void assume_equal(const Dim& one, const Dim& other, const std::string& what) {
    equal_sizes.emplace_back(one, other);
    for (const Precondition& known : assumed)
      if (known.detail == what) return;
    assumed.push_back({std::string(kSizesEqual), false, what});
  }
  /// True if the match lists the precondition ID.
  bool match_lists(std::string_view id) const {
    return std::ranges::any_of(sdpa.preconditions, [&](const Precondition& known) { return known.id == id; });
  }
  /// True if the scores are read as the masks leave them.
  bool shows_masked_scores() const {
    constexpr int kAfterMasks = 2;
    return sdpa.scores_output && sdpa.scores_output_mode == kAfterMasks;
  }
  /// SHAPE, which VALUE is expanded to. Miss "emit.shape": no value at hand has such a size.
  Matched<Value*> sizes_of(const Shape& shape, const Value& value) {
    if (Value* made = sizes.sizes(shape)) return made;
    return missed("emit.shape", value.producer, "no value at hand has a size of " + to_string(shape));
  }
  /// VALUE in the type of the attention.
  Value* cast(Value& value) {
    const DataType type = facts.type(value);
    if (type == sdpa.type || type == onnx::TensorProto::UNDEFINED) return &value;
    return build.node("Cast", {&value}, {GraphBuilder::attribute("to", int64_t{sdpa.type})});
  }
};

/// True unless ONE and OTHER are two different numbers.
inline bool may_be_equal(const Dim& one, const Dim& other) {
  return !one.is_constant() || !other.is_constant() || one == other;
}

}  // namespace attn_opt
