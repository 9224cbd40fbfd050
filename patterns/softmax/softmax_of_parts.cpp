#include "patterns/softmax/softmax_of_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
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
#include "patterns/same_number.h"
#include "patterns/scores/exponential_ratio.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/heads_in_rows.h"
#include "patterns/softmax/exponentials.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// a and b of a - b, which DIFFERENCE says as a value and a factor; nulls if it is of other terms.
std::array<Value*, 2> terms_of_difference(const ExponentialOf& difference_of, Facts& facts) {
  Value *first = nullptr, *second = nullptr;
  if (std::abs(difference_of.factor) == 1 && difference(any(&first), any(&second))(*difference_of.value, facts))
    return difference_of.factor == 1 ? std::array{first, second} : std::array{second, first};
  const std::vector<Addend> terms = FormReader(facts, true).linear_terms(*difference_of.value);
  for (const size_t at : {0, 1})
    if (terms.size() == 2 && std::abs(terms[at].coefficient * difference_of.factor - 1) <= kSameNumber &&
        std::abs(terms[1 - at].coefficient * difference_of.factor + 1) <= kSameNumber)
      return {terms[at].value, terms[1 - at].value};
  return {nullptr, nullptr};
}

/// What stands for the parts that VALUE is made of; VALUE itself if it is made of none.
Value& whole_of(Value& value, Node& reader, MatchContext& context) {
  const Node* node = canonical(value, context.facts).producer;
  Value* whole = node ? joined_parts(*node, reader, context) : nullptr;
  return whole ? *whole : value;
}

/// The softmax of two keys, in whatever words a sigmoid is.
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
  if (!std::ranges::all_of(concat.inputs, is_column)) return std::nullopt;
  const auto odds =
      odds_of_two(whole_of(*concat.inputs[0], reader, context), whole_of(*concat.inputs[1], reader, context), facts);
  const std::array<Value*, 2> keys = odds ? terms_of_difference(*odds, facts) : std::array<Value*, 2>();
  if (!keys[0] || !is_column(keys[0]) || !is_column(keys[1])) return std::nullopt;
  Value* scores = joined_parts(keys, *axis, reader, context);
  if (!scores) scores = InnerValues(reader, context).concat({keys[0], keys[1]}, static_cast<int64_t>(*axis));
  SoftmaxSite site{scores, concat.outputs[0], nullptr, shape->size() - 1 - *axis, std::nullopt};
  site.hides_infinity = true;
  return site;
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
  // Parts of probabilities in their order are a copy of these, which their own softmax is told by.
  if (&canonical(*concat.outputs[0], context.facts) != concat.outputs[0]) return std::nullopt;
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
  Value* part = &value;
  for (int step = 0; step < kMaxTogether; ++step) {
    const Readers readers = readers_of(*part, context.facts);
    Node* concat = readers.only_one() ? readers.all[0].node : nullptr;
    if (!concat || !concat->is("Concat") || concat->graph != value.graph || concat->inputs.size() > kMostPartsLookedAt) break;
    auto blocks = product_in_parts(*concat, context);
    if (blocks && match(*concat, *blocks, context)) return true;
    part = concat->outputs[0];
  }
  return false;
}

}  // namespace attn_opt
