// ONNX's own shape inference for one node, between our facts and its protos.
#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>

#include <algorithm>
#include <exception>

#include "src/io/check/onnx_schemas.h"
#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {
namespace {

/// Elements of a constant input that a schema function may want to see.
constexpr int64_t kMaxInputElements = 1024;

class NodeInference : public onnx::InferenceContext {
 public:
  explicit NodeInference(RuleContext& context) : context_(context), node_(context.node()) {
    const size_t inputs = node_.inputs.size();
    input_types_.resize(inputs);
    input_data_.resize(inputs);
    symbolic_data_.resize(inputs);
    output_types_.resize(node_.outputs.size());
    for (size_t i = 0; i < inputs; ++i) describe_input(i);
  }

  const onnx::AttributeProto* getAttribute(const std::string& name) const override { return node_.attribute(name); }
  size_t getNumInputs() const override { return input_types_.size(); }
  bool hasInput(size_t i) const override { return node_.input(i) != nullptr; }
  const onnx::TypeProto* getInputType(size_t i) const override { return hasInput(i) ? &input_types_[i] : nullptr; }
  const onnx::TensorProto* getInputData(size_t i) const override {
    return i < input_data_.size() ? input_data_[i].get() : nullptr;
  }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t i) const override {
    return i < symbolic_data_.size() ? symbolic_data_[i].get() : nullptr;
  }
  size_t getNumOutputs() const override { return output_types_.size(); }
  bool hasOutput(size_t i) override { return node_.output(i) != nullptr; }
  onnx::TypeProto* getOutputType(size_t i) override { return i < output_types_.size() ? &output_types_[i] : nullptr; }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override { return nullptr; }
  std::string getDisplayName() const override { return node_.label(); }

  void take_results() {
    for (size_t i = 0; i < output_types_.size(); ++i) take_result(i);
  }

 private:
  void describe_input(size_t i) {
    if (!node_.inputs[i]) return;
    const onnx::TypeProto* declared = node_.inputs[i]->declared_type;
    if (declared && !declared->has_tensor_type()) {
      input_types_[i] = *declared;
      return;
    }
    // Schema functions read the type of an input that is there without asking whether it is known.
    auto* type = input_types_[i].mutable_tensor_type();
    if (context_.type(i) != onnx::TensorProto::UNDEFINED) type->set_elem_type(context_.type(i));
    if (const MaybeShape shape = context_.shape(i)) {
      for (const Dim& dim : *shape) write(dim, *type->mutable_shape()->add_dim());
      type->mutable_shape();
    }
    describe_contents(i);
  }

  void describe_contents(size_t i) {
    const IntegerData* data = context_.elements(i);
    const ValueFact& fact = context_.store().computed(*node_.inputs[i]);
    const std::optional<int64_t> count = fact.shape ? element_count(*fact.shape) : std::nullopt;
    if (fact.foldable && count && *count <= kMaxInputElements) {
      if (const Tensor* tensor = context_.store().constant(*node_.inputs[i])) {
        input_data_[i] = std::make_unique<onnx::TensorProto>(to_proto(*tensor));
      }
    }
    if (input_data_[i] || !data || data->dims.size() > 1) return;
    symbolic_data_[i] = std::make_unique<onnx::TensorShapeProto>();
    for (const Dim& value : data->values) {
      auto& dim = *symbolic_data_[i]->add_dim();
      if (value.from_sizes()) write(value, dim);
    }
  }

  void write(const Dim& size, onnx::TensorShapeProto::Dimension& dim) {
    if (size.is_constant()) return dim.set_dim_value(size.value());
    const std::string name = size.str();
    symbols_.emplace(name, size);
    dim.set_dim_param(name);
  }

  void take_result(size_t i) {
    if (!node_.output(i) || !output_types_[i].has_tensor_type()) return;
    const auto& type = output_types_[i].tensor_type();
    ValueFact& fact = context_.result(i);
    if (fact.type == onnx::TensorProto::UNDEFINED && onnx::TensorProto::DataType_IsValid(type.elem_type())) {
      fact.type = static_cast<DataType>(type.elem_type());
    }
    if (fact.shape || !type.has_shape()) return;
    Shape shape;
    for (const auto& dim : type.shape().dim()) {
      const auto symbol = symbols_.find(dim.dim_param());
      if (dim.has_dim_value()) {
        shape.push_back(dim.dim_value());
      } else {
        shape.push_back(symbol != symbols_.end() ? symbol->second : context_.fresh(i, shape.size()));
      }
    }
    context_.set_shape(i, std::move(shape));
  }

  RuleContext& context_;
  const Node& node_;
  std::vector<onnx::TypeProto> input_types_, output_types_;
  std::vector<std::unique_ptr<onnx::TensorProto>> input_data_;
  std::vector<std::unique_ptr<onnx::TensorShapeProto>> symbolic_data_;
  std::unordered_map<std::string, Dim> symbols_;
};

/// ONNX's inference for STFT takes onesided for 0 when the attribute is absent; it is 1.
bool is_misinferred(const Node& node) { return node.is("STFT") && !node.attribute("onesided"); }

/// Some of ONNX's functions (LayerNormalization's) use an axis without checking that the input has it.
bool has_valid_axis(const RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const onnx::AttributeProto* axis = context.node().attribute("axis");
  if (!shape || !axis) return true;
  const int64_t rank = static_cast<int64_t>(shape->size());
  return axis->i() >= -rank && axis->i() <= rank;
}

bool is_complete(RuleContext& context) {
  for (size_t i = 0; i < context.node().outputs.size(); ++i) {
    const ValueFact& fact = context.result(i);
    if (context.wants(i) && (!fact.shape || fact.type == onnx::TensorProto::UNDEFINED)) return false;
  }
  return true;
}

}  // namespace

void apply_schema_inference(RuleContext& context) {
  const Node& node = context.node();
  if (is_complete(context) || is_misinferred(node) || !has_valid_axis(context)) return;
  try {
    const onnx::OpSchema* schema = onnx_schema(node.op(), context.opset(), std::string(node.domain()));
    if (!schema || !schema->has_type_and_shape_inference_function()) return;
    schema->Verify(*node.proto);
    NodeInference inference(context);
    schema->GetTypeAndShapeInferenceFunction()(inference);
    inference.take_results();
  } catch (const std::exception&) {
    // The node is not valid, or its inputs are not known well enough: nothing is known of its outputs.
  }
}

}  // namespace attn_opt
