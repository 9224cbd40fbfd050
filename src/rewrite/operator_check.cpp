#include "src/rewrite/operator_check.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <vector>

#include "src/graph/operator_name.h"
#include "src/graph/operator_text.h"
#include "src/io/check/nearest_name.h"
#include "src/io/check/onnx_schemas.h"
#include "src/io/one_line.h"

namespace attn_opt {
namespace {

using Registry = onnx::OpSchemaRegistry;

std::string domain_of(const onnx::NodeProto& node) { return node.domain() == "ai.onnx" ? "" : node.domain(); }

std::string counted(int number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

/// " one: input", ": A, B" or " none".
template <class Names>
std::string listed(const Names& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (list.empty()) return " none";
  return (names.size() == 1 && !list.ends_with("...") ? " one: " : ": ") + list;
}

/// OP is given NUMBER inputs, but takes those of NAMES.
template <class Names>
tl::unexpected<Error> other_inputs(const std::string& op, int number, const Names& names, const std::string& where) {
  return fail(ErrorCode::kInvalidInput, where, op + " is given " + counted(number, "input"), "it takes" + listed(names));
}

/// OP is asked for NUMBER outputs, but makes those of NAMES.
template <class Names>
tl::unexpected<Error> other_outputs(const std::string& op, int number, const Names& names, const std::string& where) {
  return fail(ErrorCode::kInvalidInput, where, op + " is asked for " + counted(number, "output"), "it makes" + listed(names));
}

/// Parameters of FUNCTION, those with a default last.
std::vector<std::string> parameters_of(const onnx::FunctionProto& function) {
  std::vector<std::string> names(function.attribute().begin(), function.attribute().end());
  for (const auto& attribute : function.attribute_proto()) names.push_back(attribute.name());
  return names;
}

/// The operators that ONNX has in DOMAIN. Slow: every schema is copied.
std::vector<std::string> operators_of(const std::string& domain) {
  std::set<std::string> names;
  for (const auto& schema : Registry::get_all_schemas_with_history())
    if (schema.domain() == domain) names.insert(schema.Name());
  return {names.begin(), names.end()};
}

std::string opset_name(const std::string& domain, int version) {
  return "opset " + std::to_string(version) + (domain.empty() ? "" : " of " + domain);
}

tl::unexpected<Error> misspelt(const std::string& missing, const std::string& op, const std::string& domain,
                               const std::string& where) {
  const auto near = nearest_name(op, operators_of(domain));
  return fail(ErrorCode::kInvalidInput, where, missing,
              near ? "did you mean '" + *near + "'?" : "an operator of another domain is written with its domain");
}

Status no_operator(const onnx::NodeProto& node, const std::string& domain, int version, const std::string& where) {
  const std::string missing = "there is no operator '" + node.op_type() + "' in " + opset_name(domain, version);
  const auto* newest = onnx_schema(node.op_type(), INT_MAX, domain);
  if (!newest) return misspelt(missing, node.op_type(), domain, where);
  int first = newest->SinceVersion();
  for (const auto& schema : Registry::get_all_schemas_with_history())
    if (schema.Name() == node.op_type() && schema.domain() == domain) first = std::min(first, schema.SinceVersion());
  return fail(ErrorCode::kInvalidInput, where, missing, "it came with opset " + std::to_string(first));
}

std::vector<std::string> names_of(const std::vector<onnx::OpSchema::FormalParameter>& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) {
    const auto option = parameter.GetOption();
    names.push_back(parameter.GetName() + (option == onnx::OpSchema::Optional   ? " (optional)"
                                           : option == onnx::OpSchema::Variadic ? " ..."
                                                                                : ""));
  }
  return names;
}

Status check_counts(const onnx::NodeProto& node, const onnx::OpSchema& schema, const std::string& where) {
  if (node.input_size() < schema.min_input() || node.input_size() > schema.max_input())
    return other_inputs(node.op_type(), node.input_size(), names_of(schema.inputs()), where);
  if (node.output_size() < schema.min_output() || node.output_size() > schema.max_output())
    return other_outputs(node.op_type(), node.output_size(), names_of(schema.outputs()), where);
  return {};
}

std::string type_text(onnx::AttributeProto::AttributeType type) { return onnx::AttributeProto::AttributeType_Name(type); }

Status check_attribute(const onnx::AttributeProto& attribute, const std::vector<std::string>& known, const std::string& op,
                       const onnx::OpSchema& schema, const std::string& where) {
  const auto wanted = schema.attributes().find(attribute.name());
  if (wanted == schema.attributes().end())
    return fail(ErrorCode::kInvalidInput, where, op + " has no attribute '" + attribute.name() + "'",
                suggestion(attribute.name(), known));
  if (attribute.type() != wanted->second.type)
    return fail(ErrorCode::kInvalidInput, where,
                "the attribute '" + attribute.name() + "' of " + op + " is given as " + type_text(attribute.type()),
                "it is " + type_text(wanted->second.type));
  return {};
}

Status check_attributes(const onnx::NodeProto& node, const onnx::OpSchema& schema, const std::string& where) {
  std::vector<std::string> known;
  for (const auto& [name, attribute] : schema.attributes()) known.push_back(name);
  std::set<std::string> given;
  for (const auto& attribute : node.attribute()) {
    given.insert(attribute.name());
    ATTN_OPT_CHECK(check_attribute(attribute, known, node.op_type(), schema, where));
  }
  for (const auto& [name, attribute] : schema.attributes())
    if (attribute.required && !given.contains(name))
      return fail(ErrorCode::kInvalidInput, where, node.op_type() + " needs the attribute '" + name + "'",
                  "it is " + type_text(attribute.type));
  return {};
}

using Parameters = std::vector<onnx::OpSchema::FormalParameter>;

/// Number INDEX of PARAMETERS, a schema's inputs or outputs, of which the last may stand for several; null if there are none.
const onnx::OpSchema::FormalParameter* parameter_at(const Parameters& parameters, size_t index) {
  return parameters.empty() ? nullptr : &parameters[std::min(index, parameters.size() - 1)];
}

/// True if a tensor of TYPE may be number INDEX of PARAMETERS.
bool takes(const Parameters& parameters, size_t index, DataType type) {
  const auto* parameter = parameter_at(parameters, index);
  if (!parameter || type == onnx::TensorProto::UNDEFINED) return true;
  onnx::TypeProto tensor;
  tensor.mutable_tensor_type()->set_elem_type(type);
  return parameter->GetTypes().contains(onnx::Utils::DataTypeUtils::ToType(tensor));
}

/// What OP, which SCHEMA is of, does not take or make of the types of NODE's inputs and outputs; empty if there is nothing.
std::string wrong_type(const Node& node, const onnx::OpSchema& schema, const std::string& op, Facts& facts) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] && !takes(schema.inputs(), i, facts.type(*node.inputs[i])))
      return op + " takes no " + type_name(facts.type(*node.inputs[i]));
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] && !takes(schema.outputs(), i, facts.type(*node.outputs[i])))
      return op + " makes no " + type_name(facts.type(*node.outputs[i]));
  return {};
}

/// Which inputs of NODE are of two types and must be of one; empty if none are.
std::string unequal_types(const Node& node, const onnx::OpSchema& schema, Facts& facts) {
  std::map<std::string, DataType> types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto* parameter = parameter_at(schema.inputs(), i);
    const DataType type = node.inputs[i] ? facts.type(*node.inputs[i]) : onnx::TensorProto::UNDEFINED;
    if (!parameter || !parameter->GetIsHomogeneous() || type == onnx::TensorProto::UNDEFINED) continue;
    const DataType first = types.emplace(parameter->GetTypeStr(), type).first->second;
    if (first != type)
      return node.op() + " is given " + type_name(first) + " and " + type_name(type) + ", which must be one type";
  }
  return {};
}

/// What keeps NODE out of a model of ai.onnx at VERSION; empty if nothing does.
std::string beyond_opset(const Node& node, int version, Facts& facts) {
  if (Status status = check_operator(*node.proto, version, node.op()); !status)
    return status.error().what + " at opset " + std::to_string(version);
  const auto* schema = onnx_schema(node.op(), version, "");
  return wrong_type(node, *schema, node.op() + " of opset " + std::to_string(version), facts);
}

/// The function of MODEL that CALL calls; null if there is none.
const onnx::FunctionProto* called_function(const onnx::NodeProto& call, const onnx::ModelProto& model) {
  const auto found = std::ranges::find_if(model.functions(), [&call](const onnx::FunctionProto& function) {
    return function.domain() == call.domain() && function.name() == call.op_type();
  });
  return found == model.functions().end() ? nullptr : &*found;
}

/// What keeps NODE, which EDIT makes, out of any model; empty if nothing does.
std::string fault_of_new(const Node& node, const Edit& edit, Facts& facts) {
  const std::string domain = domain_of(*node.proto);
  // A domain that the model does not import is imported at this version.
  const int version = domain.empty() ? edit.model().edit_opset() : std::max(edit.model().opset(edit.graph(), domain), 1);
  const auto* function = called_function(*node.proto, edit.model().proto());
  const Status valid = function ? check_call(*node.proto, *function, {}) : check_operator(*node.proto, version, {});
  if (!valid) return valid.error().message();
  const auto* schema = function ? nullptr : onnx_schema(node.op(), version, domain);
  if (!schema) return {};
  const std::string wrong = wrong_type(node, *schema, node.op(), facts);
  return wrong.empty() ? unequal_types(node, *schema, facts) : wrong;
}

}  // namespace

Matched<void> check_operators(const Edit& edit, Facts& facts) {
  constexpr int kFirstWithAttention = 23;
  const int version = edit.model().edit_opset();
  if (version >= kFirstWithAttention) return {};
  for (const Node* node : edit.nodes()) {
    if (!is_onnx(node->domain())) continue;
    if (std::string found = beyond_opset(*node, version, facts); !found.empty())
      return missed("emit.opset", &edit.anchor(), std::move(found));
  }
  return {};
}

Matched<void> check_new_nodes(const Edit& edit, Facts& facts) {
  for (const Node* node : edit.nodes())
    if (std::string fault = fault_of_new(*node, edit, facts); !fault.empty())
      return missed("rewrite.node", &edit.anchor(), std::move(fault));
  return {};
}

Status check_operator(const onnx::NodeProto& node, int version, const std::string& where) {
  const std::string domain = domain_of(node);
  const auto& domains = Registry::DomainToVersionRange::Instance().Map();
  const auto range = domains.find(domain);
  if (range == domains.end()) return {};
  const auto [first, last] = range->second;
  if (version < first || version > last)
    return fail(ErrorCode::kInvalidInput, where, node.op_type() + ": there is no " + opset_name(domain, version),
                "those from " + std::to_string(first) + " to " + std::to_string(last) + " are known");
  const auto* schema = onnx_schema(node.op_type(), version, domain);
  if (!schema) return no_operator(node, domain, version, where);
  ATTN_OPT_CHECK(check_counts(node, *schema, where));
  ATTN_OPT_CHECK(check_attributes(node, *schema, where));
  try {
    schema->Verify(node);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalidInput, where, node.op_type() + ": " + one_line(error.what()));
  }
  return {};
}

Status check_call(const onnx::NodeProto& call, const onnx::FunctionProto& function, const std::string& where) {
  const std::string name = function.domain() + "::" + function.name();
  if (call.input_size() > function.input_size()) return other_inputs(name, call.input_size(), function.input(), where);
  if (call.output_size() > function.output_size()) return other_outputs(name, call.output_size(), function.output(), where);
  const auto parameters = parameters_of(function);
  std::set<std::string> given;
  for (const auto& attribute : call.attribute()) {
    given.insert(attribute.name());
    if (std::ranges::find(parameters, attribute.name()) == parameters.end())
      return fail(ErrorCode::kInvalidInput, where, name + " has no attribute '" + attribute.name() + "'",
                  suggestion(attribute.name(), parameters));
  }
  for (const std::string& parameter : function.attribute())
    if (!given.contains(parameter))
      return fail(ErrorCode::kInvalidInput, where, name + " needs the attribute '" + parameter + "'",
                  "give it, or the function a default");
  return {};
}

Status check_operator_name(const std::string& op, const std::string& where) {
  const OperatorText wanted(op);
  const std::string name(wanted.op), domain(wanted.domain);
  if (!Registry::DomainToVersionRange::Instance().Map().contains(domain) || onnx_schema(name, INT_MAX, domain)) return {};
  return misspelt("there is no operator '" + name + "'" + (domain.empty() ? "" : " in " + domain), name, domain, where);
}

}  // namespace attn_opt
