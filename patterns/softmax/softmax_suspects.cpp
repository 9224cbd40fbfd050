// What may be a softmax, told by few nodes, and what looks like one that cannot be read.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/probabilities/picked_softmax.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/peel_form.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/softmax_anchor.h"
#include "src/match/moved_from.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

bool is_one_of(const Node& node, std::initializer_list<std::string_view> op_types) {
  return std::ranges::any_of(op_types, [&node](std::string_view op_type) { return node.is(op_type); });
}

/// True if VALUE holds nothing but ones, or ones stand beside others in it.
bool has_ones(Value& value, Facts& facts) {
  const Node* maker = canonical(value, facts).producer;
  if (facts.uniform(value) == 1.0) return true;
  return maker && is_one_of(*maker, {"Concat", "Pad"}) &&
         std::ranges::any_of(maker->inputs, [&](Value* part) { return part && facts.uniform(*part) == 1.0; });
}

/// True if NODE adds up elements: a Reduce*, or a product with ones.
bool adds_up(const Node& node, Facts& facts) {
  if (node.is("ReduceSum") || node.is("ReduceL1") || node.is("ReduceMean") || node.is("ReduceSumSquare") || node.is("ReduceL2"))
    return true;
  return is_product(node) && std::ranges::any_of(node.inputs, [&](Value* input) {
           return node.inputs.size() == 1 || (input && has_ones(*input, facts));
         });
}

/// Nodes that may change nothing, looked through without knowing it.
constexpr int kMaxSuspectCopies = 8;

bool may_add_nothing(const Node& node) { return has(node, Trait::kAdds) || has(node, Trait::kMultiplies); }

/// may_be_number(), told by so many STEPS upwards.
bool may_be_number_within(int steps, const Value* value) {
  for (; steps > 0 && value; --steps) {
    if (!value->producer || is_one_of(*value->producer, {"Constant", "ConstantOfShape"})) return true;
    const Node& node = *value->producer;
    const bool takes_two = may_add_nothing(node) || node.is("Pow");
    if (!may_be_no_op(node) || (takes_two && !may_be_number_within(steps / 2, node.input(1)))) return false;
    value = node.input(0);
  }
  return false;
}

/// What a node may be in a softmax that is written out, by its operator.
enum Part : unsigned {
  kWeights = 1 << 0,         ///< exponentials or what is made of them
  kProduct = 1 << 1,         ///< with V, or a part or transpose of one
  kSum = 1 << 2,             ///< of exponentials
  kSumInWords = 1 << 3,      ///< the same in any words, as a product with ones is
  kReciprocal = 1 << 4,      ///< of a sum
  kWeightsInWords = 1 << 5,  ///< exponentials in words that models are full of: looked at where they are divided
};

constexpr OperatorMap<unsigned> kParts(std::to_array<OperatorMap<unsigned>::Row>({
    {"Exp", kWeights | kSumInWords | kReciprocal},
    {"Pow", kWeights | kReciprocal},
    {"Sqrt", kWeights | kSumInWords},
    {"Abs", kSumInWords},
    {"Softmax", kWeights},
    {"Sigmoid", kWeightsInWords},
    {"Elu", kWeightsInWords},
    {"Celu", kWeightsInWords},
    {"MatMul", kProduct | kSumInWords},
    {"Einsum", kProduct | kSumInWords},
    {"Gemm", kProduct},
    {"Concat", kProduct},
    {"Transpose", kProduct | kSumInWords},
    {"Reshape", kProduct | kSumInWords},
    {"Squeeze", kProduct | kSumInWords},
    {"Slice", kProduct | kSumInWords},
    {"Split", kProduct | kSumInWords},
    {"ReduceSum", kProduct | kSum | kSumInWords},
    {"ReduceL1", kSumInWords},
    {"ReduceMean", kSumInWords},
    {"AveragePool", kSumInWords},
    {"CumSum", kSumInWords},
    {"ReduceSumSquare", kSumInWords},
    {"ReduceL2", kSumInWords},
    {"Clip", kSumInWords},
    {"Gather", kSumInWords},
    {"Unsqueeze", kProduct | kSumInWords},
    {"Reciprocal", kReciprocal},
    {"Div", kReciprocal},
}));

/// Operators that may end a softmax; true: whatever they read.
constexpr OperatorMap<bool> kEnds(std::to_array<OperatorMap<bool>::Row>({
    {"Softmax", true},
    {"Exp", true},
    {"LpNormalization", true},
    {"Pow", false},
    {"Reciprocal", false},
    {"Sqrt", false},
    {"Concat", false},
    {"Slice", false},
    {"Gather", false},
    {"Div", false},
    {"Mul", false},
}));

/// All that the nodes may be which made VALUE, or what it may be a copy or the negative of: sums, products and choices may be
/// sums in words.
unsigned parts_in(const Value* value) {
  unsigned found = 0;
  for (int step = 0; step < kMaxSuspectCopies && value && value->producer; ++step) {
    const Node& node = *value->producer;
    const unsigned* parts = kParts.find(node);
    if (parts) found |= *parts;
    const bool is_choice = has(node, Trait::kSelects), adds_nothing = may_add_nothing(node);
    if (is_choice || adds_nothing) found |= kSumInWords;
    if (is_choice && node.is("Where")) {
      value = node.input(may_be_number(node.input(1)) ? 2 : 1);
      continue;
    }
    if (!may_be_no_op(node) && !node.is("Neg")) return found;
    value = node.input(node.input(1) && adds_nothing && may_be_number(node.input(0)) ? 1 : 0);
  }
  return found;
}

/// True if VALUE may be a sum of exponentials, told by first operands.
bool adds_up_exponentials(const Value* value) {
  for (int step = 0; step < kMaxSuspectCopies && value && value->producer; ++step, value = value->producer->input(0))
    if (value->producer->is("Exp") || (value->producer->is("Pow") && may_be_number(value->producer->input(0)))) return true;
  return false;
}

/// True if VALUE, which has PARTS, is what an Exp, a Pow or a Softmax makes, or may be that masked, or exponentials in other
/// words.
bool may_be_weights(const Value* value, unsigned parts) {
  if (parts & kWeights) return true;
  const auto is_of_weights = [](const Node& node) {
    return is_one_of(node, {"Mul", "Div", "Where", "Reciprocal", "Sqrt", "Pow"});
  };
  const Node* maker = value ? value->producer : nullptr;
  for (int step = 0; step < kMaxSuspectCopies && maker && may_be_no_op(*maker); ++step) {
    const bool adds = may_add_nothing(*maker), adds_to_second = adds && may_be_number(maker->input(0));
    const bool is_by_number = (adds || has(*maker, Trait::kMultiplies)) && may_be_number(maker->input(1));
    if (!is_by_number && !adds_to_second && (is_of_weights(*maker) || adds)) break;
    const Value* copied = maker->input(adds_to_second ? 1 : 0);
    maker = copied ? copied->producer : nullptr;
  }
  if (!maker || !is_of_weights(*maker)) return false;
  const unsigned wanted = maker->is("Div") ? kWeights | kWeightsInWords : kWeights;
  return std::ranges::any_of(maker->inputs, [wanted](const Value* input) {
    const unsigned own = parts_in(input);
    return (own & wanted) != 0 || ((own & kReciprocal) != 0 && adds_up_exponentials(input));
  });
}

/// True if VALUE is what something is divided by a sum with.
bool may_be_inverse_sum(const Value* value) {
  const Node* maker = value ? value->producer : nullptr;
  if (!maker || !is_one_of(*maker, {"Reciprocal", "Div", "Pow"})) return false;
  return ((parts_in(maker->input(0)) | parts_in(maker->input(1))) & kSum) != 0;
}

/// True if VALUE is a weight, or made of one by moving and casting its elements, or the same number throughout.
bool is_weight(Value& value, Facts& facts) {
  const Value& source = moved_from(value, facts);
  return source.initializer || facts.constant(source) || facts.uniform(source);
}

bool is_computed_product(const Node& node, Facts& facts) {
  const auto is_computed = [&](Value* input) { return input && !is_weight(*input, facts); };
  if (node.is("Conv")) return node.input(0) && is_computed(node.input(0)) && is_computed(node.input(1));
  if (!makes_product(node, facts)) return false;
  if (const Node* pairs = pairs_multiplied(node, facts)) return std::ranges::all_of(pairs->inputs, is_computed);
  if (std::ranges::count_if(operands_of(node, facts), is_computed) < 2) return false;
  const auto letters = factors_added_up(node, facts) ? product_letters(node, facts) : std::nullopt;
  return !letters || !letters->pairs_rows();
}

bool makes_powers(const Node& node) { return is_one_of(node, {"Exp", "Pow"}); }

/// Follows weights to the products that they come to. Those of what is no product of queries and keys are followed by what
/// changes them in their places alone: further on, as in gates of features, whatever is computed comes to some product.
class Followers {
 public:
  Followers(Value& weights, bool are_of_scores, MatchContext& context)
      : context_(context), facts_(context.facts), are_of_scores_(are_of_scores), shape_(facts_.shape(weights)) {}

  const Node* unread(Value& weights) {
    values_.push_back({&weights, nullptr});
    const Node* found = nullptr;
    for (size_t i = 0; i < values_.size() && values_.size() < kMaxFollowers; ++i) {
      const Followed from = values_[i];
      for (const Use& use : from.value->uses) {
        Node* node = use.node;
        if (!node || !node->output(0) || node->is("Shape")) continue;
        if (is_softmax(*node)) return nullptr;
        const bool is_sum = adds_up(*node, facts_);
        if (!found && (is_computed_product(*node, facts_) || weighs_rows(*node, from) || weighs_constants(*node, is_sum)))
          found = from.by ? from.by : node;
        enter_bodies(*node, static_cast<size_t>(use.input), from);
        if (!are_of_scores_ && !keeps_places(*node)) continue;
        if ((is_sum || !is_product(*node) || mixes(*node)) && goes_on(*node, use.input, from)) enter(*node, from, is_sum);
      }
      if (from.value->is_output) leave_body(from);
    }
    return found;
  }

 private:
  static constexpr size_t kMaxFollowers = 48;

  struct Followed {
    Value* value = nullptr;
    const Node* by = nullptr;  ///< what added them up, or was first
    bool is_sum = false;
  };

  /// True if NODE, a product, mixes weights of several heads, queries or keys by constants.
  bool mixes(const Node& node) {
    const MaybeShape made = facts_.shape(*node.outputs[0]);
    return shape_ && made && std::ranges::is_permutation(*made, *shape_);
  }

  bool keeps_places(const Node& node) {
    const MaybeShape made = facts_.shape(*node.outputs[0]);
    return has(node, Trait::kElementwise) && shape_ && made && *made == *shape_;
  }

  /// True if NODE multiplies weights of scores, FROM, with rows of other axes than theirs, as V has features: whatever adds
  /// that up makes it a product. A mask has none.
  bool weighs_rows(const Node& node, const Followed& from) {
    if (!are_of_scores_ || from.is_sum || !node.is("Mul")) return false;
    const MaybeShape own = facts_.shape(*from.value), made = facts_.shape(*node.outputs[0]);
    const bool is_enlarged = own && made && own->size() == made->size() && *own != *made;
    return is_enlarged && std::ranges::none_of(node.inputs, [&](Value* input) { return is_weight(*input, facts_); });
  }

  /// True if NODE multiplies weights of scores with a V that the model holds.
  bool weighs_constants(const Node& node, bool is_sum) {
    return are_of_scores_ && !is_sum && makes_product(node, facts_) && !mixes(node);
  }

  /// True if another anchor has what NODE makes.
  bool is_softmax(Node& node) { return (may_be_softmax(node) || node.is("Einsum")) && multiple_of_softmax_at(node, context_); }

  /// False where other exponentials are told of for the same: those that are divided, or the first of two factors.
  bool goes_on(const Node& node, int input, const Followed& from) {
    if (makes_powers(node) && (node.is("Exp") || input == 1) && is_of_scores(*node.outputs[0], facts_)) return false;
    return std::ranges::none_of(node.inputs, [&](Value* other) {
      if (!other || other == from.value || (!from.is_sum && (input == 0 || other != node.inputs[0]))) return false;
      const auto is_other = [this](Value& source) { return is_exponential(source, context_) && is_of_scores(source, facts_); };
      return nearest_source(*other, is_other, facts_) != nullptr;
    });
  }

  void enter(const Node& node, const Followed& from, bool is_sum) {
    for (Value* made : node.outputs) add(made, node, from, is_sum);
  }

  /// FROM is input NUMBER of NODE, a Loop or Scan, and so of its body.
  void enter_bodies(const Node& node, size_t number, const Followed& from) {
    for (const Graph* body : node.bodies)
      if (number < body->inputs().size()) add(body->inputs()[number], node, from, false);
  }

  /// What the node has of FROM, an output of its body, is read like it. A branch that is taken in every run is looked at where
  /// it is inlined.
  void leave_body(const Followed& from) {
    const Graph& body = *from.value->graph;
    const Node* owner = body.owner();
    if (!owner || (owner->is("If") && owner->input(0) && facts_.constant(*owner->inputs[0]))) return;
    const size_t conditions = owner->is("Loop") ? 1 : 0;
    for (size_t i = conditions; i < body.outputs().size(); ++i)
      if (body.outputs()[i] == from.value) add(owner->output(i - conditions), *owner, from, false);
  }

  void add(Value* made, const Node& by, const Followed& from, bool is_sum) {
    if (!made || std::ranges::find(values_, made, &Followed::value) != values_.end()) return;
    const bool is_first_sum = is_sum && !from.is_sum;
    values_.push_back({made, from.by && !is_first_sum ? from.by : &by, from.is_sum || is_sum});
  }

  MatchContext& context_;
  Facts& facts_;
  bool are_of_scores_;
  MaybeShape shape_;
  std::vector<Followed> values_;
};

/// True for what products of parts of probabilities are made by, and added up.
bool may_multiply_part(const Node& node) {
  return node.is("MatMul") || node.is("Einsum") || node.is("Add") || node.is("Sum") || node.is("Split") || node.is("Slice");
}

/// True if VALUE may be the probabilities of some keys, or a copy or product of them: shares, or Sigmoid of the difference of
/// two.
bool may_be_part_of_softmax(const Value* value) {
  for (int step = 0; step < kMaxSuspectCopies && value && value->producer; ++step, value = value->producer->input(0)) {
    const Node& maker = *value->producer;
    if (maker.is("Sigmoid") || (!maker.is("Concat") && may_be_softmax(maker))) return true;
    if (!may_be_no_op(maker) && !may_multiply_part(maker)) break;
  }
  return false;
}

}  // namespace

bool may_be_number(const Value* value) { return may_be_number_within(kMaxSuspectCopies, value); }

bool may_be_softmax(const Node& node) {
  const bool* is_softmax = kEnds.find(node);
  if (!is_softmax) return false;
  if (*is_softmax) return true;
  const Value *first = node.input(0), *second = node.input(1);
  if (node.is("Slice") || node.is("Gather")) return may_pick_of_softmax(node);
  if (node.is("Pow")) return may_be_number(first) || adds_up_exponentials(first);
  if (node.is("Sqrt")) return (parts_in(first) & kWeights) != 0;
  if (node.is("Reciprocal")) return adds_up_exponentials(first);
  if (node.is("Concat") && second) return may_be_part_of_softmax(first) || may_be_part_of_softmax(second);
  const bool divides = node.is("Div");
  if (!divides && !node.is("Mul")) return false;
  const unsigned one = parts_in(first), other = parts_in(second);
  const bool may_be_divided = (one & (kProduct | kWeightsInWords)) != 0;
  if (divides)
    return (other & kSum) || (may_be_divided && (other & (kSumInWords | kWeightsInWords))) || may_be_weights(first, one) ||
           (may_be_number(first) && adds_up_exponentials(second));
  const bool is_behind_product = ((one & kProduct) && (other & kReciprocal)) || ((other & kProduct) && (one & kReciprocal));
  return is_behind_product || may_be_weights(first, one) || may_be_weights(second, other) || may_be_inverse_sum(first) ||
         may_be_inverse_sum(second);
}

bool is_of_scores(Value& value, Facts& facts) {
  return may_be_scores(value, [&](const Node& product) { return is_computed_product(product, facts); }, facts);
}

bool weighs_choices(Value& scores, Facts& facts) {
  const Value* seen = &canonical(scores, facts);
  for (int step = 0; step < kMaxSuspectCopies && seen->producer; ++step) {
    const Node& node = *seen->producer;
    if (node.is("TopK")) return seen->output == 0 && !is_of_scores(*node.inputs[0], facts);
    if (!has(node, Trait::kMoves) && !node.is("Cast")) return false;
    seen = &canonical(*node.inputs[0], facts);
  }
  return false;
}

const Node* unread_weights(Value& weights, MatchContext& context) {
  return Followers(weights, is_of_scores(weights, context.facts), context).unread(weights);
}

const Node* unread_exponentials(const Node& node, MatchContext& context) {
  if (!makes_powers(node) || !is_of_scores(*node.outputs[0], context.facts)) return nullptr;
  return unread_weights(*node.outputs[0], context);
}

}  // namespace attn_opt
