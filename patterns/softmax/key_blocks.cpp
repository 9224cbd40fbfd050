#include "patterns/softmax/key_blocks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/joined_product.h"
#include "patterns/readers.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/exponentials.h"
#include "src/match/cut_range.h"

namespace attn_opt {
namespace {

/// A sum of values that are numbers of rows, by how often each is added.
using RowTerms = std::map<Value*, double>;

/// WEIGHTS, exponentials, added up or multiplied with VALUES, times exp() of LOWERED.
struct BlockTerm {
  Value* weights = nullptr;
  Value* values = nullptr;
  RowTerms lowered = {};
};

/// Scores of some of the keys: the weights are exp() of SCORES plus OWN, and times exp() of WHOLE less OWN in the end.
struct Block {
  Value* scores = nullptr;
  Value* values = nullptr;
  RowTerms own, whole;
};

class BlockReader {
 public:
  explicit BlockReader(Facts& facts) : facts_(facts) {}

  /// The blocks of NUMERATOR, whose exponentials are added up in DIVISOR; none if these are others.
  /// If they ARE_DIVIDED, the weights of each are divided by that before their products are added up.
  std::vector<Block> read(Value& numerator, Value& divisor, bool are_divided = false) {
    divisor_ = are_divided ? &canonical(divisor, facts_) : nullptr;
    std::vector<BlockTerm> products, sums;
    if (!enter_terms(numerator, true, {}, kMaxTogether, products) || !enter_terms(divisor, false, {}, kMaxTogether, sums) ||
        products.size() < 2 || products.size() != sums.size())
      return {};
    std::vector<Block> blocks;
    for (const BlockTerm& product : products) {
      if (!product.values) return {};
      const auto fits = [&](const BlockTerm& sum) { return sum.weights == product.weights && sum.lowered == product.lowered; };
      if (std::ranges::count_if(sums, fits) != 1) return {};
      auto block = block_of(product);
      if (!block || (!blocks.empty() && block->whole != blocks.front().whole)) return {};
      blocks.push_back(*std::move(block));
    }
    return blocks;
  }

  /// True if no exponential of BLOCKS is that of more than 0: each was lowered by the largest score of its row so far.
  bool are_lowered(const std::vector<Block>& blocks) {
    std::set<Value*> all;
    for (const Block& block : blocks) all.insert(block.scores);
    return std::ranges::all_of(blocks, [&](const Block& block) {
      return is_lowered_by_maximum(block.own, {block.scores}) && is_lowered_by_maximum(block.whole, all);
    });
  }

 private:
  /// Enters in TERMS what VALUE adds up, products if these ARE_PRODUCTS, else sums of exponentials, each times exp() of
  /// LOWERED; false if it adds up anything else.
  bool enter_terms(Value& value, bool are_products, const RowTerms& lowered, int steps, std::vector<BlockTerm>& terms) {
    if (facts_.uniform(value) == 0.0) return true;  // what the first block is added to
    Node* node = canonical(value, facts_).producer;
    if (!node || steps == 0) return false;
    if (node->is("Add") || node->is("Sum"))
      return std::ranges::all_of(node->inputs,
                                 [&](Value* addend) { return enter_terms(*addend, are_products, lowered, steps - 1, terms); });
    for (const size_t at : {0, 1}) {
      Value* exponent = node->is("Mul") ? exponent_of_rows(*node->inputs[1 - at]) : nullptr;
      if (exponent) return enter_terms(*node->inputs[at], are_products, plus(lowered, *exponent, 1), steps - 1, terms);
    }
    BlockTerm term = are_products ? product_in(*node) : BlockTerm{added_up(value), nullptr};
    if (term.weights && are_products && divisor_) term.weights = before_division(*term.weights);
    if (!term.weights) return false;
    term.weights = &canonical(*term.weights, facts_);
    term.lowered = lowered;
    terms.push_back(std::move(term));
    return true;
  }

  /// The product that NODE is, or V^T W^T, of which it swaps the last two axes back; of no weights if it is none.
  BlockTerm product_in(Node& node) {
    if (node.is("MatMul")) return {node.inputs[0], node.inputs[1]};
    Value* swapped = node.is("Transpose") ? swapped_from(node, facts_) : nullptr;
    const Node* product = swapped ? swapped->producer : nullptr;
    if (!product || !product->is("MatMul")) return {};
    return {turned_back(*product->inputs[1]), turned_back(*product->inputs[0])};
  }

  /// What DIVISOR_ divides to make VALUE; null if it makes it otherwise.
  Value* before_division(Value& value) {
    Value *weights = nullptr, *divisor = nullptr;
    const bool divides = op("Div", {any(&weights), any(&divisor)})(value, facts_) ||
                         commuted("Mul", any(&weights), op("Reciprocal", {any(&divisor)}))(value, facts_);
    return divides && &canonical(*divisor, facts_) == divisor_ ? weights : nullptr;
  }

  /// VALUE before its last two axes were swapped; null if they were not.
  Value* turned_back(Value& value) {
    Node* node = canonical(value, facts_).producer;
    return node && node->is("Transpose") ? swapped_from(*node, facts_) : nullptr;
  }

  /// What VALUE adds up along the last axis, which it keeps; null if it does not.
  Value* added_up(Value& value) {
    Value* weights = nullptr;
    return reduced_over_last("ReduceSum", any(&weights))(value, facts_) ? weights : nullptr;
  }

  /// What VALUE is exp() of, if it is a number for each row; null if it is not.
  Value* exponent_of_rows(Value& value) {
    const Node* node = canonical(value, facts_).producer;
    return node && node->is("Exp") && is_of_rows(value) ? node->inputs[0] : nullptr;
  }

  bool is_of_rows(const Value& value) {
    const MaybeShape shape = facts_.shape(value);
    return shape && !shape->empty() && shape->back().is(1);
  }

  /// SUM with that of ROWS, TIMES times.
  RowTerms plus(RowTerms sum, Value& rows, double times) {
    for (const Addend& addend : FormReader(facts_).linear_terms(rows)) {
      double& coefficient = sum[addend.value];
      coefficient += times * addend.coefficient;
      if (coefficient == 0) sum.erase(addend.value);
    }
    return sum;
  }

  std::optional<Block> block_of(const BlockTerm& term) {
    const Node* exponential = term.weights->producer;
    if (!exponential || !exponential->is("Exp")) return std::nullopt;
    Block block{&canonical(*exponential->inputs[0], facts_), term.values, {}, term.lowered};
    for (int step = 0; step < kMaxTogether; ++step) {
      Value *minuend = nullptr, *rows = nullptr;
      if (!difference(any(&minuend), any(&rows))(*block.scores, facts_) || !is_of_rows(*rows)) break;
      block.own = plus(std::move(block.own), *rows, -1);
      block.whole = plus(std::move(block.whole), *rows, -1);
      block.scores = &canonical(*minuend, facts_);
    }
    return block;
  }

  bool is_lowered_by_maximum(const RowTerms& sum, const std::set<Value*>& scores) {
    if (sum.size() != 1 || sum.begin()->second != -1) return false;
    std::set<Value*> seen;
    enter_maximised(*sum.begin()->first, kMaxTogether, seen);
    return std::ranges::includes(seen, scores);
  }

  /// Enters in SEEN the scores that VALUE, if it is a maximum, is no less than.
  void enter_maximised(Value& value, int steps, std::set<Value*>& seen) {
    Value& maximum = canonical(value, facts_);
    Value* rows = nullptr;
    if (reduced_over_last("ReduceMax", any(&rows))(maximum, facts_)) seen.insert(&canonical(*rows, facts_));
    if (!maximum.producer || !maximum.producer->is("Max") || steps == 0) return;
    for (Value* operand : maximum.producer->inputs)
      if (operand) enter_maximised(*operand, steps - 1, seen);
  }

  Facts& facts_;
  Value* divisor_ = nullptr;  ///< what the weights are divided by before their products are added up
};

/// What adds up the product of SHARES, which alone is made of them, and others; null if nothing does.
Value* sum_behind(Value& shares, Facts& facts) {
  Value* made = nullptr;
  Readers readers = readers_of(shares, facts);
  if (!readers.only_one() || !readers.all[0].node || !readers.all[0].node->is("MatMul")) return nullptr;
  for (Value* next = readers.all[0].node->output(0); next; next = made) {
    readers = readers_of(*next, facts);
    const Node* node = readers.only_one() ? readers.all[0].node : nullptr;
    if (!node || !(node->is("Add") || node->is("Sum"))) return made;
    made = node->output(0);
  }
  return nullptr;
}

/// BLOCKS in the order in which their scores, or else their values, were cut out of others, where that is known: these are then
/// seen as joined again.
std::vector<Block> in_order(std::vector<Block> blocks, Facts& facts) {
  for (Value* Block::* part : {&Block::scores, &Block::values}) {
    std::map<const Value*, int64_t> places;
    for (const Block& block : blocks)
      if (const auto cut = cut_range(canonical(*(block.*part), facts), facts); cut && cut->first.is_constant())
        places[block.*part] = cut->first.value();
    if (places.size() < blocks.size()) continue;
    std::ranges::stable_sort(blocks, {}, [&](const Block& block) { return places[block.*part]; });
    break;
  }
  return blocks;
}

/// BLOCKS' VALUE side by side, AXIS axes before the last; null if they do not fit.
Value* all_of(const std::vector<Block>& blocks, Value* Block::* value, int64_t axis, InnerValues& inner, Facts& facts) {
  Value* whole = blocks.front().*value;
  const MaybeShape shape = facts.shape(*whole);
  for (size_t i = 1; i < blocks.size() && whole; ++i)
    whole = shape ? side_by_side(*whole, *(blocks[i].*value), std::ssize(*shape) - 1 - axis, inner, facts) : nullptr;
  return whole;
}

}  // namespace

std::optional<KeyBlocks> key_blocks(Node& node, MatchContext& context) {
  Value* divisor = nullptr;
  for (const size_t at : {0, 1}) {
    const bool divides = node.is("Div") && at == 0;
    if (divides) divisor = node.inputs[1];
    if (!divides && !(node.is("Mul") && op("Reciprocal", {any(&divisor)})(*node.inputs[1 - at], context.facts))) continue;
    BlockReader reader(context.facts);
    Value* made = node.outputs[0];
    std::vector<Block> blocks = in_order(reader.read(*node.inputs[at], *divisor), context.facts);
    if (blocks.empty() && (made = sum_behind(*node.outputs[0], context.facts)))
      blocks = in_order(reader.read(*made, *divisor, true), context.facts);
    if (blocks.empty()) continue;
    InnerValues inner(node, context);
    Value* scores = all_of(blocks, &Block::scores, 0, inner, context.facts);
    Value* values = all_of(blocks, &Block::values, 1, inner, context.facts);
    if (!scores || !values) continue;
    Value* weights = inner.build().node("Softmax", {scores}, {GraphBuilder::attribute("axis", int64_t{-1})});
    Value* product = inner.build().node("MatMul", {weights, values});
    KeyBlocks read{softmax_operator(*weights->producer, context), product->producer, made};
    if (!reader.are_lowered(blocks)) read.softmax.exponent_offset = 0;
    return read;
  }
  return std::nullopt;
}

}  // namespace attn_opt
