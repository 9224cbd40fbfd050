// Numbers computed from numbers, each with those in the same place: forms by algebra, tables by the executor.
#include <algorithm>
#include <array>

#include "attn_opt/canonical.h"
#include "attn_opt/executor.h"
#include "src/match/facts/fact_store.h"
#include "src/match/node_forms.h"
#include "src/match/positions/position_reader.h"

namespace attn_opt {
namespace {

constexpr std::array<std::string_view, 21> kElementwise = {
    "Add", "Sub",   "Mul",  "Div",   "Neg",   "Not",         "And",     "Or",
    "Xor", "Equal", "Less", "Min",   "Where", "LessOrEqual", "Greater", "GreaterOrEqual",
    "Max", "Abs",   "Clip", "IsNaN", "IsInf"};
constexpr int kOpsetOfOwnNodes = 18;

std::optional<PositionTable> run(const onnx::NodeProto& node, int opset, std::span<const PositionTable> operands) {
  const std::vector<PositionTable> tables = aligned(operands);
  if (tables.empty()) return std::nullopt;
  std::vector<Tensor> inputs;
  size_t next = 0;
  for (const std::string& name : node.input()) inputs.push_back(name.empty() ? Tensor() : tables[next++].values);
  auto outputs = run_node(node, inputs, {{"", opset}});
  if (!outputs || outputs->size() != 1 || outputs->front().dims() != tables[0].values.dims()) return std::nullopt;
  return PositionTable{tables[0].conditions, std::move(outputs->front())};
}

std::optional<PositionTable> run(const char* op, std::span<const PositionTable> operands) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (size_t i = 0; i < operands.size(); ++i) node.add_input("x" + std::to_string(i));
  node.add_output("y");
  return run(node, kOpsetOfOwnNodes, operands);
}

/// bool: LEAST <= VALUE.
std::optional<PositionTable> at_least(const IndexForm& value, const IndexForm& least) {
  const auto difference = sum(value, least, -1);
  return difference ? PositionTable::of_condition(*difference) : std::nullopt;
}

IndexForm next_after(IndexForm form) {
  form.offset = form.offset + 1;
  return form;
}

std::optional<PositionTable> equal(const IndexForm& one, const IndexForm& other) {
  const auto not_less = at_least(one, other), greater = at_least(one, next_after(other));
  if (!not_less || !greater) return std::nullopt;
  return run("Xor", std::array{*not_less, *greater});
}

template <class T>
std::optional<Reading> as_reading(std::optional<T> found) {
  return found ? std::optional<Reading>(*std::move(found)) : std::nullopt;
}

}  // namespace

PositionReader::Found PositionReader::range(Node& node) {
  const auto start = form(node.input(0)), step = form(node.input(2));
  if (!start || !step || !start->is_everywhere_the_same() || !step->is_one_number() || !step->offset.is_constant())
    return std::nullopt;
  IndexForm result = *start;
  result.set_factor(0, step->offset.value());
  return result;
}

/// Of one number along an axis: its multiples.
PositionReader::Found PositionReader::running_sum(Node& node) {
  const MaybeShape shape = facts_.shape(*node.outputs[0]);
  const auto number = node.input(0) && node.input(1) ? form(node.input(0)) : std::nullopt;
  const auto place = number ? form(node.input(1)) : std::nullopt;
  const bool is_known =
      place && place->is_one_number() && place->offset.is_constant() && number->is_one_number() && number->offset.is_constant();
  if (!shape || !is_known || node.int_attribute("reverse", 0) != 0) return std::nullopt;
  const auto axis = axis_in(place->offset.value(), shape->size());
  if (!axis) return std::nullopt;
  IndexForm sum{{}, node.int_attribute("exclusive", 0) != 0 ? Dim(0) : number->offset};
  sum.set_factor(shape->size() - 1 - *axis, number->offset.value());
  return sum;
}

/// Where a list holds a number that is not 0, of one that holds nothing else: 0, 1, 2, ..., as exporters once wrote a range.
PositionReader::Found PositionReader::all_places(Node& node) {
  const MaybeShape listed = node.input(0) ? facts_.shape(*node.inputs[0]) : nullptr;
  const auto number = listed && listed->size() == 1 ? facts_.uniform(*node.inputs[0]) : std::nullopt;
  return number && *number != 0 ? Found(IndexForm{{1}, 0}) : std::nullopt;
}

/// Mod or Div of 0, 1, 2, ... laid out as a matrix, by the length of its rows: the column or the row, as MatrixBandPart is
/// exported.
PositionReader::Found PositionReader::part_of_flat_index(Node& node) {
  if (!node.is("Mod") && !node.is("Div")) return std::nullopt;
  const Node* matrix = node.input(0) ? canonical(*node.inputs[0], facts_).producer : nullptr;
  const DataType type = facts_.type(*node.outputs[0]);
  if (!matrix || !matrix->is("Reshape") || !is_integer(type)) return std::nullopt;
  const MaybeShape shape = facts_.shape(*matrix->outputs[0]), listed = facts_.shape(*matrix->inputs[0]);
  const auto flat = listed && listed->size() == 1 ? form(matrix->inputs[0]) : std::nullopt;
  const auto width = flat && shape && shape->size() == 2 ? form(node.input(1)) : std::nullopt;
  if (!width || *flat != IndexForm{{1}, 0} || !width->is_one_number() || width->offset != shape->back()) return std::nullopt;
  return node.is("Mod") ? IndexForm{{1}, 0} : IndexForm{{0, 1}, 0};
}

PositionReader::Found PositionReader::cast(Node& node) {
  Found found = follow(node.input(0));
  const DataType to = facts_.type(*node.outputs[0]);
  const MaybeShape shape = facts_.shape(*node.outputs[0]);
  if (!found || !shape) return std::nullopt;
  if (const auto* form = std::get_if<IndexForm>(&*found); form && is_held_by(to, *form, *shape)) return found;
  auto numbers = table(node.input(0));
  if (!numbers || (!is_floating(to) && !is_integer(to))) return std::nullopt;
  const auto values = numbers->values.cast(to);
  if (!values) return std::nullopt;
  numbers->values = *values;
  return *numbers;
}

PositionReader::Found PositionReader::triangle(Node& node) {
  const auto numbers = table(node.input(0));
  const auto diagonal = node.input(1) ? form(node.input(1)) : IndexForm{};
  if (!numbers || !diagonal || !diagonal->is_one_number()) return std::nullopt;
  const bool upper = node.int_attribute("upper", 1) != 0;
  const IndexForm column{{1}, 0}, row{{0, 1}, diagonal->offset};
  const auto kept = upper ? at_least(column, row) : at_least(row, column);
  const PositionTable zero = PositionTable::of_number(0, numbers->values.type());
  if (!kept || !zero.values.has_value()) return std::nullopt;
  return as_reading(run("Where", std::array{*kept, *numbers, zero}));
}

PositionReader::Found PositionReader::pointwise(Node& node) {
  if (auto found = part_of_flat_index(node)) return found;
  if (auto found = arithmetic(node)) return found;
  if (auto found = comparison(node)) return found;
  if (auto found = distance(node)) return found;
  if (std::ranges::find(kElementwise, node.op()) == kElementwise.end()) return std::nullopt;
  return elementwise(node);
}

/// Sums, differences and multiples of forms.
PositionReader::Found PositionReader::arithmetic(Node& node) {
  if (node.is("Neg")) {
    const auto only = form(node.input(0));
    return only ? as_reading(sum({}, *only, -1)) : std::nullopt;
  }
  if (!node.is("Add") && !node.is("Sub") && !node.is("Mul")) return std::nullopt;
  if (!aligned_input(node, 0) || !aligned_input(node, 1)) return std::nullopt;
  const auto one = form(node.input(0)), other = form(node.input(1));
  if (!one || !other) return std::nullopt;
  if (!node.is("Mul")) return as_reading(sum(*one, *other, node.is("Sub") ? -1 : 1));
  for (const auto& [number, multiple] : {std::pair(one, other), std::pair(other, one)})
    if (number->is_one_number() && number->offset.is_constant()) return as_reading(sum({}, *multiple, number->offset.value()));
  return std::nullopt;
}

/// |x| <= number, or < number: x lies between two numbers.
PositionReader::Found PositionReader::distance(Node& node) {
  const bool is_first = node.is("Less") || node.is("LessOrEqual");
  if (!is_first && !node.is("Greater") && !node.is("GreaterOrEqual")) return std::nullopt;
  Value* magnitude = node.input(is_first ? 0 : 1);
  Value* bound = node.input(is_first ? 1 : 0);
  if (!magnitude || !bound) return std::nullopt;
  Node* abs = canonical(*magnitude, facts_).producer;
  if (!abs || !abs->is("Abs")) return std::nullopt;
  const MaybeShape own = facts_.shape(*magnitude), all = facts_.shape(*node.outputs[0]);
  if (!own || !all || *own != *all) return std::nullopt;
  const auto x = form(abs->input(0)), number = form(bound);
  const bool is_strict = node.is("Less") || node.is("Greater");
  if (!x || !number || !number->is_one_number()) return std::nullopt;
  const auto most = is_strict ? sum(*number, IndexForm{{}, 1}, -1) : number;
  const auto least = most ? sum({}, *most, -1) : std::nullopt;
  const auto above = least ? at_least(*x, *least) : std::nullopt, below = most ? at_least(*most, *x) : std::nullopt;
  return above && below ? as_reading(run("And", std::array{*above, *below})) : std::nullopt;
}

PositionReader::Found PositionReader::comparison(Node& node) {
  const bool is_equal = node.is("Equal"), less = node.is("Less"), greater = node.is("Greater");
  const bool not_greater = node.is("LessOrEqual"), not_less = node.is("GreaterOrEqual");
  if (!is_equal && !less && !greater && !not_greater && !not_less) return std::nullopt;
  if (!aligned_input(node, 0) || !aligned_input(node, 1)) return std::nullopt;
  const auto one = form(node.input(0)), other = form(node.input(1));
  if (!one || !other) return std::nullopt;
  if (is_equal) return as_reading(equal(*one, *other));
  if (less) return as_reading(at_least(*other, next_after(*one)));
  if (greater) return as_reading(at_least(*one, next_after(*other)));
  return as_reading(not_greater ? at_least(*other, *one) : at_least(*one, *other));
}

PositionReader::Found PositionReader::elementwise(Node& node) {
  std::vector<PositionTable> tables;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    const auto numbers = aligned_input(node, i) ? table(node.inputs[i]) : std::nullopt;
    if (!numbers) return std::nullopt;
    tables.push_back(*numbers);
  }
  return as_reading(run(*node.proto, node.graph->model().onnx_opset(node), tables));
}

}  // namespace attn_opt
