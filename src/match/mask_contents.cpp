#include "attn_opt/mask_contents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attn_opt/canonical.h"

namespace attn_opt {
namespace {

constexpr int kMaxNodes = 64;

constexpr std::array<std::string_view, 9> kCopies = {"Identity", "Expand",  "Reshape", "Unsqueeze", "Squeeze",
                                                     "Slice",    "Transpose", "Tile",  "Flatten"};

MaskContents of_number(double value, DataType type) { return {value == lowest_finite(type), value == -INFINITY}; }

MaskContents either_of(const MaskContents& one, const MaskContents& other) {
  return {one.may_hold_lowest || other.may_hold_lowest, one.may_hold_minus_inf || other.may_hold_minus_inf};
}

MaskContents of_tensor(const Tensor& tensor, DataType type) {
  MaskContents contents{false, false};
  const auto doubles = tensor.cast(onnx::TensorProto::DOUBLE);
  if (!doubles) return {};
  for (double value : doubles->data<double>()) contents = either_of(contents, of_number(value, type));
  return contents;
}

class Follower {
 public:
  explicit Follower(Facts& facts) : facts_(facts) {}

  MaskContents follow(Value& value) {
    Value& seen = canonical(value, facts_);
    const DataType type = facts_.type(seen);
    if (!is_floating(type)) return {false, false};
    if (auto number = facts_.uniform(seen)) return of_number(*number, type);
    if (const Tensor* constant = facts_.constant(seen)) return of_tensor(*constant, type);
    Node* node = seen.producer;
    if (!node || !node->domain().empty() || ++nodes_ > kMaxNodes) return {};
    if (std::find(kCopies.begin(), kCopies.end(), node->op()) != kCopies.end()) return follow(*node->inputs[0]);
    if (node->is("Concat")) return of_all(*node, 0);
    if (node->is("Where")) return of_all(*node, 1);
    if (node->is("ScatterND")) return either_of(follow(*node->inputs[0]), follow(*node->inputs[2]));
    if (node->is("Trilu")) return follow(*node->inputs[0]);
    if (node->is("Cast")) return of_cast(*node, type);
    if (node->is("Mul")) return of_product(*node, type);
    if (node->is("Add") || node->is("Sub")) return of_sum(*node);
    return {};
  }

 private:
  MaskContents of_all(const Node& node, size_t first) {
    MaskContents contents{false, false};
    for (size_t i = first; i < node.inputs.size(); ++i) contents = either_of(contents, follow(*node.inputs[i]));
    return contents;
  }

  MaskContents of_cast(const Node& node, DataType to) {
    const DataType from = facts_.type(*node.inputs[0]);
    if (!is_floating(from)) return {false, false};
    const MaskContents before = follow(*node.inputs[0]);
    // A narrower type rounds the lowest value of a wider one to -inf; a wider one holds it as an ordinary number.
    if (element_size(to) < element_size(from)) return {};
    return {before.may_hold_lowest && to == from, before.may_hold_minus_inf};
  }

  /// Ordinary numbers add up to ordinary numbers; next to an extreme one anything may come out.
  MaskContents of_sum(const Node& node) {
    const MaskContents terms = of_all(node, 0);
    const bool extreme = terms.may_hold_lowest || terms.may_hold_minus_inf;
    return {extreme, extreme};
  }

  /// A number times integers (a 0/1 mask cast to float): lowest * 1. -inf only from a product beyond the range.
  MaskContents of_product(const Node& node, DataType type) {
    for (int i : {0, 1}) {
      const auto number = facts_.uniform(*node.inputs[i]);
      if (!number || !is_zero_or_one(*node.inputs[1 - i])) continue;
      return of_number(*number, type);
    }
    return {};
  }

  bool is_zero_or_one(Value& value) {
    const Node* node = canonical_producer(value, facts_);
    return node && node->is("Cast") && facts_.type(*node->inputs[0]) == onnx::TensorProto::BOOL;
  }

  Facts& facts_;
  int nodes_ = 0;
};

}  // namespace

double lowest_finite(DataType type) {
  switch (type) {
    case onnx::TensorProto::DOUBLE: return std::numeric_limits<double>::lowest();
    case onnx::TensorProto::FLOAT16: return -65504.0;
    case onnx::TensorProto::BFLOAT16: return -3.3895313892515355e38;
    default: return std::numeric_limits<float>::lowest();
  }
}

MaskContents mask_contents(Value& mask, Facts& facts) { return Follower(facts).follow(mask); }

}  // namespace attn_opt
