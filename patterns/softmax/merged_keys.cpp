#include "patterns/softmax/merged_keys.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/scores/merged_axes.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// A product with V that sums over several axes, which lie side by side in its weights.
struct MergedProduct {
  Node* node = nullptr;
  size_t weights = 0;  ///< the operand that they are
  ProductLetters letters;
  std::string keys;

  AxisRun run() const { return {letters.operands[weights].find(keys), keys.size()}; }
};

std::optional<MergedProduct> merged_product(Node& node, size_t weights, Facts& facts) {
  const auto letters = node.is("Einsum") && node.inputs.size() == 2 ? product_letters(node, facts) : std::nullopt;
  if (!letters) return std::nullopt;
  const std::string keys = letters->contracted(weights);
  const std::string &terms = letters->operands[weights], &values = letters->operands[1 - weights];
  const size_t at = terms.find(keys);
  if (keys.size() < 2 || at == std::string::npos) return std::nullopt;
  const Shape &own = facts.shape(*node.inputs[weights]).known(), &other = facts.shape(*node.inputs[1 - weights]).known();
  for (size_t axis = 0; axis < keys.size(); ++axis) {
    const auto is_once_in = [&](const std::string& term) { return std::ranges::count(term, keys[axis]) == 1; };
    if (!is_once_in(terms) || !is_once_in(values) || own[at + axis] != other[values.find(keys[axis])]) return std::nullopt;
  }
  return MergedProduct{&node, weights, *letters, keys};
}

/// The attention of PRODUCT, whose weights are SHARES once their keys are one axis, which makes MADE.
std::optional<KeyBlocks> of_shares(Value* shares, const MergedProduct& product, Value& made, MatchContext& context) {
  if (!shares || !shares->producer || !may_be_softmax(*shares->producer)) return std::nullopt;
  auto softmax = softmax_at(*shares->producer, context);
  if (!softmax || softmax->divided) return std::nullopt;
  AxisMerger merger(*product.node, context);
  std::vector<Value*> operands(2, softmax->output);
  const size_t values = 1 - product.weights;
  ProductLetters letters = product.letters;
  operands[values] = merger.gathered(*product.node->inputs[values], letters.operands[values], product.keys);
  Value* whole = merger.product_of(operands, letters, product.keys.substr(1));
  return KeyBlocks{*std::move(softmax), whole->producer, &made, "Einsum(keys)"};
}

/// The letters of PRODUCT's weights in RUN, where the values have none of them, or all of the sizes OWN, and the result has
/// none or all side by side; empty if they have others.
std::string letters_alike(const MergedProduct& product, AxisRun run, const Shape& own, Facts& facts) {
  std::string letters = product.letters.operands[product.weights].substr(run.first, run.count);
  const std::string &values = product.letters.operands[1 - product.weights], &result = product.letters.result;
  const Shape &of_values = facts.shape(*product.node->inputs[1 - product.weights]).known(),
              &made = facts.shape(*product.node->outputs[0]).known();
  const bool has_values = values.find_first_of(letters) != std::string::npos;
  const bool is_left = result.find_first_of(letters) != std::string::npos;
  if (is_left && result.find(letters) == std::string::npos) return {};
  for (size_t axis = 0; axis < run.count; ++axis) {
    const bool is_alike = !has_values || (std::ranges::count(values, letters[axis]) == 1 &&
                                          of_values[values.find(letters[axis])] == own[run.first + axis]);
    if (!is_alike || (is_left && made[result.find(letters[axis])] != own[run.first + axis])) return {};
  }
  return letters;
}

/// The attention of PRODUCT, which makes MADE, of shares that a Reshape parts: their queries too are those of one axis.
std::optional<KeyBlocks> of_parted(const MergedProduct& product, Value& made, MatchContext& context) {
  const size_t values = 1 - product.weights;
  Value& weights = canonical(*product.node->inputs[product.weights], context.facts);
  const Node* parts = weights.producer;
  const MaybeShape own = context.facts.shape(weights);
  if (!parts || !has(*parts, Trait::kRegroups) || !own || !context.facts.shape(made)) return std::nullopt;
  std::optional<std::vector<AxisRun>> runs;
  const auto has_keys_merged = [&](const Shape& before) {
    const auto holds_keys = [&](AxisRun run) { return run.first == product.run().first && run.count == product.keys.size(); };
    runs = runs_merged(*own, before);
    return runs && std::ranges::any_of(*runs, holds_keys);
  };
  Value* source = before_regroupings(*parts, has_keys_merged, context.facts);
  Value* whole = source ? &canonical(*source, context.facts) : nullptr;
  if (!whole || !whole->producer || !may_be_softmax(*whole->producer)) return std::nullopt;
  auto softmax = softmax_at(*whole->producer, context);
  if (!softmax || softmax->divided || softmax->output != whole) return std::nullopt;
  AxisMerger merger(*product.node, context);
  std::vector<Value*> operands(2, whole);
  operands[values] = product.node->inputs[values];
  ProductLetters letters = product.letters;
  std::string gone;
  for (const AxisRun run : *runs) {
    const std::string merged = run.count > 1 ? letters_alike(product, run, *own, context.facts) : "";
    if (run.count > 1 && merged.empty()) return std::nullopt;
    if (run.count < 2) continue;
    gone += merged.substr(1);
    std::string& term = letters.operands[values];
    if (!has_letter(term, merged[0])) continue;
    operands[values] = merger.gathered(*operands[values], term, merged);
    for (const char letter : merged.substr(1)) std::erase(term, letter);
  }
  return KeyBlocks{*std::move(softmax), merger.product_of(operands, letters, gone)->producer, &made, "Einsum(axes)"};
}

/// True if DIVISOR is the sum of the weights of PRODUCT over its keys, with the rows where the product has them.
bool is_sum_beside(Value& divisor, const MergedProduct& product, Facts& facts) {
  Node* sum = canonical(divisor, facts).producer;
  if (sum && has(*sum, Trait::kRegroups)) sum = canonical(*sum->inputs[0], facts).producer;
  const std::string& own = product.letters.operands[product.weights];
  const Value& weights = canonical(*product.node->inputs[product.weights], facts);
  if (!sum || !sum->is("ReduceSum") || !sum->input(0) || &canonical(*sum->inputs[0], facts) != &weights) return false;
  const auto axes = reduced_axes(*sum, own.size(), facts);
  std::string left = own, of_rows;
  left.erase(product.run().first, product.keys.size());
  const MaybeShape made = facts.shape(*product.node->outputs[0]), shape = facts.shape(divisor);
  if (!axes || axes->size() != product.keys.size() || axes->front() != product.run().first || !made || !shape) return false;
  if (axes->back() != product.run().first + product.keys.size() - 1) return false;
  Shape rows = *made;
  for (size_t axis = 0; axis < rows.size(); ++axis) {
    const char letter = product.letters.result[axis];
    if (has_letter(own, letter))
      of_rows += letter;
    else
      rows[axis] = 1;
  }
  return of_rows == left && *shape == rows;
}

/// Weights times V, which NODE divides.
std::optional<KeyBlocks> divided_late(Node& node, Value& numerator, Value& divisor, MatchContext& context) {
  Node* made = canonical(numerator, context.facts).producer;
  for (const size_t weights : {0, 1}) {
    const auto product = made ? merged_product(*made, weights, context.facts) : std::nullopt;
    if (!product || !is_sum_beside(divisor, *product, context.facts)) continue;
    AxisMerger merger(*made, context);
    Value* terms = merger.above(*made->inputs[weights], product->run());
    if (!terms) continue;
    InnerValues inner(*made, context);
    Value* sum = inner.build().along("ReduceSum", *terms, {static_cast<int64_t>(product->run().first)});
    auto found = of_shares(inner.build().node("Div", {terms, sum}), *product, *node.outputs[0], context);
    // Sums of exponentials, and products with them, may leave the range of the type.
    if (found && context.facts.type(*terms) == onnx::TensorProto::FLOAT16)
      found->softmax.exponent_offset = found->softmax.exponent_offset.value_or(0);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<KeyBlocks> merged_keys(Node& node, MatchContext& context) {
  for (const size_t at : {0, 1}) {
    const auto product = merged_product(node, at, context.facts);
    if (auto found = product ? of_parted(*product, *node.outputs[0], context) : std::nullopt) return found;
    Value* shares = product ? AxisMerger(node, context).above(*node.inputs[at], product->run()) : nullptr;
    if (auto found = shares ? of_shares(shares, *product, *node.outputs[0], context) : std::nullopt) return found;
    Value* divisor = nullptr;
    if (node.is("Div") && at == 0) divisor = node.inputs[1];
    if (node.is("Mul") && !op("Reciprocal", {any(&divisor)})(*node.inputs[1 - at], context.facts)) continue;
    auto late = divisor ? divided_late(node, *node.inputs[at], *divisor, context) : std::nullopt;
    if (late) return late;
  }
  return std::nullopt;
}

}  // namespace attn_opt
