#include "patterns/softmax/key_blocks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/joined_parts.h"
#include "patterns/probabilities/part_moves.h"
#include "patterns/products/cut_columns.h"
#include "patterns/products/joined_product.h"
#include "patterns/products/product_equation.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/row_numbers.h"
#include "src/match/cut_range.h"

namespace attn_opt {
namespace {

constexpr int kMostBlockNodes = 1200;
constexpr size_t kMostBehind = 48;

/// Scores of some of the keys, and their values.
struct Block {
  Value* scores = nullptr;
  Value* values = nullptr;
};

/// RATIO times the product of exp() of scores and VALUES.
struct BlockTerm {
  WeighedScores weighed;
  Value* values = nullptr;
};

/// What is added up; nullopt if that is anything else than products of exponentials and values.
using BlockTerms = std::optional<std::vector<BlockTerm>>;

/// The letters of a product of weights and values: of rows, the last of which the values lack, of keys and of features.
struct Weighing {
  std::string rows;
  char keys, features;
};

/// How the first operand of EQUATION weighs the other; nullopt if it does not.
std::optional<Weighing> weighing_in(const Equation& equation) {
  const std::string keys = equation.contracted();
  std::string rows, own, features;
  for (const char letter : equation.one)
    if (letter != keys[0]) (has_letter(equation.other, letter) ? rows : own) += letter;
  for (const char letter : equation.other)
    if (!has_letter(equation.one, letter)) features += letter;
  if (keys.size() != 1 || own.empty() || features.size() != 1) return std::nullopt;
  rows += own;
  const bool has_all = std::ranges::is_permutation(rows + features, equation.result);
  return has_all ? std::optional(Weighing{rows, keys[0], features[0]}) : std::nullopt;
}

/// Reads what is added up, in the frame of the sum.
class BlockReader {
 public:
  BlockReader(Node& reader, MatchContext& context)
      : reader_(reader), context_(context), facts_(context.facts), rows_(reader, context) {}

  /// The blocks whose softmax times their values MADE is; none if it is anything else.
  std::vector<Block> read(Value& made) {
    const MaybeShape shape = facts_.shape(made);
    const auto terms = shape ? terms_in(placed_in(made, shape->size(), facts_)) : std::nullopt;
    const auto blocks = terms ? alone(*terms) : std::nullopt;
    if (!blocks || blocks->empty() || frame_.size() != shape->size()) return {};
    std::optional<RowRatio> sum = RowRatio::number(0);
    for (const BlockTerm& block : *blocks)
      if (sum) sum = sum->plus(RowRatio::unknown(block.weighed.sum));
    const auto is_share = [&](const BlockTerm& block) {
      const auto whole = sum ? block.weighed.ratio.times(*sum) : std::nullopt;
      return whole && whole->is(1);
    };
    if (!std::ranges::all_of(*blocks, is_share)) return {};
    std::vector<Block> found;
    for (const BlockTerm& block : *blocks)
      found.push_back({InnerValues(reader_, context_).scaled(block.weighed.scores.value, block.weighed.times), block.values});
    return found;
  }

  /// PRODUCT with its axes where those of what was read are; PRODUCT itself if they lie so.
  Value* moved(Value* product) {
    std::vector<int64_t> perm(frame_.size(), -1), units;
    for (size_t axis = 0; axis < frame_.size(); ++axis)
      if (frame_[axis] >= 0)
        perm[static_cast<size_t>(frame_[axis])] = static_cast<int64_t>(axis);
      else
        units.push_back(static_cast<int64_t>(axis));
    auto unit = units.begin();
    for (int64_t& axis : perm)
      if (axis < 0) axis = *unit++;
    return std::ranges::is_sorted(perm) ? product : InnerValues(reader_, context_).transposed(product, perm);
  }

  /// True if no exponential is taken of more than 0, and no sum of them that divides may be 0.
  bool stays_in_range() { return rows_.stays_in_range(); }
  double exponent_power() const { return rows_.exponent_power(); }

 private:
  BlockTerms terms_in(RowReduction at) {
    at = rows_.source_of(std::move(at));
    if (is_nothing(*at.value, facts_)) return std::vector<BlockTerm>();  // what the first block is added to
    Node* node = at.value->producer;
    const bool is_read = node && (node->domain().empty() || is_fused_matmul(*node));
    if (!is_read || ++nodes_ > kMostBlockNodes) return std::nullopt;
    if (const auto part = rows_.part_in(*node, at)) return terms_in(*part);
    if (cuts_out(*node)) return of_columns(at);
    if (makes_product(*node, facts_))
      if (auto terms = product(*node, at); terms || is_product(*node)) return terms;
    if (node->is("Mul") || node->is("Div")) return scaled(*node, at);
    if (node->is("ReduceSum")) return summed(*node, at);
    if (has(*node, Trait::kAdds)) return added(*node, at);
    return std::nullopt;
  }

  BlockTerms added(const Node& node, const RowReduction& at) {
    std::vector<BlockTerm> all;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto own = times(terms_in(rows_.operand(node, i, at)), RowRatio::number(times_added(node, i)));
      if (!own) return std::nullopt;
      all.insert(all.end(), own->begin(), own->end());
    }
    return all;
  }

  /// What is cut out of a product with V and other columns, as the product with V.
  BlockTerms of_columns(const RowReduction& at) {
    const auto part = part_of_product(*at.value, reader_, context_);
    if (!part || !part->values || !is_product(*part->product)) return std::nullopt;
    Value* product = InnerValues(reader_, context_).again(*part->product, part->operand, part->values);
    const MaybeShape shape = facts_.shape(*product);
    if (!shape || part->axes.size() != at.axes.size()) return std::nullopt;
    RowReduction whole{product, std::vector<int>(shape->size(), -1), nullptr};
    for (size_t axis = 0; axis < part->axes.size(); ++axis) whole.axes[static_cast<size_t>(part->axes[axis])] = at.axes[axis];
    return terms_in(whole);
  }

  /// Sums over parts that are stacked.
  BlockTerms summed(const Node& node, const RowReduction& at) {
    const auto before = before_reduction(node, at, facts_);
    if (!before) return std::nullopt;
    std::vector<BlockTerm> all;
    for (const RowReduction& part : rows_.parts_along(*before)) {
      const auto own = terms_in(part);
      if (!own) return std::nullopt;
      all.insert(all.end(), own->begin(), own->end());
    }
    return all.empty() ? std::nullopt : BlockTerms(all);
  }

  /// What is added up times a number for each row, or divided by one.
  BlockTerms scaled(const Node& node, const RowReduction& at) {
    for (const size_t i : {0, 1}) {
      if (node.is("Div") && i == 1) break;
      const auto terms = extent(node, i) < extent(node, 1 - i) ? std::nullopt : terms_in(rows_.operand(node, i, at));
      if (!terms) continue;
      const RowReduction row = rows_.operand(node, 1 - i, at);
      const auto factor = node.is("Div") ? rows_.inverse(row) : rows_.number(row);
      return factor ? times(terms, *factor) : std::nullopt;
    }
    return std::nullopt;
  }

  /// How many axes of input INPUT of NODE are none of size 1.
  size_t extent(const Node& node, size_t input) {
    const MaybeShape shape = facts_.shape(*node.inputs[input]);
    return shape ? static_cast<size_t>(std::ranges::count_if(*shape, [](const Dim& size) { return !size.is(1); })) : 0;
  }

  static BlockTerms times(BlockTerms terms, const RowRatio& factor) {
    for (size_t i = 0; terms && i < terms->size(); ++i) {
      const auto ratio = (*terms)[i].weighed.ratio.times(factor);
      if (!ratio) return std::nullopt;
      (*terms)[i].weighed.ratio = *ratio;
    }
    return terms;
  }

  /// W V in any order of their axes.
  BlockTerms product(Node& node, const RowReduction& at) {
    // Its columns are cut off before anything is read of it.
    if (has_ones_cut_off(node, reader_, context_)) return std::nullopt;
    const auto read = equation_of(node, context_);
    const auto factor = factor_of_sum(node, facts_);
    if (!read || !factor || read->result.size() != at.axes.size() || has_letter(read->result, kUnitAxis)) return std::nullopt;
    if (!frame_.empty() && !std::ranges::is_permutation(frame_, at.axes)) return std::nullopt;
    for (const Equation& equation : {*read, read->exchanged()}) {
      const auto lies = weighing_in(equation);
      if (!lies) continue;
      const auto axes_of = [&](const std::string& of) {
        std::vector<int> axes;
        for (const char letter : of)
          axes.push_back(letter == lies->keys ? RowReduction::kTaken : at.axes[equation.result.find(letter)]);
        return axes;
      };
      const std::vector<int> frame = axes_of(lies->rows + lies->features);
      if (!frame_.empty() && frame != frame_) continue;
      Value& weights = canonical(*equation.one_value, facts_);
      auto weighed = rows_.weights({&weights, axes_of(equation.one), nullptr});
      if (!weighed || !lay_in(weighed->scores, axes_of(lies->rows + lies->keys))) continue;
      frame_ = frame;
      Value* values = laid_out(equation.other_value, equation.other, *lies);
      return times(std::vector<BlockTerm>{{*std::move(weighed), values}}, RowRatio::number(*factor));
    }
    return std::nullopt;
  }

  /// Transposes SCORES so that they have AXES, if they do not lie so; false if they have others.
  bool lay_in(RowReduction& scores, const std::vector<int>& axes) {
    const auto is_there = [](int own, int wanted) { return own == wanted || (own < 0 && own != RowReduction::kTaken); };
    if (std::ranges::equal(scores.axes, axes, is_there)) return true;
    if (!std::ranges::is_permutation(scores.axes, axes)) return false;
    std::vector<int64_t> perm;
    for (const int axis : axes) perm.push_back(std::ranges::find(scores.axes, axis) - scores.axes.begin());
    scores = {InnerValues(reader_, context_).transposed(scores.value, perm), axes, scores.node};
    return true;
  }

  /// VALUES, whose axes have the letters of TERM, as a MatMul with the weights reads them: with axes of size 1 for rows that
  /// share them.
  Value* laid_out(Value* values, const std::string& term, const Weighing& lies) {
    InnerValues inner(reader_, context_);
    std::vector<int64_t> perm, shared;
    for (const char letter : lies.rows.substr(0, lies.rows.size() - 1) + lies.keys + lies.features) {
      if (has_letter(term, letter))
        perm.push_back(static_cast<int64_t>(term.find(letter)));
      else if (!perm.empty())
        shared.push_back(std::ssize(perm) + std::ssize(shared));
    }
    if (!std::ranges::is_sorted(perm)) values = inner.transposed(values, perm);
    return shared.empty() ? values : inner.unsqueezed(values, shared);
  }

  /// TERMS, each block once; nullopt if scores come with several values.
  static BlockTerms alone(const std::vector<BlockTerm>& terms) {
    std::vector<BlockTerm> blocks;
    for (const BlockTerm& term : terms) {
      const auto same =
          std::ranges::find_if(blocks, [&](const BlockTerm& block) { return block.weighed.sum == term.weighed.sum; });
      if (same == blocks.end()) {
        blocks.push_back(term);
        continue;
      }
      const auto sum = same->values == term.values ? same->weighed.ratio.plus(term.weighed.ratio) : std::nullopt;
      if (!sum) return std::nullopt;
      same->weighed.ratio = *sum;
    }
    return blocks;
  }

  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
  RowNumbers rows_;
  std::vector<int> frame_;  ///< of the products
  int nodes_ = 0;
};

/// Cheap: false where nothing but a further product is made of START, moved.
bool may_be_added_up(const Value& start) {
  const Value* value = &start;
  for (size_t step = 0; step < kMostBehind && value && value->uses.size() == 1; ++step) {
    const Node* node = value->uses.front().node;
    if (!node || is_product(*node)) return false;
    if (!has(*node, Trait::kKeepsAll) && !node->is("Cast")) return true;
    value = node->output(0);
  }
  return value && !value->uses.empty();
}

/// The values that START comes to by sums, products with numbers and moves, and through a product unless these ARE_WEIGHED
/// values: the last first, of those that may end a sum of blocks.
std::vector<Value*> sums_behind(Value& start, bool are_weighed, Facts& facts) {
  struct Reached {
    Value* value;
    bool is_behind_product;
  };
  std::vector<Value*> sums;
  if (are_weighed && !may_be_added_up(start)) return sums;
  std::vector<Reached> reached{{&start, are_weighed}};
  for (size_t i = 0; i < reached.size() && reached.size() < kMostBehind; ++i) {
    const Reached from = reached[i];
    const Node* maker = canonical(*from.value, facts).producer;  // a product, not the Div, of a product by 1
    if (maker &&
        (has(*maker, Trait::kAdds) || maker->is("Mul") || maker->is("Div") || maker->is("ReduceSum") || maker->is("Cast")))
      sums.push_back(from.value);
    for (const Use& use : from.value->uses) {
      const Node* node = use.node;
      if (!node || node->graph != from.value->graph || !node->domain().empty() || !node->output(0)) continue;
      const bool multiplies = is_product(*node) && !from.is_behind_product;
      const auto copies = [&] { return &canonical(*node->outputs[0], facts) == &canonical(*from.value, facts); };
      const bool goes_on = multiplies || cuts_out(*node) || has(*node, Trait::kAdds) || has(*node, Trait::kKeepsAll) ||
                           node->is("Mul") || node->is("Div") || node->is("ReduceSum") || node->is("Concat") ||
                           node->is("Cast") || copies();
      if (!goes_on || std::ranges::find(reached, node->outputs[0], &Reached::value) != reached.end()) continue;
      reached.push_back({node->outputs[0], from.is_behind_product || multiplies});
    }
  }
  // A copy may be reached behind what is made of it.
  std::ranges::stable_sort(sums, std::greater(), [](const Value* sum) { return sum->producer->id; });
  return sums;
}

/// BLOCKS in the order in which their scores, or else their values, were cut out of others, where that is known: these are then
/// seen as joined again.
std::vector<Block> in_order(std::vector<Block> blocks, Facts& facts) {
  for (Value* Block::* part : {&Block::scores, &Block::values}) {
    std::map<const Value*, int64_t> places;
    for (const Block& block : blocks)
      if (const auto cut = cut_range(*before_moves(*(block.*part), facts).value, facts); cut && cut->first.is_constant())
        places[block.*part] = cut->first.value();
    if (places.size() < blocks.size()) continue;
    std::ranges::stable_sort(blocks, {}, [&](const Block& block) { return places[block.*part]; });
    break;
  }
  return blocks;
}

/// BLOCKS' VALUE side by side, AXIS axes before the last, which may be made of all at once; null if they do not fit. What is
/// made stands above READER.
Value* all_of(const std::vector<Block>& blocks, Value* Block::* value, size_t axis, Node& reader, MatchContext& context) {
  Value* whole = blocks.front().*value;
  const MaybeShape shape = context.facts.shape(*whole);
  if (!shape || shape->size() <= axis) return nullptr;
  const size_t place = shape->size() - 1 - axis;
  std::vector<Value*> parts;
  for (const Block& block : blocks) parts.push_back(block.*value);
  if (Value* made = joined_parts(parts, place, reader, context)) return made;
  InnerValues inner(reader, context);
  for (size_t i = 1; i < parts.size() && whole; ++i)
    whole = side_by_side(*whole, *parts[i], static_cast<int64_t>(place), inner, context.facts);
  return whole;
}

}  // namespace

std::optional<KeyBlocks> key_blocks(Value& start, bool are_weighed, MatchContext& context) {
  for (Value* made : sums_behind(start, are_weighed, context.facts)) {
    if (context.no_blocks.contains(made)) continue;
    BlockReader reader(*made->producer, context);
    const std::vector<Block> blocks = in_order(reader.read(*made), context.facts);
    if (blocks.empty()) context.no_blocks.insert(made);
    // Sums in a wider type than V's are more exact than the operator, unless they are cast back.
    if (blocks.size() < (are_weighed ? 2U : 1U) || context.facts.type(*made) != context.facts.type(*blocks.front().values))
      continue;
    Value* scores = all_of(blocks, &Block::scores, 0, *made->producer, context);
    Value* values = all_of(blocks, &Block::values, 1, *made->producer, context);
    if (!scores || !values) continue;
    InnerValues inner(*made->producer, context);
    Value* weights = inner.build().node("Softmax", {scores}, {GraphBuilder::attribute("axis", int64_t{-1})});
    Value* product = inner.build().node("MatMul", {weights, values});
    KeyBlocks read{softmax_operator(*weights->producer, context), product->producer, made};
    if (const Value* moved = reader.moved(product); moved != product) {
      read.softmax.product = made->producer;
      read.softmax.moved = moved;
      read.softmax.divided = made;
    }
    if (!reader.stays_in_range()) read.softmax.exponent_offset = 0;
    read.softmax.exponent_power = reader.exponent_power();
    for (const Block& block : blocks.size() > 1 ? blocks : std::vector<Block>())
      read.softmax.key_blocks.push_back(context.facts.shape(*block.scores).known().back());
    return read;
  }
  return std::nullopt;
}

ProbabilityWalk walk_of(const KeyBlocks& blocks) {
  ProbabilityWalk walk;
  walk.product = blocks.product;
  walk.products = {blocks.product};
  walk.probabilities = blocks.softmax.output;
  walk.way = {blocks.softmax.output};
  walk.summed = blocks.made;
  walk.peeled.emplace_back(blocks.word);
  return walk;
}

}  // namespace attn_opt
