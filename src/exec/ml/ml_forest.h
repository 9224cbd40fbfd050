// Decision trees of ai.onnx.ml, whose nodes the operators list in two ways.
#pragma once

#include <set>

#include "src/exec/kernel.h"

namespace attn_opt {

enum class Branch { kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kEqual, kNotEqual, kMember, kLeaf };

/// What a leaf adds to one target.
struct Vote {
  int64_t target = 0;
  double weight = 0;
};

struct TreeNode {
  Branch branch = Branch::kLeaf;
  int64_t feature = 0;
  double threshold = 0;
  std::set<double> members{};
  bool nan_is_true = false;
  int64_t when_true = 0, when_false = 0;  ///< nodes
  std::vector<Vote> votes{};              ///< of a leaf
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;

  /// Calls vote(target, weight) for what the leaves that ROW comes to say. kInvalidInput: a tree goes round
  /// in circles.
  template <class F>
  Status each_vote(const KernelContext& context, std::span<const double> row, F&& vote) const {
    for (const int64_t root : roots) {
      const TreeNode* leaf = leaf_of(root, row);
      if (leaf == nullptr) return context.invalid("a tree has no end");
      for (const Vote& one : leaf->votes) vote(one.target, one.weight);
    }
    return {};
  }

 private:
  const TreeNode* leaf_of(int64_t root, std::span<const double> row) const;
};

/// Of TreeEnsembleRegressor and TreeEnsembleClassifier: a node a place, leaves among them; VOTES names their
/// attributes
/// ("target" or "class").
Expected<Forest> read_listed_forest(const KernelContext& context, const std::string& votes);
/// Of TreeEnsemble: leaves in lists of their own.
Expected<Forest> read_forest(const KernelContext& context);

/// Attribute NAME_as_tensor or, failing that, NAME.
Expected<std::vector<double>> attribute_reals(const KernelContext& context, const std::string& name);

/// Checks that the forest's children exist, and that it looks at FEATURES features and votes for TARGETS
/// targets.
Status check_forest(const KernelContext& context, const Forest& forest, int64_t features, int64_t targets);

}  // namespace attn_opt
