#include "src/match/shape_rules/shape_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>

#include "src/graph/operator_number.h"
#include "src/match/sizes/broadcast_size.h"

namespace attn_opt {
namespace {

using RuleTable = std::unordered_map<std::string_view, const ShapeRule*>;

/// The rules of ONNX's own operators, by their numbers.
auto onnx_rules() {
  std::array<const ShapeRule*, kOperatorNames.size() + 1> table{};
  for (const auto rules : {elementwise_rules(), layout_rules(), indexing_rules(), generator_rules(), reduction_rules(),
                           contraction_rules(), sequence_rules(), spatial_rules(), attention_rules()})
    for (const ShapeRule& rule : rules) {
      const OperatorNumber number = kOperatorNumbers.of(rule.op);
      if (number == 0) throw Defect(std::string(rule.op) + " has a shape rule and no number");
      table[number] = &rule;
    }
  return table;
}

RuleTable table_of(std::span<const ShapeRule> rules) {
  RuleTable table;
  for (const ShapeRule& rule : rules) table.emplace(rule.op, &rule);
  return table;
}

const RuleTable& rules_of(std::string_view domain) {
  static const auto* const microsoft_rules = new RuleTable(table_of(contrib_rules()));
  static const auto* const blocked_rules = new RuleTable(table_of(nchwc_rules()));
  static const RuleTable kNone;
  if (domain == "com.microsoft") return *microsoft_rules;
  return domain == "com.microsoft.nchwc" ? *blocked_rules : kNone;
}

/// Of two sizes that must be equal, or are taken so, the one to go on with.
const Dim& simpler(const Dim& a, const Dim& b) {
  const std::string left = a.str(), right = b.str();
  return left.size() != right.size() ? (left.size() < right.size() ? a : b) : (left <= right ? a : b);
}

/// Sizes that no number is known of have no more bits than these.
constexpr int kSizeBits = 16;

using SymbolCounts = std::map<std::string, int, std::less<>>;

void count_symbols(const Dim& dim, SymbolCounts& counts) {
  for (const AtomRef& atom : dim.atoms()) counts[atom->name] += atom->kind == Atom::Kind::kSymbol;
}

/// True if FACTORS, or what they are made of, are axes of one of SHAPES: their product is a number of elements.
bool are_axes_of_one(const std::vector<AtomRef>& factors, const std::vector<Shape>& shapes) {
  SymbolCounts wanted;
  for (const AtomRef& factor : factors) {
    wanted[factor->name] += factor->kind == Atom::Kind::kSymbol;
    for (const Dim& operand : factor->operands) count_symbols(operand, wanted);
  }
  return std::ranges::any_of(shapes, [&](const Shape& shape) {
    SymbolCounts axes;
    for (const Dim& dim : shape) count_symbols(dim, axes);
    return std::ranges::all_of(wanted, [&](const auto& symbol) { return symbol.second <= axes[symbol.first]; });
  });
}

/// True if TYPE holds NUMBER, which is made of sizes, whatever these are. That it holds the number of elements of an input,
/// which INPUTS are the shapes of, is believed.
bool is_held_by(DataType type, const Dim& number, const std::vector<Shape>& inputs) {
  if (type == onnx::TensorProto::BOOL) return true;
  if (!is_integer(type)) return false;
  const int bits = 8 * static_cast<int>(element_size(type)) - 1;
  return std::ranges::all_of(number.terms(), [&](const Dim::Term& term) {
    const auto is_held = [&](int others) {
      return bits > others && std::abs(static_cast<double>(term.coefficient)) <= std::ldexp(1, bits - others);
    };
    const int sizes = static_cast<int>(term.factors.size());
    if (sizes < 2) return is_held(sizes == 0 ? 1 : kSizeBits);
    return is_held(kSizeBits * sizes) || (is_held(kSizeBits) && are_axes_of_one(term.factors, inputs));
  });
}

}  // namespace

RuleContext::RuleContext(FactStore& store, const Node& node) : store_(store), node_(node), results_(node.outputs.size()) {
  opset_ = node.domain().empty() ? store.opsets(node).at("") : store.view().opset(*node.graph, std::string(node.domain()));
}

const ValueFact* RuleContext::input_fact(size_t input) const {
  return has(input) ? &store_.computed(*node_.inputs[input]) : nullptr;
}

MaybeShape RuleContext::shape(size_t input) const {
  const ValueFact* fact = input_fact(input);
  return fact ? shape_of(*fact) : nullptr;
}

DataType RuleContext::type(size_t input) const {
  const ValueFact* fact = input_fact(input);
  return fact ? fact->type : onnx::TensorProto::UNDEFINED;
}

const IntegerData* RuleContext::elements(size_t input) const {
  return has(input) ? store_.elements(*node_.inputs[input]) : nullptr;
}

std::optional<std::vector<int64_t>> RuleContext::numbers(size_t input) const {
  const IntegerData* data = elements(input);
  if (!data) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& value : data->values) {
    if (!value.is_constant()) return std::nullopt;
    numbers.push_back(value.value());
  }
  return numbers;
}

std::optional<double> RuleContext::scalar(size_t input) const {
  const ValueFact* fact = input_fact(input);
  if (!fact || !fact->foldable || !fact->shape || element_count(*fact->shape) != 1) return std::nullopt;
  return number_in(store_.constant(*node_.inputs[input]));
}

void RuleContext::set_shape(size_t output, Shape shape) {
  if (!wants(output) || shape.size() > kMaxRank) return;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!shape[axis].may_be_size()) shape[axis] = fresh(output, axis);
  }
  results_[output].shape = std::move(shape);
}

void RuleContext::set_type(size_t output, DataType type) {
  if (wants(output)) results_[output].type = type;
}

void RuleContext::set_integers(size_t output, IntegerData data) {
  if (!wants(output) || data.values.size() > static_cast<size_t>(kMaxIntegers)) return;
  const DataType type = results_[output].type;
  const bool numbers = std::ranges::all_of(data.values, [](const Dim& d) { return d.is_constant(); });
  if (numbers && !tensor_of(data, type).has_value()) return;
  if (!numbers && !std::ranges::all_of(data.values, [&](const Dim& d) { return is_held_by(type, d, store_.input_shapes()); }))
    return;
  results_[output].integers = std::move(data);
}

void RuleContext::set_same(size_t output, const Value& source) {
  if (!wants(output)) return;
  results_[output] = store_.computed(source);
  results_[output].same_as = &source;
}

Dim RuleContext::fresh(size_t output, size_t axis) const {
  return Dim::unknown(store_.hint(*node_.outputs[output]), static_cast<int>(axis));
}

Shape RuleContext::fresh_shape(size_t output, size_t rank) const {
  Shape shape;
  for (size_t axis = 0; axis < rank; ++axis) shape.push_back(fresh(output, axis));
  return shape;
}

bool RuleContext::assume_equal(const Dim& one, const Dim& other) const {
  if (!store_.may_assume(one, other)) return false;
  store_.assume_equal(one, other, node_);
  return true;
}

void RuleContext::require_equal(InputAxis one, InputAxis other) const {
  const MaybeShape first = shape(one.input), second = shape(other.input);
  if (first.has_rank(one.rank) && second.has_rank(other.rank)) require_equal((*first)[one.axis], (*second)[other.axis]);
}

void RuleContext::require_size(const Dim& size, InputAxis axis) const {
  if (const MaybeShape given = shape(axis.input); given.has_rank(axis.rank)) require_equal(size, (*given)[axis.axis]);
}

void RuleContext::require_size_or_one(const Dim& size, InputAxis axis) const {
  const MaybeShape given = shape(axis.input);
  if (!given.has_rank(axis.rank)) return;
  const Dim& found = (*given)[axis.axis];
  if (size.is(1) || (found.is_constant() && !found.is(1))) require_equal(size, found);
}

Dim RuleContext::not_negative(Dim dim) const {
  if (dim.never_negative()) return dim;
  Dim bounded = maximum(dim, 0);
  if (dim.is_constant() || !dim.from_sizes()) return bounded;
  return assume_equal(dim, bounded) ? dim : bounded;
}

Dim RuleContext::broadcast(const Dim& a, const Dim& b) const {
  if (a.is(1) || a == b) return b;
  if (b.is(1)) return a;
  store_.demand(a, b, true, node_);
  if (a.is_constant() || b.is_constant()) return a.is_constant() ? a : b;
  const Dim& one = simpler(a, b);
  const Dim& other = &one == &a ? b : a;
  return assume_equal(one, other) ? one : broadcast_size(one, other);
}

Shape RuleContext::broadcast(const Shape& a, const Shape& b) const {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t axis = 0; axis < shorter.size(); ++axis) {
    Dim& size = result[offset + axis];
    if (size != shorter[axis]) size = broadcast(size, shorter[axis]);
  }
  return result;
}

void like_input_0(RuleContext& context) {
  if (const MaybeShape shape = context.shape(0)) context.set_shape(0, *shape);
}

const ShapeRule* shape_rule_of(const Node& node) {
  static const auto of_onnx = onnx_rules();
  if (node.domain().empty()) return of_onnx[node.number];
  const RuleTable& rules = rules_of(node.domain());
  const auto found = rules.find(node.op());
  return found == rules.end() ? nullptr : found->second;
}

void apply_shape_rule(RuleContext& context) {
  const ShapeRule* rule = shape_rule_of(context.node());
  if (!rule) return;
  switch (rule->type) {
    case ResultType::kOfInput0: context.set_type(0, context.type(0)); break;
    case ResultType::kOfInput1: context.set_type(0, context.type(1)); break;
    case ResultType::kBool: context.set_type(0, onnx::TensorProto::BOOL); break;
    case ResultType::kInt64: context.set_type(0, onnx::TensorProto::INT64); break;
    case ResultType::kSetByRule: break;
  }
  rule->apply(context);
}

}  // namespace attn_opt
