// The part of a model around one attention, or one place of a rewrite, as a small model with nothing of the user's but
// operators and numbers.
#pragma once

#include <string>
#include <unordered_map>

#include "attn_opt/optimizer.h"

namespace attn_opt {

/// A model to be made smaller. Types are those of all its values, so that each can become an input.
struct CaseModel {
  onnx::ModelProto proto;
  std::unordered_map<std::string, onnx::TypeProto> types;
};

struct CutLimits {
  size_t nodes = 400;       ///< nearest the attention first
  int64_t constant = 64;    ///< elements of constants that are kept; larger ones become inputs
  size_t bytes = SIZE_MAX;  ///< of all constants together; those beyond it become inputs
};

/// Where a site stands.
struct SitePlace {
  const Node* anchor = nullptr;
  const ModelGraph* view = nullptr;
  Facts* facts = nullptr;
};

class CaseCutter {
 public:
  /// MODEL, which the cutter changes: functions with attention in them are inlined, as when it is optimised.
  static Expected<std::unique_ptr<CaseCutter>> create(Model model, const OptimizeOptions& options);

  /// The node of SITE, found by its name, in the graph that is cut; as long-lived as the cutter. Errors: kUnsupported (it is in
  /// a local function), kInvalidInput (no such node).
  Expected<SitePlace> place_of(const PlaceReport& site) const;

  /// What lies around SITE, whose anchor, and the node at which it stopped, are found by their names. Errors: those of
  /// place_of(), kUnsupported (a value of unknown type stands in the way).
  Expected<CaseModel> cut(const PlaceReport& site, const CutLimits& limits);

 private:
  CaseCutter(Model model) : model_(std::move(model)) {}
  const Node* find(const std::string& name, const std::string& op, const std::string& graph) const;

  Model model_;
  std::unique_ptr<ModelGraph> view_;
  std::unique_ptr<Facts> facts_;
};

/// Drops nodes and initializers that no output needs, and inputs that nothing reads.
void drop_unneeded(onnx::GraphProto& graph);

/// All names replaced by short ones that say the role: x1 inputs, c1 constants, v1 values, y1 outputs, d1 sizes.
void rename_all(onnx::ModelProto& model);

}  // namespace attn_opt
