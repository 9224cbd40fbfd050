// Contents of small integer tensors as expressions.
//
// Operators that only move elements are run by the executor on the positions of the elements; arithmetic is
// done on the expressions, element by element.
#include <algorithm>
#include <numeric>

#include "attn_opt/operator_traits.h"
#include "src/match/facts/floor_division.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

constexpr int64_t kMaxInputs = 64;

/// The inputs of NODE that hold the elements it moves; empty if it does more than move.
std::vector<size_t> moved_inputs(const Node& node) {
  if (has(node, Trait::kMoves) || node.is("Split")) return {0};
  if (node.op() == "Where") return {1, 2};
  if (node.op() == "OneHot") return {2};
  if ((node.is("ScatterND") || node.is("ScatterElements")) && node.string_attribute("reduction", "none") == "none") {
    return {0, 2};
  }
  if (node.op() != "Concat" || static_cast<int64_t>(node.inputs.size()) > kMaxInputs) return {};
  return all_axes(node.inputs.size());
}

/// The numbers of input I as a tensor of its type.
Tensor number_tensor(const RuleContext& context, size_t i) {
  const IntegerData* data = context.elements(i);
  return data ? tensor_of(*data, context.type(i)) : Tensor();
}

void move_elements(RuleContext& context, const std::vector<size_t>& moved) {
  const Node& node = context.node();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto& shape = context.result(i).shape;
    if (!shape) return;
    const std::optional<int64_t> count = element_count(*shape);
    if (!count || *count > kMaxIntegers) return;
  }
  std::vector<Tensor> inputs(node.inputs.size());
  std::vector<Dim> pool;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    if (std::ranges::find(moved, i) == moved.end()) {
      inputs[i] = number_tensor(context, i);
    } else if (const IntegerData* data = context.elements(i)) {
      inputs[i] = Tensor(onnx::TensorProto::INT64, data->dims);
      const auto positions = inputs[i].mutable_data<int64_t>();
      std::iota(positions.begin(), positions.end(), static_cast<int64_t>(pool.size()));
      pool.insert(pool.end(), data->values.begin(), data->values.end());
    }
    if (!inputs[i].has_value()) return;
  }
  const auto outputs = run_node(*node.proto, inputs, context.store().opsets(node));
  if (!outputs) return;
  for (size_t i = 0; i < outputs->size(); ++i) {
    const Tensor& positions = (*outputs)[i];
    if (!positions.has_value() || positions.size() > kMaxIntegers) continue;
    IntegerData result{positions.dims(), {}};
    for (const int64_t position : positions.data<int64_t>()) result.values.push_back(pool[static_cast<size_t>(position)]);
    context.set_integers(i, std::move(result));
  }
}

using Elements = std::vector<Dim>;
using ElementRule = std::optional<Dim> (*)(const RuleContext&, const Elements&);

std::optional<Dim> truth(bool value) { return Dim(value ? 1 : 0); }

/// A < B, where it can be decided.
std::optional<bool> is_less(const Dim& a, const Dim& b) {
  if ((b - a - 1).never_negative()) return true;
  if ((a - b).never_negative()) return false;
  return std::nullopt;
}

std::optional<bool> is_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (is_less(a, b).value_or(false) || is_less(b, a).value_or(false)) return false;
  return std::nullopt;
}

/// True if NUMBER is negative, and SIZE is not where what has been assumed of sizes holds.
bool lies_below(const Dim& number, const Dim& size, const RuleContext& context) {
  return number.is_constant() && number.value() < 0 && context.is_assumed_equal(size, maximum(size, 0));
}

/// As is_equal(), where sizes are what has been assumed of them: a target of Expand or Reshape asked for -1.
std::optional<bool> is_equal_size(const Dim& a, const Dim& b, const RuleContext& context) {
  const std::optional<bool> decided = is_equal(a, b);
  if (!decided && (lies_below(a, b, context) || lies_below(b, a, context))) return false;
  return decided;
}

std::optional<Dim> as_truth(std::optional<bool> decided) { return decided ? truth(*decided) : std::nullopt; }
std::optional<Dim> negated(std::optional<bool> decided) { return decided ? truth(!*decided) : std::nullopt; }

/// The integer quotient of ONNX, which rounds towards 0.
std::optional<Dim> divided(const RuleContext& context, const Elements& x) {
  if (std::optional<Dim> exact = exact_quotient(x[0], x[1])) return exact;
  if (!x[1].is_constant() ? !x[1].never_negative() : x[1].value() <= 0) return std::nullopt;
  if (x[0].is_constant() && x[1].is_constant()) return Dim(x[0].value() / x[1].value());
  if (!x[0].from_sizes()) return std::nullopt;
  const Dim dividend = context.not_negative(x[0]);
  return dividend == x[0] ? std::optional(floor_quotient(dividend, x[1])) : std::nullopt;
}

std::optional<Dim> remainder(const RuleContext& context, const Elements& x) {
  const bool of_dividend = context.node().int_attribute("fmod", 0) != 0;
  if (!x[1].is_constant() || x[1].value() <= 0 || (of_dividend && !x[0].never_negative())) return std::nullopt;
  return x[0] - floor_quotient(x[0], x[1]) * x[1];
}

std::optional<Dim> absolute(const RuleContext&, const Elements& x) {
  if (x[0].is_constant() && x[0].value() < 0) return Dim(0) - x[0];
  return x[0].never_negative() ? std::optional(x[0]) : std::nullopt;
}

template <class Fold>
Dim folded(const Elements& x, Fold fold) {
  return std::accumulate(x.begin() + 1, x.end(), x[0], fold);
}

struct NamedRule {
  std::string_view op;
  size_t inputs;  ///< at least
  ElementRule apply;
};

constexpr NamedRule kElementRules[] = {
    {"Add", 2, [](const RuleContext&, const Elements& x) { return std::optional(x[0] + x[1]); }},
    {"Sub", 2, [](const RuleContext&, const Elements& x) { return std::optional(x[0] - x[1]); }},
    {"Mul", 2, [](const RuleContext&, const Elements& x) { return std::optional(x[0] * x[1]); }},
    {"Div", 2, divided},
    {"Mod", 2, remainder},
    {"Neg", 1, [](const RuleContext&, const Elements& x) { return std::optional(Dim(0) - x[0]); }},
    {"Abs", 1, absolute},
    {"Min", 1, [](const RuleContext&, const Elements& x) { return std::optional(folded(x, minimum)); }},
    {"Max", 1, [](const RuleContext&, const Elements& x) { return std::optional(folded(x, maximum)); }},
    {"Equal", 2, [](const RuleContext& context, const Elements& x) { return as_truth(is_equal_size(x[0], x[1], context)); }},
    {"Less", 2, [](const RuleContext&, const Elements& x) { return as_truth(is_less(x[0], x[1])); }},
    {"Greater", 2, [](const RuleContext&, const Elements& x) { return as_truth(is_less(x[1], x[0])); }},
    {"LessOrEqual", 2, [](const RuleContext&, const Elements& x) { return negated(is_less(x[1], x[0])); }},
    {"GreaterOrEqual", 2, [](const RuleContext&, const Elements& x) { return negated(is_less(x[0], x[1])); }},
    {"Not", 1, [](const RuleContext&, const Elements& x) { return negated(is_equal(x[0], 1)); }},
    {"And", 2,
     [](const RuleContext& context, const Elements& x) {
       if (x[0].is(0) || x[1].is(0) || is_never_corrected(context.node(), context.store())) return truth(false);
       return x[0].is(1) ? std::optional(x[1]) : x[1].is(1) ? std::optional(x[0]) : std::nullopt;
     }},
    {"Or", 2,
     [](const RuleContext& context, const Elements& x) {
       if (x[0].is(1) || x[1].is(1) || is_never_corrected(context.node(), context.store())) return truth(true);
       return x[0].is(0) ? std::optional(x[1]) : x[1].is(0) ? std::optional(x[0]) : std::nullopt;
     }},
};

/// The position in a tensor of DIMS that broadcasts to the position AT in one of RESULT.
size_t broadcast_position(size_t at, const std::vector<int64_t>& dims, const std::vector<int64_t>& result) {
  size_t position = 0, stride = 1;
  for (size_t axis = result.size(); axis-- > 0;) {
    const size_t extent = static_cast<size_t>(result[axis]);
    const size_t index = at % extent;
    at /= extent;
    if (axis + dims.size() < result.size()) continue;
    const size_t own = static_cast<size_t>(dims[axis + dims.size() - result.size()]);
    if (own != 1) position += index * stride;
    stride *= own;
  }
  return position;
}

std::optional<std::vector<int64_t>> result_dims(RuleContext& context) {
  const auto& shape = context.result(0).shape;
  if (!shape) return std::nullopt;
  const std::optional<int64_t> count = element_count(*shape);
  if (!count || *count > kMaxIntegers) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dim& dim : *shape) dims.push_back(dim.value());
  return dims;
}

bool broadcasts_to(const std::vector<int64_t>& dims, const std::vector<int64_t>& result) {
  if (dims.size() > result.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && dims[i] != result[i + result.size() - dims.size()]) return false;
  }
  return true;
}

void compute_elements(RuleContext& context, ElementRule rule) {
  const std::optional<std::vector<int64_t>> dims = result_dims(context);
  const size_t count = context.node().inputs.size();
  if (!dims || count == 0 || static_cast<int64_t>(count) > kMaxInputs) return;
  std::vector<const IntegerData*> inputs;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(context.elements(i));
    if (!inputs.back() || !broadcasts_to(inputs.back()->dims, *dims)) return;
  }
  IntegerData result{*dims, {}};
  const size_t size = static_cast<size_t>(attn_opt::element_count(std::span<const int64_t>(*dims)));
  for (size_t at = 0; at < size; ++at) {
    Elements elements;
    for (const IntegerData* input : inputs) elements.push_back(input->values[broadcast_position(at, input->dims, *dims)]);
    std::optional<Dim> value = rule(context, elements);
    if (!value) return;
    result.values.push_back(*std::move(value));
  }
  context.set_integers(0, std::move(result));
}

void cast_elements(RuleContext& context) {
  const IntegerData* data = context.elements(0);
  const DataType to = context.result(0).type;
  if (!data) return;
  IntegerData result = *data;
  for (Dim& value : result.values) {
    if (to == onnx::TensorProto::BOOL) {
      const std::optional<bool> zero = is_equal(value, 0);
      if (context.type(0) == to) continue;
      if (!zero) return;
      value = *zero ? 0 : 1;
    } else if (!value.is_constant() && to != onnx::TensorProto::INT64 && to != onnx::TensorProto::INT32) {
      return;
    }
  }
  context.set_integers(0, std::move(result));
}

/// ReduceProd, ReduceSum, ... of all elements, or of a list.
void reduce_elements(RuleContext& context, Dim (*fold)(const Dim&, const Dim&)) {
  const IntegerData* data = context.elements(0);
  const std::optional<std::vector<int64_t>> dims = result_dims(context);
  if (!data || !dims || data->values.empty()) return;
  if (*dims == data->dims) return context.set_integers(0, *data);
  if (attn_opt::element_count(std::span<const int64_t>(*dims)) == 1) {
    context.set_integers(0, {*dims, {folded(data->values, fold)}});
  }
}

}  // namespace

void apply_integer_rule(RuleContext& context) {
  const Node& node = context.node();
  if (!node.domain().empty() || node.outputs.empty() || !context.wants(0)) return;
  if (!is_integer(context.result(0).type) || context.result(0).integers) return;
  if (const std::vector<size_t> moved = moved_inputs(node); !moved.empty()) return move_elements(context, moved);
  if (node.op() == "Cast" || node.op() == "CastLike") return cast_elements(context);
  if (node.op() == "ReduceProd") {
    return reduce_elements(context, [](const Dim& a, const Dim& b) { return a * b; });
  }
  if (node.op() == "ReduceSum") {
    return reduce_elements(context, [](const Dim& a, const Dim& b) { return a + b; });
  }
  if (node.op() == "ReduceMin") return reduce_elements(context, minimum);
  if (node.op() == "ReduceMax") return reduce_elements(context, maximum);
  const auto rule = std::ranges::find_if(kElementRules, [&](const NamedRule& named) { return named.op == node.op(); });
  if (rule == std::end(kElementRules) || node.inputs.size() < rule->inputs) return;
  compute_elements(context, rule->apply);
}

}  // namespace attn_opt
