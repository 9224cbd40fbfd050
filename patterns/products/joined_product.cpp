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

constexpr int kMaxFactors = 3;

bool may_be_joined(const Value& value) {
  return value.producer && (value.producer->is("MatMul") || value.producer->is("Einsum"));
}

/// Cheap, since this is asked of every sum: false unless VALUE may be a product, or a number times one.
bool may_be_scaled_product(const Value* value, int factors = kMaxFactors) {
  const Node* node = value ? value->producer : nullptr;
  if (!node || factors == 0) return false;
  if (may_be_joined(*value)) return true;
  const bool may_scale = has(*node, Trait::kMultiplies) || node->is("Neg") || node->is("Cast") || node->is("Identity");
  return may_scale &&
         std::ranges::any_of(node->inputs, [&](const Value* input) { return may_be_scaled_product(input, factors - 1); });
}

/// The product that VALUE, which NODE alone reads, is a number times; nullopt if there is none.
std::optional<ScaledProduct> product_in(Value& value, FormReader& forms, Facts& facts) {
  Value* product = nearest_source(value, may_be_joined, facts);
  if (!product || product->producer->inputs.size() != 2 || !readers_of(*product, facts).only_one() ||
      !readers_of(value, facts).only_one())
    return std::nullopt;
  if (product == &canonical(value, facts)) return ScaledProduct{product, 1};
  const auto form = forms.in_terms_of(*product, value);
  if (!form || !is_scale(*form) || !std::isfinite(form->front().scale)) return std::nullopt;
  return ScaledProduct{product, form->front().scale};
}

/// The axes of the operands of PRODUCT that it sums over, counted from the first; nullopt if it is no product of two operands
/// that sums over one.
struct SummedAxes {
  int64_t first = 0, second = 0;
  std::string others;  ///< which axes are which

  bool operator==(const SummedAxes&) const = default;
};

std::optional<SummedAxes> summed_axes(const Node& product, Facts& facts) {
  const MaybeShape one = facts.shape(*product.inputs[0]), other = facts.shape(*product.inputs[1]);
  if (!one || !other || one->size() < 2 || other->size() < 2) return std::nullopt;
  const auto letters = product_letters(product, facts);
  const std::string summed = letters && letters->operands.size() == 2 ? letters->contracted(0) : "";
  if (summed.size() != 1) return std::nullopt;
  const std::string &one_term = letters->operands[0], &other_term = letters->operands[1];
  SummedAxes axes{static_cast<int64_t>(one_term.find(summed)), static_cast<int64_t>(other_term.find(summed)),
                  one_term + "," + other_term + ">" + letters->result};
  std::ranges::replace(axes.others, summed[0], ' ');
  return axes;
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

std::optional<ScaledProduct> joined_product(Node& node, MatchContext& context) {
  if (node.inputs.size() != 2 || !has(node, Trait::kAdds)) return std::nullopt;
  if (!may_be_scaled_product(node.inputs[0]) || !may_be_scaled_product(node.inputs[1])) return std::nullopt;
  Facts& facts = context.facts;
  FormReader forms(node, context);
  auto one = product_in(*node.inputs[0], forms, facts), other = product_in(*node.inputs[1], forms, facts);
  if (!one || !other || one->value == other->value || one->scale == 0) return std::nullopt;
  const Node &product = *one->value->producer, &twin = *other->value->producer;
  const auto axes = summed_axes(product, facts), twin_axes = summed_axes(twin, facts);
  const DataType type = facts.type(*twin.inputs[0]);
  if (product.op() != twin.op() || !axes || axes != twin_axes || facts.type(*product.inputs[0]) != type) return std::nullopt;
  InnerValues inner(node, context);
  const double factor = (node.is("Sub") ? -1 : 1) * other->scale / one->scale;
  Value* first = inner.scaled(twin.inputs[0], factor);
  Value* joined = side_by_side(*product.inputs[0], *first, axes->first, inner, facts);
  Value* second = joined ? side_by_side(*product.inputs[1], *twin.inputs[1], axes->second, inner, facts) : nullptr;
  if (!second) return std::nullopt;
  const auto& attributes = product.proto->attribute();
  const double scale = node.is("Mean") ? one->scale / 2 : one->scale;
  return ScaledProduct{inner.build().node(product.op(), {joined, second}, {attributes.begin(), attributes.end()}), scale};
}

}  // namespace attn_opt
