#include "src/exec/ml/ml_forest.h"

#include <array>
#include <cmath>
#include <map>

namespace attn_opt {
namespace {

bool holds(const TreeNode& node, double x) {
  if (std::isnan(x)) return node.nan_is_true;
  switch (node.branch) {
    case Branch::kLess: return x < node.threshold;
    case Branch::kLessOrEqual: return x <= node.threshold;
    case Branch::kGreater: return x > node.threshold;
    case Branch::kGreaterOrEqual: return x >= node.threshold;
    case Branch::kEqual: return x == node.threshold;
    case Branch::kNotEqual: return x != node.threshold;
    case Branch::kMember: return node.members.contains(x);
    case Branch::kLeaf: break;
  }
  return false;
}

Expected<std::vector<double>> tensor_reals(const KernelContext& context, const onnx::AttributeProto* attribute) {
  if (attribute == nullptr) return std::vector<double>();
  ATTN_OPT_TRY(const Tensor tensor, to_tensor(attribute->t(), context.tensors));
  return context.reals(tensor);
}

Expected<Branch> branch_named(const KernelContext& context, const std::string& name) {
  static const std::map<std::string, Branch> kBranches{{"BRANCH_LEQ", Branch::kLessOrEqual},
                                                       {"BRANCH_LT", Branch::kLess},
                                                       {"BRANCH_GTE", Branch::kGreaterOrEqual},
                                                       {"BRANCH_GT", Branch::kGreater},
                                                       {"BRANCH_EQ", Branch::kEqual},
                                                       {"BRANCH_NEQ", Branch::kNotEqual},
                                                       {"LEAF", Branch::kLeaf}};
  const auto found = kBranches.find(name);
  if (found == kBranches.end()) return context.invalid("nodes_modes: " + name);
  return found->second;
}

/// One integer of the attribute at hand for each node; those of an attribute that may be left out are 0.
class NodeColumns {
 public:
  NodeColumns(const KernelContext& context, size_t nodes) : context_(context), nodes_(nodes) {}

  Expected<std::vector<int64_t>> operator()(const char* name, bool may_be_absent = false) const {
    auto values = context_.attribute_ints(name);
    if (values.empty() && may_be_absent) values.assign(nodes_, 0);
    if (values.size() != nodes_) return context_.invalid(std::string(name) + " are not one for each node");
    return values;
  }

 private:
  const KernelContext& context_;
  size_t nodes_;
};

/// Features, thresholds, children by the ids that the attributes give, and where NaN goes.
Status read_columns(const KernelContext& context, const std::vector<double>& thresholds, std::span<TreeNode> nodes) {
  const NodeColumns column(context, nodes.size());
  ATTN_OPT_TRY(const auto features, column("nodes_featureids"));
  ATTN_OPT_TRY(const auto when_true, column("nodes_truenodeids"));
  ATTN_OPT_TRY(const auto when_false, column("nodes_falsenodeids"));
  ATTN_OPT_TRY(const auto nan_is_true, column("nodes_missing_value_tracks_true", true));
  if (thresholds.size() != nodes.size()) return context.invalid("thresholds are not one for each node");
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].feature = features[i];
    nodes[i].threshold = thresholds[i];
    nodes[i].when_true = when_true[i];
    nodes[i].when_false = when_false[i];
    nodes[i].nan_is_true = nan_is_true[i] != 0;
  }
  return {};
}

/// Tree and node id, as the attributes of older ensembles name a node.
using NodeId = std::pair<int64_t, int64_t>;

Status read_votes(const KernelContext& context, const std::string& votes, const std::map<NodeId, int64_t>& places,
                  Forest& forest) {
  const auto trees = context.attribute_ints(votes + "_treeids");
  const auto nodes = context.attribute_ints(votes + "_nodeids");
  const auto targets = context.attribute_ints(votes + "_ids");
  ATTN_OPT_TRY(const auto weights, attribute_reals(context, votes + "_weights"));
  if (nodes.size() != trees.size() || targets.size() != trees.size() || weights.size() != trees.size()) {
    return context.invalid("attributes " + votes + "_* differ in length");
  }
  for (size_t i = 0; i < trees.size(); ++i) {
    const auto place = places.find({trees[i], nodes[i]});
    if (place == places.end()) return context.invalid(votes + "_nodeids name a node that is not there");
    forest.nodes[static_cast<size_t>(place->second)].votes.push_back({targets[i], weights[i]});
  }
  return {};
}

/// Gives the nodes of mode BRANCH_MEMBER, in their order, the sets that NaN ends.
Status read_members(const KernelContext& context, std::span<TreeNode> nodes) {
  ATTN_OPT_TRY(const auto values, tensor_reals(context, context.attribute("membership_values")));
  size_t at = 0;
  for (TreeNode& node : nodes) {
    if (node.branch != Branch::kMember) continue;
    if (at >= values.size()) return context.invalid("membership_values are too few");
    for (; at < values.size() && !std::isnan(values[at]); ++at) node.members.insert(values[at]);
    ++at;
  }
  return {};
}

}  // namespace

const TreeNode* Forest::leaf_of(int64_t root, std::span<const double> row) const {
  const TreeNode* node = &nodes[static_cast<size_t>(root)];
  for (size_t steps = 0; steps < nodes.size(); ++steps) {
    if (node->branch == Branch::kLeaf) return node;
    const bool is_true = holds(*node, row[static_cast<size_t>(node->feature)]);
    node = &nodes[static_cast<size_t>(is_true ? node->when_true : node->when_false)];
  }
  return nullptr;
}

Expected<std::vector<double>> attribute_reals(const KernelContext& context, const std::string& name) {
  if (const auto* tensor = context.attribute(name + "_as_tensor"); tensor != nullptr) {
    return tensor_reals(context, tensor);
  }
  const auto floats = context.attribute_floats(name);
  return std::vector<double>(floats.begin(), floats.end());
}

Expected<Forest> read_listed_forest(const KernelContext& context, const std::string& votes) {
  Forest forest;
  const auto modes = context.attribute_strings("nodes_modes");
  forest.nodes.resize(modes.size());
  const NodeColumns column(context, modes.size());
  ATTN_OPT_TRY(const auto trees, column("nodes_treeids"));
  ATTN_OPT_TRY(const auto ids, column("nodes_nodeids"));
  ATTN_OPT_TRY(const auto thresholds, attribute_reals(context, "nodes_values"));
  ATTN_OPT_CHECK(read_columns(context, thresholds, forest.nodes));
  std::map<NodeId, int64_t> places;
  std::set<int64_t> seen;
  for (size_t i = 0; i < modes.size(); ++i) {
    ATTN_OPT_TRY(forest.nodes[i].branch, branch_named(context, modes[i]));
    places[{trees[i], ids[i]}] = static_cast<int64_t>(i);
    if (seen.insert(trees[i]).second) forest.roots.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < modes.size(); ++i) {
    TreeNode& node = forest.nodes[i];
    if (node.branch == Branch::kLeaf) continue;
    for (int64_t* child : {&node.when_true, &node.when_false}) {
      const auto place = places.find({trees[i], *child});
      *child = place != places.end() ? place->second : -1;
    }
  }
  ATTN_OPT_CHECK(read_votes(context, votes, places, forest));
  return forest;
}

Expected<Forest> read_forest(const KernelContext& context) {
  constexpr std::array kModes{Branch::kLessOrEqual, Branch::kLess,     Branch::kGreaterOrEqual, Branch::kGreater,
                              Branch::kEqual,       Branch::kNotEqual, Branch::kMember};
  const auto* given_modes = context.attribute("nodes_modes");
  if (given_modes == nullptr) return context.invalid("nodes_modes are missing");
  ATTN_OPT_TRY(const Tensor raw_modes, to_tensor(given_modes->t(), context.tensors));
  ATTN_OPT_TRY(const Tensor modes, raw_modes.cast(onnx::TensorProto::UINT8));
  const auto interior = static_cast<size_t>(modes.size());
  ATTN_OPT_TRY(const auto weights, tensor_reals(context, context.attribute("leaf_weights")));
  const auto targets = context.attribute_ints("leaf_targetids");
  if (targets.size() != weights.size()) return context.invalid("leaf_targetids and leaf_weights differ in length");
  Forest forest;
  forest.roots = context.attribute_ints("tree_roots");
  forest.nodes.resize(interior + weights.size());
  const std::span nodes = std::span(forest.nodes).first(interior);
  ATTN_OPT_TRY(const auto thresholds, tensor_reals(context, context.attribute("nodes_splits")));
  ATTN_OPT_CHECK(read_columns(context, thresholds, nodes));
  const NodeColumns column(context, interior);
  ATTN_OPT_TRY(const auto true_leafs, column("nodes_trueleafs"));
  ATTN_OPT_TRY(const auto false_leafs, column("nodes_falseleafs"));
  const auto child = [&](int64_t id, int64_t is_leaf) -> int64_t {
    const auto count = static_cast<int64_t>(is_leaf != 0 ? weights.size() : interior);
    if (id < 0 || id >= count) return -1;
    return is_leaf != 0 ? static_cast<int64_t>(interior) + id : id;
  };
  for (size_t i = 0; i < interior; ++i) {
    const uint8_t mode = modes.data<uint8_t>()[i];
    if (mode >= kModes.size()) return context.invalid("nodes_modes: " + std::to_string(mode));
    nodes[i].branch = kModes[mode];
    nodes[i].when_true = child(nodes[i].when_true, true_leafs[i]);
    nodes[i].when_false = child(nodes[i].when_false, false_leafs[i]);
  }
  ATTN_OPT_CHECK(read_members(context, nodes));
  for (size_t i = 0; i < weights.size(); ++i) forest.nodes[interior + i].votes = {{targets[i], weights[i]}};
  return forest;
}

Status check_forest(const KernelContext& context, const Forest& forest, int64_t features, int64_t targets) {
  const auto within = [](int64_t value, int64_t count) { return value >= 0 && value < count; };
  const auto count = static_cast<int64_t>(forest.nodes.size());
  for (const int64_t root : forest.roots) {
    if (!within(root, count)) return context.invalid("a root is not a node");
  }
  for (const TreeNode& node : forest.nodes) {
    for (const Vote& vote : node.votes) {
      if (!within(vote.target, targets)) return context.invalid("a leaf votes for target " + std::to_string(vote.target));
    }
    if (node.branch == Branch::kLeaf) continue;
    if (!within(node.feature, features)) return context.invalid("a node looks at feature " + std::to_string(node.feature));
    if (!within(node.when_true, count) || !within(node.when_false, count)) {
      return context.invalid("a node's child is not there");
    }
  }
  return {};
}

}  // namespace attn_opt
