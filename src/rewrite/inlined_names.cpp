#include "src/rewrite/inlined_names.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "attn_opt/internal/model_walk.h"
#include "src/rewrite/value_names.h"

namespace attn_opt {
namespace {

constexpr std::string_view kGiven = "_inlfunc_";
constexpr std::string_view kWritten = "inlined_";

/// Names of MODEL's values, and of those that keep theirs.
struct Names {
  std::set<std::string> all;
  std::set<std::string> declared;  ///< inputs, and outputs of the model
};

/// True if an initializer of MODEL, or what a node makes, has a name that was given.
bool has_given_names(const onnx::ModelProto& model) {
  const auto is_given = [](const std::string& name) { return name.starts_with(kGiven); };
  bool found = false;
  for_each_graph(model, [&](const onnx::GraphProto& graph) {
    found = found || std::ranges::any_of(graph.initializer(), is_given, &onnx::TensorProto::name);
  });
  for_each_node(model, [&](const onnx::NodeProto& node) { found = found || std::ranges::any_of(node.output(), is_given); });
  return found;
}

Names names_of(const onnx::ModelProto& model) {
  Names names;
  for (const auto& output : model.graph().output()) names.declared.insert(output.name());
  for_each_graph(model, [&](const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) names.declared.insert(input.name());
    for (const auto& initializer : graph.initializer()) names.all.insert(initializer.name());
  });
  for_each_node(model, [&](const onnx::NodeProto& node) { names.all.insert(node.output().begin(), node.output().end()); });
  return names;
}

NewNames new_names_for(const Names& names) {
  NewNames made;
  for (const std::string& name : names.all) {
    if (!name.starts_with(kGiven) || names.declared.contains(name)) continue;
    std::string other = std::string(kWritten) + name.substr(kGiven.size());
    while (names.all.contains(other) || names.declared.contains(other)) other += '_';
    made.emplace(name, std::move(other));
  }
  return made;
}

}  // namespace

void rename_inlined_values(onnx::ModelProto& model) {
  if (!has_given_names(model)) return;
  const NewNames names = new_names_for(names_of(model));
  if (names.empty()) return;
  put_names(names, *model.mutable_graph());
  for_each_graph(model, [&](onnx::GraphProto& graph) {
    for (auto& initializer : *graph.mutable_initializer())
      if (const auto name = names.find(initializer.name()); name != names.end()) initializer.set_name(name->second);
  });
}

}  // namespace attn_opt
