// Some nodes of a view and the tensors between them, as data to be drawn.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/report.h"

namespace attn_opt {

using TensorRoles = std::map<const Value*, std::string>;

/// Collects nodes, then describes them.
class GraphPart {
 public:
  explicit GraphPart(Facts& facts) : facts_(facts) {}

  void add(const Node& node) { nodes_.insert(&node); }
  /// The nodes that make ENDS, those that make what they read and so on up to values for which IS_LEAF holds, the nearest first
  /// and MOST at most. Constants and what says sizes are leaves.
  void add_above(const std::vector<const Value*>& ends, const std::function<bool(const Value&)>& is_leaf, size_t most);
  /// VALUE, which has no name in the model yet, will be that of FINAL.
  void call(const Value& value, const Value& final) { finals_[&value] = &final; }

  /// ENDS are among the tensors though no node reads them. Outputs of nodes that nothing here reads are left out. ROLES are
  /// those of tensors that come in or go out; INNER those of any.
  SiteGraph graph(const std::function<SiteGraph::Node::Role(const Node&)>& role, const TensorRoles& roles,
                  const std::vector<const Value*>& ends, const TensorRoles& inner = {});

 private:
  SiteGraph::Tensor tensor(const Value& value);
  std::vector<const Node*> in_order() const;

  Facts& facts_;
  std::set<const Node*> nodes_;
  std::map<const Value*, const Value*> finals_;
  bool is_cut_ = false;
};

/// The nodes on a shortest way from ONE to OTHER along tensors, in either direction, both left out; empty if there is none
/// near.
std::vector<const Node*> way_between(const Node& one, const Node& other, Facts& facts);

}  // namespace attn_opt
