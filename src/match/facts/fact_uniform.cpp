// The third level: tensors whose elements are all the same, whatever their shape.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "attn_opt/operator_traits.h"
#include "src/match/facts/fact_store.h"
#include "src/match/node_forms.h"
#include "src/match/operator_map.h"
#include "src/match/post_order.h"
#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {
namespace {

bool passes_through(const Node& node) {
  static constexpr OperatorSet kOps = {"Expand",  "Reshape", "Transpose", "Squeeze", "Unsqueeze",
                                       "Flatten", "Tile",    "Slice",     "Split",   "Gather"};
  return kOps.has(node);
}

bool is_pointwise(const Node& node) {
  const ShapeRule* rule = shape_rule_of(node);
  return node.domain().empty() && rule && rule->pointwise && !is_random(*node.proto);
}

/// The element that all of TENSOR's are, bit for bit.
Tensor common_element(const Tensor& tensor) {
  const size_t width = element_size(tensor.type());
  const std::span<const std::byte> bytes = tensor.bytes();
  if (tensor.size() == 0 || width == 0 || bytes.size() < width) return {};
  for (size_t at = width; at < bytes.size(); at += width) {
    if (std::memcmp(bytes.data(), bytes.data() + at, width) != 0) return {};
  }
  Tensor element(tensor.type(), {});
  std::memcpy(element.mutable_bytes().data(), bytes.data(), width);
  return element;
}

/// Bit for bit; false if OTHER is not known.
bool same_element(const Tensor& one, const Tensor& other) {
  return other.has_value() && one.type() == other.type() &&
         std::memcmp(one.bytes().data(), other.bytes().data(), one.bytes().size()) == 0;
}

/// NaN for what is no number.
double number_of(const Tensor& element) { return number_in(&element).value_or(std::nan("")); }

Tensor shape_fill(const Node& node, const TensorStore& tensors) {
  const onnx::AttributeProto* attribute = node.attribute("value");
  if (!attribute) return Tensor::scalar(0.0f);
  const Expected<Tensor> fill = to_tensor(attribute->t(), tensors);
  return fill && fill->size() == 1 ? common_element(*fill) : Tensor();
}

}  // namespace

std::optional<double> number_in(const Tensor* tensor) {
  if (!tensor || tensor->size() != 1) return std::nullopt;
  if (tensor->type() == onnx::TensorProto::FLOAT) return tensor->data<float>()[0];  // most are: no tensor is made for it
  const Expected<Tensor> number = tensor->cast(onnx::TensorProto::DOUBLE);
  return number ? std::optional(number->data<double>()[0]) : std::nullopt;
}

const Tensor& FactStore::uniform_from_inputs(const Value& value) {
  fact(value);
  post_order(
      value, [&](const Value& v) { return uniforms_.find(v) != nullptr; },
      [&](const Value& v, int stage) { return uniform_inputs(v, stage); }, [&](const Value& v) { find_uniform(v); });
  return uniforms_[value];
}

std::vector<const Value*> FactStore::uniform_inputs(const Value& value, int stage) {
  const ValueFact& known = computed(value);
  if (known.foldable || !value.producer) return {};
  const Node& node = *value.producer;
  const size_t input = static_cast<size_t>(stage);
  if (known.same_as) return stage == 0 ? std::vector{known.same_as} : std::vector<const Value*>{};
  if (stage > 0 && (passes_through(node) || node.is("CastLike"))) return {};
  if (!passes_through(node) && !is_pointwise(node) && !node.is("Concat") && !node.is("CastLike")) return {};
  if (!node.input(input)) return {};
  // Input 0 decides about the others, but a product with 0 is 0 whichever comes first, and two equal branches need no
  // condition.
  const bool has_branch =
      node.is("Where") && (stage == 1 || (stage == 2 && node.input(1) && uniforms_[*node.inputs[1]].has_value()));
  if (stage > 0 && !has_branch && !node.is("Mul") && !(node.input(0) && uniforms_[*node.inputs[0]].has_value())) return {};
  return {node.inputs[input]};
}

void FactStore::find_uniform(const Value& value) {
  const ValueFact& known = computed(value);
  Tensor& element = uniforms_[value];
  if (known.foldable) {
    if (const Tensor* tensor = constant(value)) element = common_element(*tensor);
    return;
  }
  if (!value.producer) return;
  const Node& node = *value.producer;
  if (known.same_as) {
    element = Tensor(uniforms_[*known.same_as]);
  } else if (node.is("ConstantOfShape")) {
    element = shape_fill(node, tensors_);
  } else if (passes_through(node)) {
    if (node.input(0)) element = Tensor(uniforms_[*node.inputs[0]]);
  } else if (node.is("CastLike")) {
    const Expected<Tensor> cast = node.input(0) ? uniforms_[*node.inputs[0]].cast(known.type) : Tensor();
    if (cast) element = *cast;
  } else if (node.is("Mul") && is_zero_product(node)) {
    element = Tensor(known.type, {});
  } else {
    element = uniform_result(node);
  }
}

/// True for a constant of nothing but 0.
bool FactStore::is_zero(const Value& value) {
  const Tensor* tensor = constant(value);
  const Tensor element = tensor ? common_element(*tensor) : Tensor();
  return element.has_value() && number_of(element) == 0;
}

/// Such numbers are finite: 0 and 1, which every type has, so that further casts change nothing.
bool FactStore::is_cast_of_booleans(const Value& value) {
  constexpr int kMaxSteps = 8;
  const Value* seen = &value;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (const Value* same = computed(*seen).same_as) {
      seen = same;
      continue;
    }
    const Node* node = seen->producer;
    if (!node || !node->input(0)) return false;
    if (has(*node, Trait::kAdds) && node->inputs.size() == 2 && node->inputs[1]) {
      const size_t number = is_zero(*node->inputs[1]) ? 1 : 0;
      if (!is_zero(*node->inputs[number])) return false;
      seen = node->inputs[1 - number];
      continue;
    }
    if (!(node->is("Cast") || passes_through(*node))) return false;
    seen = node->inputs[0];
    if (node->is("Cast") && computed(*seen).type == onnx::TensorProto::BOOL) return true;
  }
  return false;
}

bool FactStore::is_zero_product(const Node& node) {
  for (const size_t input : {0u, 1u}) {
    const Value* other = node.input(1 - input);
    if (!node.input(input) || !other) return false;
    const Tensor& element = uniforms_[*node.inputs[input]];
    if (!element.has_value() || number_of(element) != 0 || std::signbit(number_of(element))) continue;
    if (is_integer(computed(*other).type)) return true;
    if (is_cast_of_booleans(*other)) return true;
  }
  return false;
}

Tensor FactStore::uniform_result(const Node& node) {
  if (!node.is("Concat") && !is_pointwise(node)) return {};
  if (node.is("Where") && node.input(1) && node.input(2)) {
    const Tensor& held = uniforms_[*node.inputs[1]];
    if (held.has_value() && same_element(held, uniforms_[*node.inputs[2]])) return Tensor(held);
  }
  std::vector<Tensor> elements;
  for (const Value* input : node.inputs) {
    elements.push_back(input ? uniforms_[*input] : Tensor());
    if (node.is("Where") && elements.size() == 2 && elements[0].has_value() && number_of(elements[0]) != 0) {
      return elements[1];
    }
    if (node.is("Where") && elements.size() == 3 && elements[0].has_value() && number_of(elements[0]) == 0) {
      return elements[2];
    }
    const bool skipped = node.is("Where") && elements.size() == 2 && elements[0].has_value();
    if (input && !elements.back().has_value() && !skipped) return {};
  }
  if (elements.empty()) return {};
  if (node.is("Concat")) {
    const bool equal = std::ranges::all_of(elements, [&](const Tensor& element) { return same_element(elements[0], element); });
    return equal ? elements[0] : Tensor();
  }
  Expected<std::vector<Tensor>> outputs = run_node(*node.proto, elements, opsets(node));
  return outputs && !outputs->empty() && outputs->front().size() == 1 ? outputs->front().reshaped({}) : Tensor();
}

}  // namespace attn_opt
