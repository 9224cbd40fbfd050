// Cuts an edit's site out of the model: the nodes that it replaces and those that it writes, over the same inputs.
#pragma once

#include <optional>

#include "attn_opt/executor.h"
#include "attn_opt/internal/emit.h"
#include "attn_opt/internal/mask_contents.h"
#include "src/verify/cone.h"
#include "src/verify/read_nodes.h"

namespace attn_opt {

/// A value that a side reads, and what is known of its contents.
struct SiteInput {
  enum class Source {
    kDrawn,
    kFixed,      ///< FIXED: a constant of the model
    kIntegers,   ///< INTEGERS, once the sizes are chosen
    kUniform,    ///< UNIFORM in every element
    kShapeOnly,  ///< nothing but its shape is read
  };
  Value* value = nullptr;
  DataType type = onnx::TensorProto::UNDEFINED;
  Shape shape;
  Source source = Source::kDrawn;
  Tensor fixed;
  IntegerData integers;
  double uniform = 0;
  MaskContents extremes;        ///< which extreme values a floating one may hold
  const Value* twin = nullptr;  ///< of the inputs, which is drawn for this one too
};

struct CutSite {
  std::vector<SiteInput> inputs;  ///< of both sides
  Cone before, after;
  std::vector<Value*> replaced, written;  ///< outputs of the two sides that must agree, in the same order
  std::vector<Value*> probes;             ///< further outputs of the side before: what the judgement reads
  std::vector<Value*> probes_after;       ///< the same of the side after, for what the side before does not have
  std::vector<SiteInput> constants;       ///< that the judgement reads and neither side does
  std::vector<Value*> handed_over;        ///< probes that the side after takes as inputs
  std::vector<Value*> attention_inputs;   ///< what the written node is given, as of Emission
  const TargetRules* target = nullptr;    ///< whose rules what is written keeps

  /// True for a value that the side after makes.
  bool is_made_after(const Value& value) const;
};

struct CutContext {
  Facts& facts;
  const TensorStore& tensors;
  const ReadNodes& read;
  bool computes_masks = false;  ///< of what the side before alone reads of them, such as a guard of rows; else they are drawn
};

inline constexpr size_t kMaxSiteNodes = 4000;

/// Errors: kLimit (more than kMaxSiteNodes), kUnsupported (unknown rank or type of an input), kInvalidInput.
Expected<CutSite> cut_site(const Emission& emission, const Sdpa& sdpa, const CutContext& context);

}  // namespace attn_opt
