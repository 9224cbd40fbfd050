#include "patterns/around/normalised.h"

#include <algorithm>
#include <string>

#include "patterns/preconditions.h"

namespace attn_opt {
namespace {

/// Elements of a weight of ones that is written for one that is not there.
constexpr int64_t kMostOnes = int64_t{1} << 20;

/// Where a normalisation begins and ends.
struct NormEnds {
  Value* from = nullptr;    ///< x, in front of a cast to float32 that is undone behind it
  Value* y = nullptr;       ///< the last value that belongs to it
  Value* weight = nullptr;  ///< of rank 1, as long as the last axis; null: none
  Value* bias = nullptr;    ///< the same; only behind a weight
  Node* place = nullptr;    ///< what makes y
};

/// The node that alone reads VALUE, which is no output of a graph, in the graph of MAKER; null if there is none.
Node* sole_reader(const Value& value, const Node& maker) {
  Node* reader = value.is_output || value.uses.size() != 1 ? nullptr : value.uses[0].node;
  return reader && reader->graph == maker.graph ? reader : nullptr;
}

/// NODE's other operand than VALUE, where NODE is OP of two; null if it is not.
Value* other_operand(const Node* node, const Value& value, std::string_view op) {
  if (!node || !node->is(op) || node->inputs.size() != 2 || node->inputs[0] == node->inputs[1]) return nullptr;
  return node->inputs[node->inputs[0] == &value ? 1 : 0];
}

/// True for a value of rank 1 that has SIZE elements of TYPE.
bool is_vector(const Value& value, const Dim& size, DataType type, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  return shape && shape->size() == 1 && (*shape)[0] == size && facts.type(value) == type;
}

/// Lets ENDS go on behind the sum with a bias.
void add_bias(NormEnds& ends, const Dim& size, Facts& facts) {
  Node* sum = sole_reader(*ends.y, *ends.place);
  Value* bias = other_operand(sum, *ends.y, "Add");
  if (!bias || !is_vector(*bias, size, facts.type(*ends.y), facts)) return;
  ends.bias = bias;
  ends.place = sum;
  ends.y = sum->outputs[0];
}

/// The ends of FORM, which is NORMALISED, of x whose last axis is of SIZE. A node belongs to it if nothing else reads what is
/// in front.
NormEnds ends_of(const NormForm& form, Value& normalised, const Dim& size, Facts& facts) {
  Value& x = *form.x;
  NormEnds ends{&x, &normalised, form.weight, form.bias, normalised.producer};
  if (ends.weight) {
    if (form.centred && !ends.bias) add_bias(ends, size, facts);
    return ends;
  }
  const auto take = [&ends](Node* node) {
    ends.place = node;
    ends.y = node->outputs[0];
  };
  Node* back = sole_reader(*ends.y, *ends.place);
  const Node* widening = x.producer;
  const bool is_wide = widening && widening->is("Cast") && facts.type(x) == onnx::TensorProto::FLOAT &&
                       is_floating(facts.type(*widening->inputs[0]));
  if (is_wide && back && back->is("Cast") && facts.type(*back->outputs[0]) == facts.type(*widening->inputs[0])) {
    ends.from = widening->inputs[0];
    take(back);
  }
  const DataType type = facts.type(*ends.y);
  Node* product = sole_reader(*ends.y, *ends.place);
  Value* weight = other_operand(product, *ends.y, "Mul");
  if (!weight || !is_vector(*weight, size, type, facts)) return ends;
  ends.weight = weight;
  take(product);
  if (form.centred) add_bias(ends, size, facts);
  return ends;
}

/// Why FORM may be NaN where the operator is a number: infinite weights are multiplied with x and its mean apart, and Inf - Inf
/// is none.
std::string why_it_may_be_nan(const NormForm& form, Facts& facts) {
  if (!form.centred || !form.weight || is_known_finite(*form.weight, facts)) return "";
  return "of a weight '" + form.weight->name + "' that is Inf the mean is subtracted for itself: NaN";
}

}  // namespace

Matched<RewriteMatch> norm_match(const NormForm& form, const Node& node, Facts& facts) {
  const MaybeShape shape = facts.shape(*form.x);
  const Dim size = shape.known().back();
  const NormEnds ends = ends_of(form, *node.outputs[0], size, facts);
  if (form.weight && !is_vector(*form.weight, size, facts.type(*ends.y), facts))
    return missed("norm.size", &node,
                  "the weight '" + form.weight->name + "' has not the " + size.str() + " elements of a row");
  RewriteMatch match;
  match.peeled = {"ReduceMean", node.op()};
  match.insert_before = ends.place;
  match.makes_numbers_of_nan = why_it_may_be_nan(form, facts);
  if (form.cancels)
    match.rounds_otherwise = "the mean of squares less the square of the mean is far from the variance where that is small";
  match.numbers["epsilon"] = form.epsilon;
  match.values = {{"x", ends.from}, {"y", ends.y}};
  if (ends.weight) match.values["weight"] = ends.weight;
  if (ends.bias) match.values["bias"] = ends.bias;
  if (ends.weight) return match;
  if (!size.is_constant()) return missed("norm.size", &node, "there is no weight, and the size of the last axis is no number");
  if (size.value() > kMostOnes)
    return missed("norm.size", &node,
                  "there is no weight, and the last axis has " + size.str() + " elements: it is not written out");
  match.numbers["size"] = static_cast<double>(size.value());
  match.numbers["type"] = facts.type(*ends.y);
  return match;
}

Value* weight_of(const RewriteMatch& match, GraphBuilder& build) {
  if (Value* weight = match.value("weight")) return weight;
  const auto size = static_cast<int64_t>(match.number("size"));
  const std::vector<float> ones(static_cast<size_t>(size), 1.0F);
  return build.constant(Tensor::of<float>({size}, ones), static_cast<DataType>(match.number("type")));
}

GraphBuilder::Attributes norm_attributes(const RewriteMatch& match) {
  return {GraphBuilder::attribute("axis", int64_t{-1}),
          GraphBuilder::attribute("epsilon", static_cast<float>(match.number("epsilon"))),
          GraphBuilder::attribute("stash_type", int64_t{onnx::TensorProto::FLOAT})};
}

}  // namespace attn_opt
