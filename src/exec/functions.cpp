#include "src/exec/functions.h"

#include <exception>

namespace attn_opt {
namespace {

using BoundAttributes = std::unordered_map<std::string, const onnx::AttributeProto*>;

void bind_attributes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const BoundAttributes& bound);

/// Replaces references to the function's attributes by values; those without value are dropped.
void bind_attributes(onnx::NodeProto& node, const BoundAttributes& bound) {
  auto& attributes = *node.mutable_attribute();
  for (int i = attributes.size(); i-- > 0;) {
    onnx::AttributeProto& attribute = attributes[i];
    if (attribute.ref_attr_name().empty()) {
      if (attribute.has_g()) bind_attributes(*attribute.mutable_g()->mutable_node(), bound);
      for (auto& graph : *attribute.mutable_graphs()) bind_attributes(*graph.mutable_node(), bound);
      continue;
    }
    const auto found = bound.find(attribute.ref_attr_name());
    if (found == bound.end()) {
      attributes.DeleteSubrange(i, 1);
      continue;
    }
    const std::string name = attribute.name();
    attribute = *found->second;
    attribute.set_name(name);
  }
}

void bind_attributes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const BoundAttributes& bound) {
  for (auto& node : nodes) bind_attributes(node, bound);
}

/// FUNCTION with attributes in place of references: NODE's, or else the function's or the schema's defaults.
onnx::FunctionProto bound_to(const onnx::FunctionProto& function, const onnx::NodeProto& node, const onnx::OpSchema* schema) {
  BoundAttributes bound;
  for (const auto& attribute : node.attribute()) bound[attribute.name()] = &attribute;
  for (const auto& attribute : function.attribute_proto()) bound.try_emplace(attribute.name(), &attribute);
  if (schema != nullptr) {
    for (const auto& [name, attribute] : schema->attributes()) {
      if (attribute.default_value.has_type()) bound.try_emplace(name, &attribute.default_value);
    }
  }
  onnx::FunctionProto result = function;
  bind_attributes(*result.mutable_node(), bound);
  return result;
}

int newest_up_to(const std::vector<int>& versions, int opset) {
  int newest = 0;
  for (const int version : versions) {
    if (version <= opset) newest = std::max(newest, version);
  }
  return newest;
}

onnx::TypeProto type_of(const Tensor& tensor) {
  onnx::TypeProto type;
  if (!tensor.has_value()) return type;
  if (tensor.is_sequence()) {
    auto* element = type.mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
    if (!tensor.elements().empty()) element->set_elem_type(tensor.elements()[0].type());
    return type;
  }
  type.mutable_tensor_type()->set_elem_type(tensor.type());
  auto* shape = type.mutable_tensor_type()->mutable_shape();
  for (const int64_t dim : tensor.dims()) shape->add_dim()->set_dim_value(dim);
  return type;
}

void append_number(std::string& key, int64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }

std::string cache_key(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs, int opset) {
  std::string key = node.domain() + ":" + node.op_type() + ":" + node.overload();
  append_number(key, opset);
  for (const auto& name : node.output()) key += name.empty() ? '0' : '1';
  for (const auto& attribute : node.attribute()) {
    const std::string text = attribute.SerializeAsString();
    append_number(key, static_cast<int64_t>(text.size()));
    key += text;
  }
  if (op.function != nullptr || op.schema->HasFunction()) return key;
  for (const Tensor& input : inputs) {
    append_number(key, input.is_sequence() ? -1 : input.type());
    if (input.is_sequence()) append_number(key, input.elements().empty() ? 0 : input.elements()[0].type());
    append_number(key, input.rank());
    for (const int64_t dim : input.dims()) append_number(key, dim);
  }
  return key;
}

}  // namespace

onnx::FunctionProto bound_function(const onnx::FunctionProto& function, const onnx::NodeProto& call) {
  return bound_to(function, call, nullptr);
}

Expected<onnx::FunctionProto> schema_function(const onnx::NodeProto& node, const onnx::OpSchema& schema, int opset,
                                              const std::vector<onnx::TypeProto>& types) {
  try {
    if (const onnx::FunctionProto* function = schema.GetFunction(opset)) {
      return bound_to(*function, node, &schema);
    }
    onnx::FunctionProto function;
    const int version = newest_up_to(schema.context_dependent_function_opset_versions(), opset);
    const onnx::FunctionBodyBuildContextImpl build_context(node, types);
    if (version > 0 && schema.BuildContextDependentFunction(build_context, function, version)) {
      return bound_to(function, node, &schema);
    }
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalidInput, describe(node), node.op_type() + ": " + error.what());
  }
  return fail(ErrorCode::kUnsupported, describe(node),
              "unsupported: " + node.op_type() + " (opset " + std::to_string(opset) + ") with these inputs");
}

Expected<std::shared_ptr<const FunctionBody>> FunctionCache::body(const onnx::NodeProto& node, const ResolvedOp& op,
                                                                  std::span<const Tensor> inputs, const Opsets& opsets) {
  const int opset = opset_of(opsets, node.domain());
  const std::string key = cache_key(node, op, inputs, opset);
  const std::scoped_lock lock(mutex_);
  if (const auto found = bodies_.find(key); found != bodies_.end()) return found->second;
  auto made = std::make_shared<FunctionBody>();
  if (op.function != nullptr) {
    made->proto = bound_function(*op.function, node);
  } else {
    std::vector<onnx::TypeProto> types;
    for (const Tensor& input : inputs) types.push_back(type_of(input));
    ATTN_OPT_TRY(made->proto, schema_function(node, *op.schema, opset, types));
  }
  ATTN_OPT_TRY(made->plan, plan_function(made->proto, opsets, functions_, schema_bodies_));
  constexpr size_t kMostBodies = 256;
  if (bodies_.size() >= kMostBodies) bodies_.clear();
  bodies_.emplace(key, made);
  return std::shared_ptr<const FunctionBody>(std::move(made));
}

}  // namespace attn_opt
