// What becomes of one node when its opset is raised.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "src/opset/draft.h"
#include "src/opset/draft_comparison.h"
#include "src/opset/raise_site.h"
#include "src/opset/schema_steps.h"

namespace attn_opt {

class NodeRaiser {
 public:
  NodeRaiser(Facts& facts, int to) : facts_(facts), to_(to) {}

  /// Null if a node is the same in the new opset; else its conversion, which was compared with it. The error
  /// is what is in the way.
  using Outcome = tl::expected<std::shared_ptr<const Draft>, std::string>;

  /// NODE is of opset FROM. Nodes that are alike share an outcome.
  Outcome raise(const Node& node, int from);

  /// What stands in the way of a node that can only be left as it is; nothing if it is the same in the new
  /// opset.
  std::optional<std::string> change_of(const onnx::NodeProto& node, int from, const TypeLookup& type_of);

 private:
  struct Obstacle {
    std::string what;
    bool told_by_schema = false;  ///< and ONNX's converter may know what to do
  };
  struct Progress;

  Outcome convert(const RaiseSite& site, int from);
  bool never_changes(const std::string& op, int from);
  static tl::expected<Progress, Obstacle> follow(const std::vector<SchemaStep>& steps, Draft& draft, const RaiseSite& site);
  tl::expected<Draft, Obstacle> draft_of(const onnx::NodeProto& canonical, int from, const RaiseSite& site);
  /// Why DRAFT cannot stand for CANONICAL; nothing if it can.
  std::optional<std::string> objection(const Draft& draft, bool by_onnx, const onnx::NodeProto& canonical, int from,
                                       const RaiseSite& site) const;

  Facts& facts_;
  int to_;
  SchemaHistory history_;
  std::map<int, std::unordered_map<std::string, Outcome>> outcomes_;  ///< by opset and site_key()
  std::map<int, std::unordered_map<std::string, bool>> never_changes_;
};

}  // namespace attn_opt
