// What may stand between the softmax and its product with V.
//
//   Cast, CastLike, Identity, Dropout at inference      guards (row_guard.h)
//   Reshape, Squeeze, Unsqueeze of the leading axes     Transpose of the last two axes
//   Mul, Div                                            by a number, or one for each head
#include "patterns/probability_walk.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "patterns/layout_checks.h"
#include "patterns/products.h"
#include "patterns/readers.h"

namespace attn_opt {
namespace {

constexpr int kMaxSteps = 32;

bool is_on_the_way(const Node& node) {
  return is_product(node) || node.is("Cast") || node.is("CastLike") || node.is("Identity") || node.is("Dropout") ||
         node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Transpose") || node.is("Concat");
}

class Walker {
 public:
  Walker(Value& start, const Node* sum, MatchContext& context) : value_(&start), sum_(sum), facts_(context.facts) {}

  Matched<ProbabilityWalk> run() {
    for (int step = 0; step < kMaxSteps; ++step) {
      if (pass_guard() || pass_infinity_guard() || pass_factor()) continue;
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
    const Readers readers = readers_here();
    const auto guard = row_guard(readers, *value_, facts_);
    if (!guard) return false;
    const bool others_read = readers.is_output || std::ranges::any_of(readers.all, [&](const Reader& reader) {
      return !belongs_to_guard(reader, *guard->node, facts_);
    });
    if (others_read) {
      note_escape();
      walk_.escapes_before_guard = true;
    }
    walk_.guard = guard;
    seen_.push_back(&canonical(*value_, facts_));
    walk_.peeled.push_back(guard->mask ? "Where(mask)" : guard->row_maximum_of ? "Where(row of -inf)" : "Where(IsNaN)");
    value_ = guard->node->outputs[0];
    return true;
  }

  bool pass_infinity_guard() {
    const Readers readers = readers_here();
    seen_.push_back(&canonical(*value_, facts_));
    Node* guard = infinity_guard(readers, seen_, facts_);
    if (!guard) return false;
    const bool only_guards = std::ranges::all_of(readers.all, [&](const Reader& reader) { return belongs_to_guard(reader, *guard, facts_); });
    if (readers.is_output || !only_guards) note_escape();
    walk_.peeled.emplace_back("Where(IsInf)");
    value_ = guard->outputs[0];
    return true;
  }

  bool pass_factor() {
    const Readers readers = readers_here();
    Node* node = readers.only_one() ? readers.all[0].node : nullptr;
    if (!node || node->graph != value_->graph || !(node->is("Mul") || (node->is("Div") && readers.all[0].input == 0))) return false;
    Value& factor = *node->inputs[static_cast<size_t>(1 - readers.all[0].input)];
    const Shape *own = facts_.shape(*value_), *after = facts_.shape(*node->outputs[0]), *shape = facts_.shape(factor);
    if (!own || !after || !shape || *own != *after || shape->size() > own->size()) return false;
    const auto is_one = [](const Dim& size) { return size.is(1); };
    if (!std::all_of(shape->end() - std::min<std::ptrdiff_t>(2, std::ssize(*shape)), shape->end(), is_one)) return false;
    const bool is_number = std::all_of(shape->begin(), shape->end(), is_one);
    walk_.factors.push_back({&factor, node->is("Div"), is_number, own->size()});
    walk_.peeled.push_back(node->op() + "(values)");
    value_ = node->outputs[0];
    return true;
  }

  Readers readers_here() const {
    Readers readers = readers_of(*value_, facts_);
    if (sum_) std::erase_if(readers.all, [this](const Reader& reader) { return reader.node == sum_; });
    return readers;
  }

  void note_escape() {
    walk_.escapes_often = walk_.escapes_often || walk_.escaping != nullptr;
    walk_.escaping = value_;
  }

  /// The node to go on with; VALUE_ becomes the copy that it reads.
  Matched<Node*> next_node() {
    const Readers readers = readers_here();
    std::vector<Reader> candidates, products;
    for (const Reader& reader : readers.all) {
      if (!reader.node || reader.node->graph != value_->graph || !is_on_the_way(*reader.node) || reader.reads_type_alone())
        continue;
      if (is_product(*reader.node)) products.push_back(reader);
      candidates.push_back(reader);
    }
    if (!readers.only_one()) note_escape();
    if (candidates.empty()) return nothing_reached(readers);
    const bool is_clear = products.size() == 1 || candidates.size() == 1;
    if (!is_clear)
      return missed("probabilities.many-readers", candidates[0].node,
                    std::to_string(readers.all.size()) + " readers of '" + value_->name + "'", walk_.peeled);
    const Reader& next = products.size() == 1 ? products[0] : candidates[0];
    value_ = next.read;
    return next.node;
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
  tl::unexpected<Miss> nothing_reached(const Readers& readers) const {
    for (const Reader& reader : readers.all) {
      if (!reader.node || reader.node->outputs.empty() || !reader.node->outputs[0]) continue;
      const Value& made = *reader.node->outputs[0];
      if (reader.node->is("QuantizeLinear") && is_dequantized_for_product(made))
        return missed("probabilities.quantized", reader.node, "'" + value_->name + "' is quantized", walk_.peeled);
      if (is_read_by_product(made)) return missed("probabilities.operator", reader.node, reader.node->op(), walk_.peeled);
    }
    return missed(std::string(kNotAttention), nullptr, "", walk_.peeled);
  }

  /// What the last of a chain of nodes from FIRST on makes, each the only reader of the one before, which together make it
  /// of VALUE_ as ORIGIN says; null if there is none.
  Value* end_of_chain(Node& first, Value* (*origin)(Node&, Facts&)) const {
    const Value& start = canonical(*value_, facts_);
    Node* next = &first;
    for (int step = 0; step < kMaxTogether && !next->outputs.empty() && next->outputs[0]; ++step) {
      Value& made = *next->outputs[0];
      if (origin(*next, facts_) == &start) return &made;
      const Readers readers = readers_of(made, facts_);
      if (!readers.only_one() || !readers.all[0].node || readers.all[0].node->graph != first.graph) return nullptr;
      next = readers.all[0].node;
    }
    return nullptr;
  }

  Matched<Value*> pass(Node& node) {
    Value* next = node.outputs[0];
    const std::string& op_type = node.op();
    if (node.inputs[0] != value_ || !next) return missed("probabilities.operand", &node, "not its first input", walk_.peeled);
    if (node.is("Cast") || node.is("CastLike")) {
      if (!is_floating(facts_.type(*next))) return missed("probabilities.cast", &node, type_name(facts_.type(*next)), walk_.peeled);
    } else if (node.is("Transpose")) {
      next = end_of_chain(node, swapped_from);
      if (!next) return missed("probabilities.transpose", &node, "more than a swap of queries and keys", walk_.peeled);
      walk_.transposed = !walk_.transposed;
    } else if (node.is("Dropout")) {
      return missed("probabilities.dropout", &node, "in training mode", walk_.peeled);
    } else {
      next = end_of_chain(node, regrouped_from);
      if (!next) return missed("probabilities.reshape", &node, op_type + " of queries or keys", walk_.peeled);
    }
    walk_.peeled.push_back(op_type);
    return next;
  }

  Value* value_;
  const Node* sum_;
  Facts& facts_;
  ProbabilityWalk walk_;
  std::vector<Value*> seen_;  ///< probabilities on the way
};

}  // namespace

Matched<ProbabilityWalk> walk_probabilities(Value& softmax_output, const Node* sum, MatchContext& context) {
  return Walker(softmax_output, sum, context).run();
}

}  // namespace attn_opt
