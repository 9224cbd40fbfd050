#include "patterns/softmax/softmax_of_parts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/joined_parts.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/readers.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/heads_in_rows.h"
#include "patterns/softmax/exponentials.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// True if ONE and OTHER add up to 1: Sigmoid(d) and Sigmoid(-d), or x and 1 - x.
bool add_up_to_one(Value& one, Value& other, Value& difference_of_one, Facts& facts) {
  const Node* node = canonical(other, facts).producer;
  const std::vector<Addend> terms =
      FormReader(facts, true).linear_terms(node && node->is("Sigmoid") ? *node->inputs[0] : other);
  Value *first = nullptr, *second = nullptr, *minuend = nullptr, *subtrahend = nullptr;
  if (node && node->is("Sigmoid"))
    return difference(any(&first), any(&second))(*node->inputs[0], facts) &&
           difference(any(&minuend), any(&subtrahend))(difference_of_one, facts) &&
           &canonical(*first, facts) == &canonical(*subtrahend, facts) &&
           &canonical(*second, facts) == &canonical(*minuend, facts);
  const auto is_term = [&](const Addend& term) {
    return (term.coefficient == 1 && facts.uniform(*term.value) == 1.0) ||
           (term.coefficient == -1 && term.value == &canonical(one, facts));
  };
  return terms.size() == 2 && std::ranges::all_of(terms, is_term) && terms[0].coefficient != terms[1].coefficient;
}

/// The softmax of two keys.
///
///   Concat(Sigmoid(a - b), 1 - Sigmoid(a - b))  =>  Softmax(Concat(a, b))
std::optional<SoftmaxSite> of_two_keys(const Node& concat, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  const MaybeShape shape = facts.shape(*concat.outputs[0]);
  const auto axis = shape ? axis_in(concat.int_attribute("axis", 0), shape->size()) : std::nullopt;
  if (concat.inputs.size() != 2 || !axis) return std::nullopt;
  const auto is_column = [&](Value* part) {
    const MaybeShape own = facts.shape(*part);
    return own && own->size() == shape->size() && (*own)[*axis].is(1);
  };
  for (const size_t at : {0, 1}) {
    Value &one = *concat.inputs[at], &other = *concat.inputs[1 - at];
    const Node* sigmoid = canonical(one, facts).producer;
    Value *first = nullptr, *second = nullptr;
    if (!sigmoid || !sigmoid->is("Sigmoid") || !is_column(&one) || !is_column(&other)) continue;
    if (!difference(any(&first), any(&second))(*sigmoid->inputs[0], facts) || !is_column(first) || !is_column(second)) continue;
    if (!add_up_to_one(one, other, *sigmoid->inputs[0], facts)) continue;
    if (at == 1) std::swap(first, second);
    const std::vector<Value*> keys{first, second};
    Value* scores = joined_parts(keys, *axis, reader, context);
    if (!scores) scores = InnerValues(reader, context).concat(keys, static_cast<int64_t>(*axis));
    SoftmaxSite site{scores, concat.outputs[0], nullptr, shape->size() - 1 - *axis, std::nullopt};
    site.hides_infinity = true;
    return site;
  }
  return std::nullopt;
}

/// The node that makes VALUE, or the product that this is with its last two axes exchanged.
const Node* product_in(Value& value, MatchContext& context) {
  Node* node = canonical(value, context.facts).producer;
  const Value* turned = node && node->is("Transpose") ? turned_product(*node, context) : nullptr;
  return turned ? turned->producer : node;
}

/// Where the operand of PRODUCT that is cut out of another begins there; 0 if none is, or that is not known.
int64_t place_in_whole(const Node& product, Facts& facts) {
  for (Value* operand : product.inputs)
    if (const auto range = cut_range(canonical(*operand, facts), facts); range && range->first.is_constant())
      return range->first.value();
  return 0;
}

/// The product of all keys that SUM adds up, whose operands are cut out of others along the keys; null if it adds up anything
/// else.
///
///   p1 v1 + p2 v2  =>  Concat(p1, p2) Concat(v1, v2)
Node* joined_product_of_keys(const Node& sum, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  const Node* first =
      sum.inputs.size() > 1 && !sum.is("Sub") && !sum.is("Mean") ? product_in(*sum.inputs[0], context) : nullptr;
  const auto letters = first && is_product(*first) ? product_letters(*first, facts) : std::nullopt;
  const std::string keys = letters && letters->operands.size() == 2 ? letters->contracted(0) : "";
  if (keys.size() != 1) return nullptr;
  std::vector<const Node*> products;
  for (Value* input : sum.inputs) {
    products.push_back(product_in(*input, context));
    const Node* product = products.back();
    if (!product || product->op() != first->op() || product->inputs.size() != 2 ||
        !have_same_attributes(*product, *first, facts))
      return nullptr;
  }
  // They are added up in any order.
  std::ranges::stable_sort(products, {}, [&](const Node* product) { return place_in_whole(*product, facts); });
  std::vector<Value*> wholes;
  for (const size_t operand : {0, 1}) {
    std::vector<Value*> parts;
    for (const Node* product : products) parts.push_back(product->inputs[operand]);
    wholes.push_back(joined_parts(parts, letters->operands[operand].find(keys), reader, context));
    if (!wholes.back()) return nullptr;
  }
  return InnerValues(reader, context).again(*first, wholes)->producer;
}

/// PRODUCT, unplaced, of probabilities, which CONCAT makes; nullopt if it is of none.
std::optional<KeyBlocks> product_of_shares(Node& product, const Node& concat, MatchContext& context) {
  for (Value* operand : product.inputs) {
    Value& shares = canonical(*operand, context.facts);
    const bool may_be = shares.producer && may_be_softmax(*shares.producer);
    auto site = may_be ? softmax_at(*shares.producer, context) : std::nullopt;
    if (site && !site->divided && site->output == &shares)
      return KeyBlocks{*std::move(site), &product, concat.outputs[0], "Concat(products)"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<SoftmaxSite> softmax_of_parts(Node& concat, MatchContext& context) {
  if (auto site = of_two_keys(concat, concat, context)) return site;
  Value* shares = joined_parts(concat, concat, context);
  const bool may_be = shares && shares->producer && may_be_softmax(*shares->producer);
  auto site = may_be ? softmax_at(*shares->producer, context) : std::nullopt;
  if (!site || site->divided) return std::nullopt;
  site->output = concat.outputs[0];
  return site;
}

std::optional<KeyBlocks> product_in_parts(Node& concat, MatchContext& context) {
  Value* whole = joined_parts(concat, concat, context);
  Node* maker = whole && whole->is_new ? whole->producer : nullptr;
  if (maker && has(*maker, Trait::kAdds)) maker = joined_product_of_keys(*maker, concat, context);
  if (!maker) return std::nullopt;
  if (is_product(*maker)) return product_of_shares(*maker, concat, context);
  auto site = may_be_softmax(*maker) ? softmax_at(*maker, context) : std::nullopt;
  if (!site || site->divided != whole) return std::nullopt;
  Node* product = site->product->outputs[0]->producer;
  site->product = &concat;
  site->divided = concat.outputs[0];
  return KeyBlocks{*std::move(site), product, concat.outputs[0], "Concat(parts)"};
}

bool is_part_of_product(Value& value, BlocksMatch match, MatchContext& context) {
  constexpr size_t kMostPartsLookedAt = 8;
  const Readers readers = readers_of(value, context.facts);
  Node* concat = readers.only_one() ? readers.all[0].node : nullptr;
  if (!concat || !concat->is("Concat") || concat->graph != value.graph || concat->inputs.size() > kMostPartsLookedAt)
    return false;
  auto blocks = product_in_parts(*concat, context);
  return blocks && match(*concat, *blocks, context);
}

}  // namespace attn_opt
