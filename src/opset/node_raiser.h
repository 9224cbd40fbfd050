// What becomes of one node when its opset is raised.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "src/opset/draft.h"
#include "src/opset/draft_comparison.h"
#include "src/opset/operator_changes.h"
#include "src/opset/raise_site.h"

namespace attn_opt {

class NodeRaiser {
 public:
  NodeRaiser(Facts& facts, int to, bool rows_keep_a_key) : facts_(facts), to_(to), rows_keep_a_key_(rows_keep_a_key) {}

  /// Null if a node is the same in the new opset; else its conversion, which was compared with it. The error
  /// is what is in the way.
  using Outcome = tl::expected<std::shared_ptr<const Draft>, std::string>;

  /// NODE is of opset FROM. Nodes that are alike share an outcome.
  Outcome raise(const Node& node, int from);
  OperatorChanges& changes() { return changes_; }

 private:
  struct Obstacle {
    std::string what;
    bool told_by_schema = false;  ///< and ONNX's converter may know what to do
  };
  struct Progress;

  Outcome convert(const RaiseSite& site, int from);
  static tl::expected<Progress, Obstacle> follow(const std::vector<SchemaStep>& steps, Draft& draft, const RaiseSite& site);
  tl::expected<Draft, Obstacle> draft_of(const onnx::NodeProto& canonical, int from, const RaiseSite& site);
  /// Why DRAFT cannot stand for CANONICAL; nothing if it can.
  std::optional<std::string> objection(const Draft& draft, bool by_onnx, const onnx::NodeProto& canonical, int from,
                                       const RaiseSite& site) const;

  Facts& facts_;
  int to_;
  bool rows_keep_a_key_;
  OperatorChanges changes_{to_};
  std::map<int, std::unordered_map<std::string, Outcome>> outcomes_;  ///< by opset and site_key()
};

}  // namespace attn_opt
