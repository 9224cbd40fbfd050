#include "src/rewrite/type_inference.h"

#include <onnx/common/proto_util.h>
#include <onnx/defs/schema.h>

#include <exception>

#include "src/io/check/onnx_schemas.h"
#include "src/io/one_line.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {
namespace {

namespace inference = onnx::shape_inference;

// Contents are followed from node to node here, and not inside of bodies and functions: those are gone through several times,
// and ONNX takes contents that are found again for an error.
const onnx::ShapeInferenceOptions kStrict(/*check_type=*/true, /*strict_mode=*/1, /*data_prop=*/false);

std::unordered_map<std::string, int> imports_of(const onnx::ModelProto& model) {
  std::unordered_map<std::string, int> imports;
  for (const auto& import : model.opset_import())
    imports[is_onnx(import.domain()) ? "" : import.domain()] = static_cast<int>(import.version());
  return imports;
}

inference::ModelLocalFunctionsMap functions_of(const onnx::ModelProto& model) {
  inference::ModelLocalFunctionsMap functions;
  for (const auto& function : model.functions()) functions[onnx::GetFunctionImplId(function)] = &function;
  return functions;
}

const onnx::OpSchema* schema_of(const onnx::NodeProto& node, const std::unordered_map<std::string, int>& imports) {
  const auto version = imports.find(is_onnx(node.domain()) ? "" : node.domain());
  return version == imports.end() ? nullptr : onnx_schema(node.op_type(), version->second, node.domain());
}

/// What is wrong with an axis that NODE names, X being its first input; empty if nothing is. ONNX's inference reads some axes
/// that there are not (LayerNormalization's, GatherND's).
std::string wrong_axis(const onnx::NodeProto& node, const onnx::TypeProto* x) {
  // QuantizeLinear and DequantizeLinear with one scale do not read their axis.
  if (!x || !x->tensor_type().has_shape() || node.op_type().ends_with("uantizeLinear")) return {};
  const int64_t new_axes = node.op_type() == "OneHot" ? 1 : 0;
  const int64_t rank = x->tensor_type().shape().dim_size() + new_axes;
  for (const auto& attribute : node.attribute()) {
    const bool is_count = attribute.name() == "batch_dims";
    if (!is_count && attribute.name() != "axis") continue;
    if (attribute.i() <= rank && attribute.i() >= (is_count ? 0 : -rank)) continue;
    return attribute.name() + " is " + std::to_string(attribute.i()) + ", which is no axis";
  }
  return {};
}

}  // namespace

onnx::TypeProto* TypeInference::set_type(const std::string& name, const onnx::TypeProto& type) {
  return type_of_[name] = &types_.emplace_back(type);
}

onnx::TypeProto* TypeInference::type(const std::string& name) const {
  const auto known = type_of_.find(name);
  return known == type_of_.end() ? nullptr : known->second;
}

void TypeInference::rename(const std::string& old_name, const std::string& new_name) {
  if (onnx::TypeProto* known = type(old_name)) type_of_[new_name] = known;
  if (const auto known = contents_.find(old_name); known != contents_.end()) contents_[new_name] = known->second;
  if (const auto known = shapes_.find(old_name); known != shapes_.end()) {
    const onnx::TensorShapeProto sizes = known->second;
    shapes_[new_name] = sizes;
  }
}

Expected<std::vector<onnx::TypeProto>> TypeInference::infer(onnx::NodeProto& node) {
  const auto imports = imports_of(model_);
  const auto functions = functions_of(model_);
  const auto* schema = schema_of(node, imports);
  const std::string wrong = schema && node.input_size() > 0 ? wrong_axis(node, type(node.input(0))) : "";
  if (!wrong.empty()) return fail(ErrorCode::kUsage, {}, wrong);
  try {
    inference::GraphInferenceContext around(type_of_, imports, nullptr, functions, &onnx_schemas(), &shapes_,
                                            model_.ir_version());
    inference::InferenceContextImpl context(node, type_of_, contents_, {}, kStrict, &shapes_, &around);
    const auto function = functions.find(onnx::GetCalleeId(node));
    if (schema && schema->has_type_and_shape_inference_function())
      schema->GetTypeAndShapeInferenceFunction()(context);
    else if (const auto* body = schema && schema->HasFunction() ? schema->GetFunction() : nullptr)
      inference::InferShapeForFunctionNode(*body, &onnx_schemas(), context, kStrict, functions, nullptr, &shapes_);
    else if (function != functions.end())
      inference::InferShapeForFunctionNode(*function->second, &onnx_schemas(), context, kStrict, functions, nullptr, &shapes_);
    if (schema) schema->CheckInputOutputType(context);
    if (schema && schema->has_data_propagation_function()) {
      inference::DataPropagationContextImpl contents(node, type_of_, contents_, shapes_);
      schema->GetDataPropagationFunction()(contents);
    }
    return context.allOutputTypes_;
  } catch (const std::exception& error) {
    return fail(ErrorCode::kUsage, {}, one_line(error.what()));
  }
}

}  // namespace attn_opt
