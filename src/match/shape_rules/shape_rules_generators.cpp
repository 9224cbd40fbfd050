// Operators that make tensors out of sizes and numbers: Shape, Range, ConstantOfShape, ...
#include <cmath>

#include "attn_opt/operator_traits.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

void constant(RuleContext& context) {
  const Node& node = context.node();
  const onnx::AttributeProto* value = node.attribute("value");
  if (value && value->has_t()) {
    const onnx::TensorProto& tensor = value->t();
    if (!onnx::TensorProto::DataType_IsValid(tensor.data_type())) return;
    context.set_type(0, static_cast<DataType>(tensor.data_type()));
    context.set_shape(0, Shape(tensor.dims().begin(), tensor.dims().end()));
  } else if (node.attribute("value_float")) {
    context.set_type(0, onnx::TensorProto::FLOAT);
    context.set_shape(0, {});
  } else if (node.attribute("value_int")) {
    context.set_type(0, onnx::TensorProto::INT64);
    context.set_shape(0, {});
  } else if (const onnx::AttributeProto* floats = node.attribute("value_floats")) {
    context.set_type(0, onnx::TensorProto::FLOAT);
    context.set_shape(0, {floats->floats_size()});
  } else if (const onnx::AttributeProto* ints = node.attribute("value_ints")) {
    context.set_type(0, onnx::TensorProto::INT64);
    context.set_shape(0, {ints->ints_size()});
  }
}

void shape(RuleContext& context) {
  const MaybeShape of = context.shape(0);
  if (!of) return context.set_shape(0, context.fresh_shape(0, 1));
  const int64_t rank = static_cast<int64_t>(of->size());
  const auto bounded = [&](int64_t at) { return std::min(std::max(at < 0 ? at + rank : at, int64_t{0}), rank); };
  const int64_t start = bounded(context.node().int_attribute("start", 0));
  const int64_t end = std::max(start, bounded(context.node().int_attribute("end", rank)));
  context.set_shape(0, {end - start});
  context.set_integers(0, {{end - start}, Shape(of->begin() + start, of->begin() + end)});
}

void size(RuleContext& context) {
  context.set_shape(0, {});
  if (const MaybeShape of = context.shape(0)) context.set_integers(0, {{}, {product(*of)}});
}

/// Nodes that are looked through for the integer that a bound of a Range is cast from.
constexpr int kMaxCopiesOfBounds = 8;

/// Input INPUT, a scalar of a floating type, as the integer that it, or what it is a copy of, is cast from; nullopt if it is
/// not.
std::optional<Dim> cast_integer(const RuleContext& context, size_t input) {
  const Value* value = context.has(input) ? context.node().inputs[input] : nullptr;
  for (int step = 0; step < kMaxCopiesOfBounds && value && value->producer; ++step) {
    const Node& node = *value->producer;
    if (!node.is("Cast") && !has(node, Trait::kRegroups)) return std::nullopt;
    value = node.input(0);
    const IntegerData* integer = node.is("Cast") && value ? context.store().elements(*value) : nullptr;
    if (integer) return integer->values.size() == 1 ? std::optional(integer->values[0]) : std::nullopt;
    const DataType type = value ? context.store().computed(*value).type : DataType(onnx::TensorProto::UNDEFINED);
    if (type != onnx::TensorProto::FLOAT && type != onnx::TensorProto::DOUBLE) return std::nullopt;
  }
  return std::nullopt;
}

bool is_small_integer(double number) { return std::abs(number) < 1e6 && number == std::floor(number); }

/// Input INPUT, a scalar of a floating type: an integer number, or one that it is cast from.
std::optional<Dim> integer_bound(const RuleContext& context, size_t input) {
  const std::optional<double> number = context.scalar(input);
  if (!number) return cast_integer(context, input);
  return is_small_integer(*number) ? std::optional<Dim>(static_cast<int64_t>(*number)) : std::nullopt;
}

/// How many numbers there are from START to LIMIT by STEP, which is not 0.
Dim range_length(const RuleContext& context, const Dim& start, const Dim& limit, int64_t step) {
  const int64_t stride = std::abs(step);
  return floor_quotient(context.not_negative(step > 0 ? limit - start : start - limit) + (stride - 1), stride);
}

/// Bounds that are integers, as positions are that count down: length - 1, length - 2, ... above -length. One that starts
/// between two counts as from the lower, as centres of patches do: 0.5, 1.5, ... below floor(height / 16). Of halves the
/// difference is exact in float and double for every size that there is.
///
///   ceil((limit - start) / step)  =  ceil((limit - floor(start)) / step)
void range_of_casts(RuleContext& context) {
  const std::optional<double> number = context.scalar(0), step = context.scalar(2);
  const std::optional<Dim> limit = integer_bound(context, 1);
  std::optional<Dim> start = integer_bound(context, 0);
  const bool is_exact = context.type(0) == onnx::TensorProto::FLOAT || context.type(0) == onnx::TensorProto::DOUBLE;
  if (!step || !limit || !is_exact || !is_small_integer(*step) || *step == 0) return;
  if (!start && number && is_small_integer(*number * 2) && *step > 0) start = static_cast<int64_t>(std::floor(*number));
  if (start) context.set_shape(0, {range_length(context, *start, *limit, static_cast<int64_t>(*step))});
}

void range_of_floats(RuleContext& context) {
  const std::optional<double> start = context.scalar(0), limit = context.scalar(1), delta = context.scalar(2);
  if (!limit || !start) return range_of_casts(context);
  if (!delta || *delta == 0) return;
  const double count = std::ceil((*limit - *start) / *delta);
  if (std::isfinite(count) && count < 1e15) context.set_shape(0, {std::max<int64_t>(0, static_cast<int64_t>(count))});
}

void range(RuleContext& context) {
  context.set_shape(0, context.fresh_shape(0, 1));
  if (!is_integer(context.type(0))) return range_of_floats(context);
  const IntegerData* bounds[3] = {context.elements(0), context.elements(1), context.elements(2)};
  for (const IntegerData* bound : bounds) {
    if (!bound || bound->values.size() != 1) return;
  }
  const Dim& start = bounds[0]->values[0];
  const Dim& delta = bounds[2]->values[0];
  if (!delta.is_constant() || delta.is(0) || delta == Dim(std::numeric_limits<int64_t>::min())) return;
  const Dim length = range_length(context, start, bounds[1]->values[0], delta.value());
  context.set_shape(0, {length});
  if (!length.is_constant() || length.value() > kMaxIntegers) return;
  IntegerData data{{length.value()}, {}};
  for (int64_t i = 0; i < length.value(); ++i) data.values.push_back(start + Dim(i) * delta);
  context.set_integers(0, std::move(data));
}

void constant_of_shape(RuleContext& context) {
  const onnx::AttributeProto* value = context.node().attribute("value");
  context.set_type(0, onnx::TensorProto::FLOAT);
  if (value && onnx::TensorProto::DataType_IsValid(value->t().data_type())) {
    context.set_type(0, static_cast<DataType>(value->t().data_type()));
  }
  if (const IntegerData* dims = context.elements(0)) {
    Shape result;
    for (const Dim& dim : dims->values) {
      const bool is_size = dim.never_negative() || dim.from_sizes();
      result.push_back(is_size ? dim : maximum(dim, 0));
    }
    return context.set_shape(0, std::move(result));
  }
  const MaybeShape count = context.shape(0);
  if (count && count->size() == 1 && (*count)[0].is_constant() && (*count)[0].value() <= kMaxIntegers) {
    context.set_shape(0, context.fresh_shape(0, static_cast<size_t>((*count)[0].value())));
  }
}

/// True if VALUE repeats one number that is not 0.
bool has_no_zero(const RuleContext& context, const Value& value) {
  const auto number = number_in(context.store().uniform(value));
  return number && *number != 0;
}

void non_zero(RuleContext& context) {
  Shape result = context.fresh_shape(0, 2);
  const MaybeShape of = context.shape(0);
  if (of) result[0] = of->empty() ? Dim(1) : Dim(static_cast<int64_t>(of->size()));
  if (of && has_no_zero(context, *context.node().inputs[0])) result[1] = product(*of);
  context.set_shape(0, std::move(result));
}

void one_hot(RuleContext& context) {
  context.set_type(0, context.type(2));
  const MaybeShape indices = context.shape(0);
  if (!indices) return;
  const std::optional<size_t> axis = axis_in(context.node().int_attribute("axis", -1), indices->size() + 1);
  if (!axis) return;
  const IntegerData* depth = context.elements(1);
  const bool known = depth && depth->values.size() == 1;
  Shape result = *indices;
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(*axis),
                known ? context.not_negative(depth->values[0]) : context.fresh(0, *axis));
  context.set_shape(0, std::move(result));
}

using enum ResultType;
constexpr ShapeRule kGeneratorRules[] = {
    {"Constant", constant, kSetByRule},
    {"ConstantOfShape", constant_of_shape, kSetByRule},
    {"NonZero", non_zero, kInt64},
    {"OneHot", one_hot, kSetByRule},
    {"Range", range},
    {"Shape", shape, kInt64},
    {"Size", size, kInt64},
};

}  // namespace

std::span<const ShapeRule> generator_rules() { return kGeneratorRules; }

}  // namespace attn_opt
