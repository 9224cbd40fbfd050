// Attention as a description drawn at random, and a graph that spells it at random.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/trial/draw_inputs.h"
#include "tests/metamorphic/spelling.h"

namespace attn_opt {

/// How Q, K and V reach their product: an axis order of their own each, or all from one tensor.
enum class Layout { kBnsh, kBsnh, kBsd, kSequenceFirst, kStacked };
enum class ScalePlace { kNone, kQuery, kKey, kBoth, kScores, kDivided, kAfterMasks };
enum class SoftmaxSpelling { kSoftmax, kWrittenOut, kReciprocal, kExpOfLogSoftmax, kInFloat };
enum class OutputLayout { kProduct, kBsnh, kBsd };

struct DrawnMask {
  enum class Kind { kBias, kKeepBias, kKeepWhere, kDropWhere, kPadding, kCausal } kind = Kind::kBias;
  int axes = 0;     ///< which of the shapes that broadcast to the scores
  double fill = 0;  ///< of the masked keys
};

struct Description {
  DataType type = onnx::TensorProto::FLOAT;
  std::string batch, queries, keys;  ///< sizes: numbers or symbols; KEYS are the new ones behind a past
  int64_t heads = 1, kv_heads = 1, head_size = 4, value_size = 4;
  bool is_self = false;  ///< as many queries as keys, by name
  bool has_past = false;
  bool merged = false;  ///< products of (B * H, L, D)
  Layout q = Layout::kBnsh, k = Layout::kBnsh, v = Layout::kBnsh;
  double scale = 1;
  ScalePlace place = ScalePlace::kNone;
  double softcap = 0;
  std::vector<DrawnMask> masks;
  bool guarded = false;
  SoftmaxSpelling softmax = SoftmaxSpelling::kSoftmax;
  OutputLayout output = OutputLayout::kProduct;
  bool shows_probabilities = false;
};

Description drawn_description(Random& random);

struct DrawnModel {
  std::string text;  ///< in ONNX's textual syntax
  DrawOptions draw;  ///< sizes and fills with which every query keeps a key
};

DrawnModel spelled(const Description& description, Random& random);

}  // namespace attn_opt
