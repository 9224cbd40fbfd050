#include "src/rewrite/value_names.h"

namespace attn_opt {
namespace {

void put_name(const NewNames& names, std::string& name) {
  if (const auto renamed = names.find(name); renamed != names.end()) name = renamed->second;
}

}  // namespace

void put_names(const NewNames& names, onnx::NodeProto& node) {
  for (std::string& name : *node.mutable_input()) put_name(names, name);
  for (std::string& name : *node.mutable_output()) put_name(names, name);
  for (auto& attribute : *node.mutable_attribute())
    if (attribute.has_g()) put_names(names, *attribute.mutable_g());
}

void put_names(const NewNames& names, onnx::GraphProto& graph) {
  for (auto& node : *graph.mutable_node()) put_names(names, node);
  for (auto* values : {graph.mutable_output(), graph.mutable_value_info()})
    for (auto& value : *values) put_name(names, *value.mutable_name());
}

}  // namespace attn_opt
