#include "patterns/products/parted_scores.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/axis_map.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/products/axis_factors.h"
#include "patterns/products/product_letters.h"

namespace attn_opt {
namespace {

/// The input of NODE that all others, of one element each, are applied to; nullopt if there are more or none.
std::optional<size_t> input_of_elements(const Node& node, Facts& facts) {
  if (!has(node, Trait::kElementwise)) return std::nullopt;
  std::optional<size_t> found;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const MaybeShape shape = node.inputs[i] ? facts.shape(*node.inputs[i]) : nullptr;
    const bool is_number = shape && std::ranges::all_of(*shape, [](const Dim& size) { return size.is(1); });
    if (!shape || (!is_number && found)) return std::nullopt;
    if (!is_number) found = i;
  }
  return found;
}

class ScoreParter {
 public:
  ScoreParter(Node& reshape, MatchContext& context) : facts_(context.facts), inner_(reshape, context) {}

  Value* above(Value& value, const Shape& after, int steps) {
    const Untransposed moved = untransposed(value, facts_);
    Node* node = moved.value->producer;
    if (!node || steps == 0) return nullptr;
    if (auto letters = product_letters(*node, facts_); letters && letters->operands.size() == 2) {
      if (letters->result.size() != moved.at.size()) return nullptr;
      letters->result = letters_of_axes(moved.at, letters->result);
      return of_product(*node, *letters, facts_.shape(value), after);
    }
    if (moved.value != &canonical(value, facts_)) return nullptr;
    const auto input = input_of_elements(*node, facts_);
    Value* source = input ? above(*node->inputs[*input], after, steps - 1) : nullptr;
    return source ? inner_.again(*node, *input, source) : nullptr;
  }

 private:
  /// One letter of the product for those of its parts.
  struct Part {
    Dim size;
    char letter = 0;
  };
  using Parts = std::map<char, std::vector<Part>>;

  /// PRODUCT, whose result of LETTERS has the sizes BEFORE, of the sizes AFTER.
  Value* of_product(const Node& product, const ProductLetters& letters, MaybeShape before, const Shape& after) {
    Parts parts;
    const std::string result = parted_result(letters.result, before, after, parts);
    if (result.empty()) return nullptr;
    std::string equation;
    std::vector<Value*> operands;
    const std::vector<Value*> whole = operands_of(product, facts_);
    const auto factor = factor_of_sum(product, facts_);
    for (size_t i = 0; factor && i < whole.size(); ++i) {
      const auto shape = parted(*whole[i], letters.operands[i], parts);
      Value* operand = shape ? reshaped(*whole[i], *shape, inner_, facts_) : nullptr;
      if (!operand) return nullptr;
      operands.push_back(i == 0 ? inner_.scaled(operand, *factor) : operand);
      equation += shape->term + (i == 0 ? "," : "->" + result);
    }
    return factor ? inner_.build().node("Einsum", operands, {GraphBuilder::attribute("equation", equation)}) : nullptr;
  }

  /// The letters of AFTER, of which those of RESULT hold PARTS; empty if an axis holds more than a part, or none.
  static std::string parted_result(const std::string& result, MaybeShape before, const Shape& after, Parts& parts) {
    if (!before || before->size() != result.size()) return "";
    std::string parted;
    size_t at = 0;
    for (size_t axis = 0; axis < result.size(); ++axis) {
      if (result[axis] == kUnitAxis) return "";
      Dim rest = (*before)[axis];
      do {
        if (at == after.size()) return "";
        const auto left = exact_quotient(rest, after[at]);
        if (!left) return "";
        parted += static_cast<char>('A' + at);
        parts[result[axis]].push_back({after[at++], parted.back()});
        rest = *left;
      } while (!rest.is(1));
    }
    return at == after.size() ? parted : "";
  }

  /// VALUE of TERM with an axis for each of PARTS that it has.
  std::optional<LetteredShape> parted(Value& value, const std::string& term, const Parts& parts) {
    const MaybeShape own = facts_.shape(value);
    if (!own || own->size() != term.size()) return std::nullopt;
    LetteredShape shape;
    for (size_t axis = 0; axis < term.size(); ++axis) {
      const auto found = parts.find(term[axis]);
      const bool is_whole = found == parts.end() || found->second.size() == 1;
      if (term[axis] == kUnitAxis || (!is_whole && (*own)[axis].is(1))) continue;
      if (is_whole)
        shape.add((*own)[axis], found == parts.end() ? letter_of_sum(term[axis]) : found->second[0].letter,
                  static_cast<int64_t>(axis));
      else
        for (const Part& part : found->second) shape.add(part.size, part.letter, std::nullopt);
    }
    return shape;
  }

  /// The letter of what is summed over, LETTER there: a small one, as those of the result are capital.
  char letter_of_sum(char letter) {
    if (!has_letter(sums_, letter)) sums_ += letter;
    return static_cast<char>('a' + sums_.find(letter));
  }

  Facts& facts_;
  InnerValues inner_;
  std::string sums_;
};

}  // namespace

Value* parted_above(Node& reshape, MatchContext& context) {
  const MaybeShape before = context.facts.shape(*reshape.inputs[0]), after = context.facts.shape(*reshape.outputs[0]);
  const bool parts = before && after && has(reshape, Trait::kRegroups) && after->size() > before->size();
  return parts ? ScoreParter(reshape, context).above(*reshape.inputs[0], *after, kMaxTogether) : nullptr;
}

}  // namespace attn_opt
