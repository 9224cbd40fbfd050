#include "patterns/products/joined_product.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/product_letters.h"
#include "patterns/readers.h"
#include "patterns/scores/form_reader.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr int kMaxFactors = 6;
constexpr int kMaxMoves = 3;

bool may_be_joined(const Node& node) { return node.is("MatMul") || node.is("Einsum") || is_fused_matmul(node); }

/// Cheap, since this is asked of every sum: false unless VALUE may be a product, or a number times one.
bool may_be_scaled_product(Value* value, Facts& facts, int factors = kMaxFactors) {
  const Node* node = value && factors > 0 ? canonical(*value, facts).producer : nullptr;
  if (!node) return false;
  if (may_be_joined(*node)) return true;
  const bool may_scale = has(*node, Trait::kMultiplies) || node->is("Neg") || node->is("Cast") || node->is("Transpose");
  return may_scale &&
         std::ranges::any_of(node->inputs, [&](Value* input) { return may_be_scaled_product(input, facts, factors - 1); });
}

/// A product of two operands, and what is done to it before it is added: it is multiplied with SCALE, and its axes are moved.
struct AddedProduct {
  Node* node = nullptr;
  double scale = 1;
  std::vector<int64_t> perm = {};  ///< of one Transpose; empty: none
  ProductLetters letters = {};     ///< the result as it lies where it is added
  char summed = kUnitAxis;         ///< the only letter that is added up
  double own = 1;                  ///< what NODE itself multiplies with

  /// What the product is multiplied with in units of that of ONE, as NODE of ONE makes it.
  double scale_beside(const AddedProduct& one) const { return scale * own / (one.scale * one.own); }
};

/// PRODUCT as it is; nullopt unless it adds up one axis of two operands of several axes.
std::optional<AddedProduct> unmoved_product(Node& product, Facts& facts) {
  const auto letters = product.inputs.size() == 2 ? product_letters(product, facts) : std::nullopt;
  if (!letters || letters->operands.size() != 2) return std::nullopt;
  const std::string summed = letters->contracted(0);
  const bool has_axes = letters->operands[0].size() >= 2 && letters->operands[1].size() >= 2;
  const auto factor = factor_of_sum(product, facts);
  if (summed.size() != 1 || !has_axes || !factor || *factor == 0) return std::nullopt;
  return AddedProduct{&product, 1, {}, *letters, summed[0], *factor};
}

/// True if one node of the model alone reads VALUE, whatever was made for a match.
bool is_read_once(Value& value, Facts& facts) {
  const Readers readers = readers_of(value, facts);
  return !readers.is_output && std::ranges::count_if(readers.all, [](const Reader& reader) {
                                 return !reader.node || reader.node->placement != Placement::kUnplaced;
                               }) <= 1;
}

/// The product that VALUE is a number times, perhaps moved by Transposes, where nothing else reads what is between; nullopt if
/// there is none.
std::optional<AddedProduct> product_in(Value& value, FormReader& forms, Facts& facts, int moves = kMaxMoves) {
  const auto is_end = [](const Value& end) {
    return end.producer && (may_be_joined(*end.producer) || end.producer->is("Transpose"));
  };
  Value* end = nearest_source(value, is_end, facts);
  if (!end || !is_read_once(*end, facts) || !is_read_once(value, facts)) return std::nullopt;
  const auto form = end == &canonical(value, facts) ? core_form() : forms.in_terms_of(*end, value);
  if (!form || !is_scale(*form) || !std::isfinite(form->front().scale)) return std::nullopt;
  const std::vector<int64_t> perm = permutation(*end->producer, facts);
  auto product = may_be_joined(*end->producer) ? unmoved_product(*end->producer, facts)
                 : moves > 0 && !perm.empty()  ? product_in(*end->producer->inputs[0], forms, facts, moves - 1)
                                               : std::nullopt;
  if (!product) return std::nullopt;
  product->scale *= form->front().scale;
  if (perm.empty()) return product;
  const AddedProduct before = *product;
  product->perm.clear();
  product->letters.result.clear();
  for (const int64_t axis : perm) {
    product->perm.push_back(before.perm.empty() ? axis : before.perm[static_cast<size_t>(axis)]);
    product->letters.result.push_back(before.letters.result[static_cast<size_t>(axis)]);
  }
  return product;
}

/// The terms of the operands of PRODUCT in the letters of AS, whose result has the same axes; none if there are others.
std::vector<std::string> terms_as(const AddedProduct& product, const AddedProduct& as) {
  const std::string from = product.letters.result + product.summed, to = as.letters.result + as.summed;
  std::vector<std::string> terms = product.letters.operands;
  if (from.size() != to.size()) return {};
  for (std::string& term : terms)
    for (char& letter : term) {
      const size_t place = from.find(letter);
      if (place == std::string::npos && letter != kUnitAxis) return {};
      letter = place == std::string::npos ? letter : to[place];
    }
  return terms;
}

/// True if axes with the letters FROM can be moved to lie as TO has them.
bool may_move(const std::string& from, const std::string& to) {
  const bool has_units = has_letter(from, kUnitAxis) || has_letter(to, kUnitAxis);
  return from == to || (!has_units && std::ranges::is_permutation(from, to));
}

/// VALUE, whose axes have the letters FROM, with them as in TO.
Value* moved(Value* value, const std::string& from, const std::string& to, InnerValues& inner) {
  std::vector<int64_t> perm;
  for (const char letter : to) perm.push_back(static_cast<int64_t>(from.find(letter)));
  return from == to ? value : inner.transposed(value, perm);
}

/// VALUE with the sizes that LARGER has along other axes than AXIS where its own are 1; null if others differ.
Value* enlarged(Value& value, Value& larger, int64_t axis, InnerValues& inner, Facts& facts) {
  const MaybeShape own = facts.shape(value), whole = facts.shape(larger);
  if (!own || !whole || own->size() != whole->size()) return nullptr;
  std::vector<Value*> sizes;
  bool is_smaller = false;
  for (size_t i = 0; i < own->size(); ++i) {
    const bool is_equal = static_cast<int64_t>(i) == axis || (*own)[i] == (*whole)[i] || (*whole)[i].is(1);
    if (!is_equal && !(*own)[i].is(1)) return nullptr;
    is_smaller |= !is_equal;
    sizes.push_back(is_equal ? inner.build().ints({1}) : inner.size(larger, static_cast<int64_t>(i)));
  }
  return is_smaller ? inner.build().node("Expand", {&value, inner.concat(sizes, 0)}) : &value;
}

}  // namespace

Value* side_by_side(Value& one, Value& other, int64_t axis, InnerValues& inner, Facts& facts) {
  const Node *maker = canonical(one, facts).producer, *twin = canonical(other, facts).producer;
  const std::vector<int64_t> perm = maker && twin ? permutation(*maker, facts) : std::vector<int64_t>();
  if (!perm.empty() && perm == permutation(*twin, perm.size())) {
    Value* joined = side_by_side(*maker->inputs[0], *twin->inputs[0], perm[static_cast<size_t>(axis)], inner, facts);
    return joined ? inner.again(*maker, 0, joined) : nullptr;
  }
  Value *first = enlarged(one, other, axis, inner, facts), *second = enlarged(other, one, axis, inner, facts);
  return first && second ? inner.concat({first, second}, axis) : nullptr;
}

namespace {

/// A value whose axes have the letters TERM.
struct Lettered {
  Value* value;
  std::string term;
};

/// True if ONE and OTHER are the same, however their axes lie.
bool are_same(const Lettered& one, const Lettered& other, Facts& facts) {
  const auto source_of = [&](const Lettered& lettered) {
    const Untransposed source = untransposed(*lettered.value, facts);
    std::string term = lettered.term;
    for (size_t axis = 0; axis < source.at.size() && source.at.size() == term.size(); ++axis)
      term[static_cast<size_t>(source.at[axis])] = lettered.term[axis];
    return std::pair(&canonical(*source.value, facts), term);
  };
  return source_of(one) == source_of(other);
}

/// VALUE by one Transpose of what Transposes make it of, which others may be made of too.
Value& moved_at_once(Value& value, InnerValues& inner, Facts& facts) {
  const Untransposed source = untransposed(value, facts);
  return std::ranges::is_sorted(source.at) ? *source.value : *inner.transposed(source.value, source.at);
}

/// MADE in the place of PRODUCT, moved and multiplied as that is.
ScaledProduct where_it_is_added(Value* made, const AddedProduct& product, InnerValues& inner) {
  return {product.perm.empty() ? made : inner.transposed(made, product.perm), product.scale};
}

/// ONE and OTHER, which share an operand, as one product of the sum of what they do not share, if that may be summed.
///
///   a * Q K^T + b * R K^T  =>  a * (Q + b / a * R) K^T
std::optional<ScaledProduct> with_summed_operand(const AddedProduct& one, const AddedProduct& other, const SummedSides& sides,
                                                 InnerValues& inner, Facts& facts) {
  const std::vector<std::string>&terms = one.letters.operands, twin_terms = terms_as(other, one);
  if (twin_terms.empty()) return std::nullopt;
  const char query = one.letters.result[one.letters.result.size() - 1 - sides.queries];
  for (const size_t shared : {0, 1})
    for (const size_t twin_shared : {0, 1}) {
      const std::string &term = terms[1 - shared], &twin_term = twin_terms[1 - twin_shared];
      std::string placed = term;  // the axes of TWIN_TERM as TERM has them
      std::erase_if(placed, [&](char letter) { return !has_letter(twin_term, letter); });
      const bool may_sum = has_letter(term, query) || sides.may_sum_keys;
      if (!may_sum || !may_move(twin_term, placed) || !term.ends_with(placed)) continue;
      if (!are_same({one.node->inputs[shared], terms[shared]}, {other.node->inputs[twin_shared], twin_terms[twin_shared]},
                    facts))
        continue;
      Value* more = moved(other.node->inputs[1 - twin_shared], twin_term, placed, inner);
      more = inner.scaled(more, other.scale_beside(one));
      std::vector<Value*> operands(2);
      operands[shared] = &moved_at_once(*one.node->inputs[shared], inner, facts);
      operands[1 - shared] = inner.sum(one.node->inputs[1 - shared], more);
      Value* made = inner.again(*one.node, operands);
      ScaledProduct joined = where_it_is_added(made, one, inner);
      joined.sums_operands = true;
      return joined;
    }
  return std::nullopt;
}

/// a * Q K^T + b * R T^T  =>  a * Concat(Q, b / a * R) Concat(K, T)^T
std::optional<ScaledProduct> with_joined_features(const AddedProduct& one, const AddedProduct& other, InnerValues& inner,
                                                  Facts& facts) {
  const Node &product = *one.node, &twin = *other.node;
  const std::vector<std::string>&terms = one.letters.operands, twin_terms = terms_as(other, one);
  if (twin_terms.empty()) return std::nullopt;
  const size_t first_at = may_move(twin_terms[0], terms[0]) ? 0 : 1;
  if (!may_move(twin_terms[first_at], terms[0]) || !may_move(twin_terms[1 - first_at], terms[1])) return std::nullopt;
  Value* first = moved(twin.inputs[first_at], twin_terms[first_at], terms[0], inner);
  Value* second = moved(twin.inputs[1 - first_at], twin_terms[1 - first_at], terms[1], inner);
  const auto axis_in = [&](const std::string& term) { return static_cast<int64_t>(term.find(one.summed)); };
  first = inner.scaled(first, other.scale_beside(one));
  Value* joined = side_by_side(*product.inputs[0], *first, axis_in(terms[0]), inner, facts);
  second = joined ? side_by_side(*product.inputs[1], *second, axis_in(terms[1]), inner, facts) : nullptr;
  if (!second) return std::nullopt;
  Value* made = inner.again(product, {joined, second});
  return where_it_is_added(made, one, inner);
}

}  // namespace

std::optional<ScaledProduct> joined_product(Node& node, const SummedSides& sides, MatchContext& context) {
  if (node.inputs.size() != 2 || !has(node, Trait::kAdds)) return std::nullopt;
  Facts& facts = context.facts;
  if (!may_be_scaled_product(node.inputs[0], facts) || !may_be_scaled_product(node.inputs[1], facts)) return std::nullopt;
  FormReader forms(node, context);
  auto one = product_in(*node.inputs[0], forms, facts), other = product_in(*node.inputs[1], forms, facts);
  if (!one || !other || one->node == other->node || one->scale == 0 || other->scale == 0) return std::nullopt;
  one->scale *= times_added(node, 0);
  other->scale *= times_added(node, 1);
  if (facts.type(*one->node->inputs[0]) != facts.type(*other->node->inputs[0])) return std::nullopt;
  const double times = other->scale_beside(*one);
  if (std::abs(times) > 1 || (times == -1 && other->scale * other->own > 0)) std::swap(one, other);
  InnerValues inner(node, context);
  for (const bool is_turned : {false, true})
    if (auto made = with_summed_operand(is_turned ? *other : *one, is_turned ? *one : *other, sides, inner, facts)) return made;
  return with_joined_features(*one, *other, inner, facts);
}

Value* products_first(Node& node, const SummedSides& sides, MatchContext& context) {
  Facts& facts = context.facts;
  if (!node.is("Add")) return nullptr;
  for (const size_t at : {0, 1}) {
    const Node* sum = canonical(*node.inputs[at], facts).producer;
    if (!sum || !sum->is("Add") || !may_be_scaled_product(node.inputs[1 - at], facts) || !is_read_once(*node.inputs[at], facts))
      continue;
    const bool is_first = may_be_scaled_product(sum->inputs[0], facts);
    if (is_first == may_be_scaled_product(sum->inputs[1], facts)) continue;
    InnerValues inner(node, context);
    Value* products = inner.sum(node.inputs[1 - at], sum->inputs[is_first ? 0 : 1]);
    if (joined_product(*products->producer, sides, context)) return inner.sum(products, sum->inputs[is_first ? 1 : 0]);
  }
  return nullptr;
}

}  // namespace attn_opt
