// What may stand between the softmax and its product with V.
//
//   Cast, CastLike, Identity, Dropout at inference      a guard (row_guard.h)
//   Reshape, Squeeze, Unsqueeze of the leading axes     Transpose of the last two axes
#include "patterns/probability_walk.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "patterns/layout_checks.h"
#include "patterns/products.h"

namespace attn_opt {
namespace {

constexpr int kMaxSteps = 32;

bool is_on_the_way(const Node& node) {
  return is_product(node) || node.is("Cast") || node.is("CastLike") || node.is("Identity") || node.is("Dropout") ||
         node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Transpose") || node.is("Concat");
}

bool reads_type_alone(const Use& use) { return use.node->is("CastLike") && use.input == 1; }

class Walker {
 public:
  Walker(Value& start, MatchContext& context) : value_(&start), facts_(context.facts) {}

  Matched<ProbabilityWalk> run() {
    for (int step = 0; step < kMaxSteps; ++step) {
      if (pass_guard()) continue;
      ATTN_OPT_MATCH(Node * next, next_node());
      if (is_product(*next)) {
        walk_.product = next;
        walk_.probabilities = value_;
        return walk_;
      }
      ATTN_OPT_MATCH(value_, pass(*next));
    }
    return missed("probabilities.too-long", value_->producer, value_->name, walk_.peeled);
  }

 private:
  bool pass_guard() {
    if (walk_.guard) return false;
    const auto guard = row_guard(*value_, facts_);
    if (!guard) return false;
    const bool others_read = value_->is_output || std::any_of(value_->uses.begin(), value_->uses.end(), [&](const Use& use) {
      return !belongs_to_guard(use, *guard->node);
    });
    if (others_read) {
      note_escape();
      walk_.escapes_before_guard = true;
    }
    walk_.guard = guard;
    walk_.peeled.push_back(guard->row_maximum_of ? "Where(row of -inf)" : "Where(IsNaN)");
    value_ = guard->node->outputs[0];
    return true;
  }

  void note_escape() {
    walk_.escapes_often = walk_.escapes_often || walk_.escaping != nullptr;
    walk_.escaping = value_;
  }

  Matched<Node*> next_node() {
    std::vector<Node*> candidates, products;
    for (const Use& use : value_->uses) {
      if (!use.node || use.node->graph != value_->graph || !is_on_the_way(*use.node) || reads_type_alone(use)) continue;
      if (is_product(*use.node)) products.push_back(use.node);
      candidates.push_back(use.node);
    }
    if (value_->uses.size() > 1 || value_->is_output) note_escape();
    if (products.size() == 1) return products[0];
    if (candidates.size() == 1) return candidates[0];
    if (candidates.empty()) return nothing_reached();
    return missed("probabilities.many-readers", candidates[0], std::to_string(value_->uses.size()) + " readers of '" + value_->name + "'", walk_.peeled);
  }

  static bool is_read_by_product(const Value& value) {
    return std::any_of(value.uses.begin(), value.uses.end(), [](const Use& use) { return use.node && is_product(*use.node); });
  }

  static bool is_dequantized_for_product(const Value& value) {
    return std::any_of(value.uses.begin(), value.uses.end(), [](const Use& use) {
      return use.node && use.node->is("DequantizeLinear") && use.node->outputs[0] && is_read_by_product(*use.node->outputs[0]);
    });
  }

  /// A softmax that is no attention ends elsewhere (a classifier, a router); one whose values are changed on the way to
  /// a product is worth a miss.
  tl::unexpected<Miss> nothing_reached() const {
    for (const Use& use : value_->uses) {
      if (!use.node || use.node->outputs.empty() || !use.node->outputs[0]) continue;
      if (use.node->is("QuantizeLinear") && is_dequantized_for_product(*use.node->outputs[0]))
        return missed("probabilities.quantized", use.node, "'" + value_->name + "' is quantized", walk_.peeled);
      if (is_read_by_product(*use.node->outputs[0])) return missed("probabilities.operator", use.node, use.node->op(), walk_.peeled);
    }
    return missed(std::string(kNotAttention), nullptr, "", walk_.peeled);
  }

  Matched<Value*> pass(Node& node) {
    Value* next = node.outputs[0];
    if (node.inputs[0] != value_ || !next) return missed("probabilities.operand", &node, "not its first input", walk_.peeled);
    if (node.is("Cast") || node.is("CastLike")) {
      if (!is_floating(facts_.type(*next))) return missed("probabilities.cast", &node, type_name(facts_.type(*next)), walk_.peeled);
    } else if (node.is("Transpose")) {
      if (!swaps_last_two_axes(node)) return missed("probabilities.transpose", &node, "more than a swap of queries and keys", walk_.peeled);
      walk_.transposed = !walk_.transposed;
    } else if (node.is("Dropout")) {
      if (!is_no_op(node, facts_)) return missed("probabilities.dropout", &node, "in training mode", walk_.peeled);
    } else if (!is_no_op(node, facts_) && !keeps_last_two_axes(node, facts_)) {
      return missed("probabilities.reshape", &node, node.op() + " of queries or keys", walk_.peeled);
    }
    walk_.peeled.push_back(node.op());
    return next;
  }

  Value* value_;
  Facts& facts_;
  ProbabilityWalk walk_;
};

}  // namespace

Matched<ProbabilityWalk> walk_probabilities(Value& softmax_output, MatchContext& context) {
  return Walker(softmax_output, context).run();
}

}  // namespace attn_opt
