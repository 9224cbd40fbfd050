#include "patterns/softmax/row_maps.h"

#include <algorithm>

#include "attn_opt/operator_traits.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"

namespace attn_opt {
namespace {

/// The letters of TERM that OTHER has not.
std::string letters_beside(const std::string& term, const std::string& other) {
  std::string found;
  for (const char letter : term)
    if (!has_letter(other, letter)) found += letter;
  return found;
}

bool has_each_once(const std::string& term) {
  return std::ranges::all_of(term, [&](char letter) { return letter != kUnitAxis && std::ranges::count(term, letter) == 1; });
}

/// As axes_behind(), of a product.
///
///   Einsum("bhld,hde->blhe", y, w): b, h and l of y, and e in the place of d
std::optional<AxisMap> behind_product(const RowMap& map, const AxisMap& axes, Facts& facts) {
  const auto letters = product_letters(*map.node, facts);
  const MaybeShape before = facts.shape(map.rows()), after = facts.shape(*map.node->outputs[0]);
  if (!letters || letters->operands.size() != 2 || !before || !after) return std::nullopt;
  const std::string &rows = letters->operands[map.input], &matrix = letters->operands[1 - map.input], &made = letters->result;
  const std::string summed = letters_beside(rows, made), fresh = letters_beside(made, rows);
  const bool maps_features = summed.size() == 1 && fresh.size() == 1 && has_letter(matrix, summed[0]) &&
                             letters_beside(matrix, rows) == fresh && has_each_once(rows) && has_each_once(made);
  if (!maps_features || rows.size() != before->size() || made.size() != after->size()) return std::nullopt;
  std::vector<int64_t> order;
  for (size_t axis = 0; axis < made.size(); ++axis) {
    const size_t from = rows.find(made[axis] == fresh[0] ? summed[0] : made[axis]);
    if (made[axis] != fresh[0] && (*before)[from] != (*after)[axis]) return std::nullopt;
    order.push_back(static_cast<int64_t>(from));
  }
  const auto mapped = axes.with_size(Role::kFeature, rows.find(summed[0]), (*after)[made.find(fresh[0])]);
  return mapped ? std::optional(mapped->after_transpose(order)) : std::nullopt;
}

}  // namespace

bool RowMap::moves() const { return has(*node, Trait::kKeepsAll); }

size_t inputs_mapped(const Node& node) {
  if (!node.domain().empty() || !node.input(0)) return 0;
  if (has(node, Trait::kKeepsAll) || node.is("Div") || node.is("Neg")) return 1;
  const bool is_either = node.is("Mul") || node.is("MatMul") || node.is("Einsum") || node.is("Gemm");
  return is_either && node.input(1) ? 2 : 0;
}

std::optional<AxisMap> axes_behind(const RowMap& map, const AxisMap& axes, MatchContext& context) {
  // As an attribute these are of an opset that what is written is not of.
  const bool is_of_old_opset = map.node->attribute("axes") != nullptr;
  if (map.moves()) return is_of_old_opset ? std::nullopt : axes_after(*map.node, axes, context);
  if (!has(*map.node, Trait::kMultiplies) && !map.node->is("Neg")) return behind_product(map, axes, context.facts);
  const MaybeShape before = context.facts.shape(map.rows()), after = context.facts.shape(*map.node->outputs[0]);
  return before && after && *before == *after ? std::optional(axes) : std::nullopt;
}

std::vector<OutputStep> steps_of(const std::vector<RowMap>& maps) {
  std::vector<OutputStep> steps;
  for (const RowMap& map : maps) {
    const auto& attributes = map.node->proto->attribute();
    steps.push_back(
        {map.node->op(), {map.node->inputs.begin(), map.node->inputs.end()}, {attributes.begin(), attributes.end()}});
    steps.back().operands[map.input] = nullptr;
    if (map.node->is("Gemm")) steps.back().operands.resize(2);  // it adds nothing
  }
  return steps;
}

}  // namespace attn_opt
