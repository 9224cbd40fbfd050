#include "src/opset/schema_steps.h"

#include <onnx/defs/data_type_utils.h>

#include <algorithm>

#include "src/io/check/runtime_operators.h"

namespace attn_opt {
namespace {

using Kind = SchemaChange::Kind;
using onnx::OpSchema;
using Formals = std::vector<OpSchema::FormalParameter>;

void compare_attributes(const OpSchema& before, const OpSchema& after, std::vector<SchemaChange>& changes) {
  for (const auto& [name, old] : before.attributes()) {
    const auto found = after.attributes().find(name);
    if (found == after.attributes().end()) {
      changes.push_back({Kind::kAttributeRemoved, name});
      continue;
    }
    const OpSchema::Attribute& attribute = found->second;
    if (attribute.type != old.type) changes.push_back({Kind::kAttributeType, name});
    if (attribute.required && !old.required)
      changes.push_back({Kind::kAttributeRequired, name});
    else if (attribute.default_value.SerializeAsString() != old.default_value.SerializeAsString()) {
      changes.push_back({Kind::kAttributeDefault, name});
    }
  }
  for (const auto& [name, attribute] : after.attributes()) {
    if (attribute.required && !before.attributes().contains(name)) changes.push_back({Kind::kAttributeRequired, name});
  }
}

bool allows_all(const onnx::DataTypeSet& now, const onnx::DataTypeSet& once) {
  return std::ranges::all_of(once, [&now](const auto& type) { return now.contains(type); });
}

void compare_formals(const Formals& before, const Formals& after, bool inputs, std::vector<SchemaChange>& changes) {
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const int position = static_cast<int>(i);
    if (i >= after.size()) {
      changes.push_back({inputs ? Kind::kInputRemoved : Kind::kOutputRemoved, before[i].GetName(), position});
      continue;
    }
    const auto& now = after[i];
    const bool required = inputs && now.GetOption() == OpSchema::Single;
    if (i >= before.size() || before[i].GetOption() == OpSchema::Optional) {
      if (required) changes.push_back({Kind::kInputRequired, now.GetName(), position});
    }
    if (i >= before.size()) continue;
    const bool repeats = now.GetOption() == OpSchema::Variadic;
    const bool repeated = before[i].GetOption() == OpSchema::Variadic;
    if (repeats != repeated || (repeats && now.GetIsHomogeneous() && !before[i].GetIsHomogeneous())) {
      changes.push_back({Kind::kArity, now.GetName(), position});
    }
    if (!allows_all(now.GetTypes(), before[i].GetTypes())) {
      changes.push_back({inputs ? Kind::kInputTypes : Kind::kOutputTypes, now.GetName(), position, now.GetTypes()});
    }
  }
}

std::vector<SchemaChange> compare(const OpSchema& before, const OpSchema& after) {
  if (after.deprecated()) return {{Kind::kDeprecated, after.Name()}};
  std::vector<SchemaChange> changes;
  compare_attributes(before, after, changes);
  compare_formals(before.inputs(), after.inputs(), true, changes);
  compare_formals(before.outputs(), after.outputs(), false, changes);
  return changes;
}

bool sets(const onnx::NodeProto& node, const std::string& attribute) {
  return std::ranges::any_of(node.attribute(), [&](const auto& one) { return one.name() == attribute; });
}

bool has_input(const onnx::NodeProto& node, int i) { return i < node.input_size() && !node.input(i).empty(); }
bool has_output(const onnx::NodeProto& node, int i) { return i < node.output_size() && !node.output(i).empty(); }

bool allows(const onnx::DataTypeSet& types, DataType type) {
  if (type == onnx::TensorProto::UNDEFINED) return false;
  onnx::TypeProto proto;
  proto.mutable_tensor_type()->set_elem_type(type);
  return types.contains(onnx::Utils::DataTypeUtils::ToType(proto));
}

}  // namespace

bool touches(const SchemaChange& change, const onnx::NodeProto& node, const TypeLookup& type_of) {
  const int at = change.position;
  switch (change.kind) {
    case Kind::kAttributeType: return sets(node, change.name);
    case Kind::kAttributeDefault:
    case Kind::kAttributeRequired: return !sets(node, change.name);
    case Kind::kInputRemoved: return has_input(node, at);
    case Kind::kInputRequired: return !has_input(node, at);
    case Kind::kInputTypes: return has_input(node, at) && !allows(change.types, type_of(change.kind, at));
    case Kind::kOutputRemoved: return has_output(node, at);
    case Kind::kOutputTypes: return has_output(node, at) && !allows(change.types, type_of(change.kind, at));
    default: return true;
  }
}

std::string to_string(const SchemaChange& change) {
  switch (change.kind) {
    case Kind::kDeprecated: return change.name + " is deprecated";
    case Kind::kAttributeRemoved: return "attribute " + change.name + " is gone";
    case Kind::kAttributeType: return "attribute " + change.name + " has another type";
    case Kind::kAttributeDefault: return "attribute " + change.name + " has another default";
    case Kind::kAttributeRequired: return "attribute " + change.name + " is required";
    case Kind::kInputRemoved: return "input " + change.name + " is gone";
    case Kind::kInputRequired: return "input " + change.name + " is required";
    case Kind::kInputTypes: return "input " + change.name + " allows fewer types";
    case Kind::kOutputRemoved: return "output " + change.name + " is gone";
    case Kind::kOutputTypes: return "output " + change.name + " allows fewer types";
    case Kind::kArity: return change.name + " stands for another number of values";
  }
  return {};
}

const std::vector<SchemaStep>* SchemaHistory::steps(const std::string& op, int from, int to) {
  auto& known = steps_[{from, to}];
  if (const auto found = known.find(op); found != known.end()) return &found->second;
  const OpSchema* schema = find_schema(op, from, "");
  const OpSchema* last = find_schema(op, to, "");
  if (schema == nullptr || (schema->deprecated() && last->deprecated())) return nullptr;
  std::vector<SchemaStep> steps;
  for (int version = from + 1; version <= to; ++version) {
    const OpSchema* next = find_schema(op, version, "");
    if (next == nullptr || next->since_version() == schema->since_version()) continue;
    steps.push_back({version, compare(*schema, *next)});
    if (next->deprecated()) break;
    schema = next;
  }
  return &known.emplace(op, std::move(steps)).first->second;
}

}  // namespace attn_opt
