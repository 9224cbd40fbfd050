#include <set>
#include <unordered_set>

#include "attn_opt/internal/model_walk.h"
#include "attn_opt/internal/opset_raise.h"
#include "src/graph/operator_name.h"
#include "src/opset/draft_writer.h"
#include "src/opset/model_versions.h"
#include "src/opset/node_raiser.h"

namespace attn_opt {

struct PlannedNode {
  Node* node;
  std::shared_ptr<const Draft> draft;
};

namespace {

constexpr const char* kMissId = "opset.raise";

std::string headed(const onnx::NodeProto& node, int from, int to, const std::string& what) {
  return node.op_type() + " of opset " + std::to_string(from) + " at opset " + std::to_string(to) + ": " + what;
}

}  // namespace

struct RaisePlan::Impl {
  int opset = 0;
  std::vector<PlannedNode> nodes;
};

namespace {

/// Plans node by node; stops at the first obstacle.
class Planner {
 public:
  Planner(ModelGraph& view, Facts& facts, int opset, bool rows_keep_a_key)
      : view_(view), opset_(opset), raiser_(facts, opset, rows_keep_a_key) {
    for (const auto& function : view.proto().functions()) {
      if (is_onnx(function.domain())) own_operators_.insert(function.name());
    }
  }

  Matched<std::vector<PlannedNode>> plan() {
    for (const auto& graph : view_.graphs()) {
      if (auto miss = plan_graph(*graph)) return tl::unexpected<Miss>(*std::move(miss));
    }
    if (auto miss = look_at_training()) return tl::unexpected<Miss>(*std::move(miss));
    return std::move(planned_);
  }

 private:
  std::optional<Miss> plan_graph(const Graph& graph) {
    const int from = view_.opset(graph);
    if (from >= opset_) return std::nullopt;
    for (Node* node : graph.nodes()) {
      if (node->removed || !is_of_onnx(*node->proto)) continue;
      auto draft = raiser_.raise(*node, from);
      if (!draft) return Miss{kMissId, node, headed(*node->proto, from, opset_, draft.error()), {}};
      if (*draft) planned_.push_back({node, *std::move(draft)});
    }
    return std::nullopt;
  }

  /// Graphs of training are no graphs of the view, but their nodes are of the model's opset too.
  std::optional<Miss> look_at_training() {
    const int from = opset_version(view_.proto());
    if (view_.proto().training_info().empty() || from >= opset_) return std::nullopt;
    std::unordered_set<const onnx::NodeProto*> planned;
    for (const auto& graph : view_.graphs()) {
      for (const Node* node : graph->nodes()) planned.insert(node->proto);
    }
    std::optional<Miss> miss;
    for_each_node(std::as_const(view_.proto()), [&](const onnx::NodeProto& node) {
      if (miss || planned.contains(&node) || !is_of_onnx(node)) return;
      const auto change = raiser_.changes().of_node(node, from);
      if (change) miss = Miss{kMissId, nullptr, headed(node, from, opset_, "in a graph of training, " + *change), {}};
    });
    return miss;
  }

  bool is_of_onnx(const onnx::NodeProto& node) const {
    return is_onnx(node.domain()) && !own_operators_.contains(node.op_type());
  }

  ModelGraph& view_;
  int opset_;
  NodeRaiser raiser_;
  std::set<std::string> own_operators_;  ///< of functions of the model that are in the domain of ONNX
  std::vector<PlannedNode> planned_;
};

}  // namespace

RaisePlan::RaisePlan() : impl_(std::make_unique<Impl>()) {}
RaisePlan::RaisePlan(RaisePlan&&) noexcept = default;
RaisePlan& RaisePlan::operator=(RaisePlan&&) noexcept = default;
RaisePlan::~RaisePlan() = default;

int RaisePlan::converted() const { return static_cast<int>(impl_->nodes.size()); }

void RaisePlan::apply(ModelGraph& view) {
  DraftWriter writer(view);
  for (PlannedNode& planned : impl_->nodes) {
    if (!planned.node->removed) writer.write(*planned.node, *planned.draft);
  }
  set_versions(view, impl_->opset);
}

Matched<RaisePlan> plan_raise(ModelGraph& view, Facts& facts, int opset, bool rows_keep_a_key) {
  RaisePlan plan;
  plan.impl_->opset = opset;
  ATTN_OPT_MATCH(plan.impl_->nodes, Planner(view, facts, opset, rows_keep_a_key).plan());
  return plan;
}

}  // namespace attn_opt
