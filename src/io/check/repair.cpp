#include "src/io/check/repair.h"

#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_map>

#include "attn_opt/internal/model_walk.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {
namespace {

constexpr const char* kSpelledOut = "ai.onnx";

bool lacks_type(const onnx::ValueInfoProto& value) { return value.type().value_case() == onnx::TypeProto::VALUE_NOT_SET; }

/// Gives outputs without a type the one that is inferred.
void add_types(onnx::ModelProto& model, std::vector<std::string>& done) {
  auto& outputs = *model.mutable_graph()->mutable_output();
  if (std::ranges::none_of(outputs, lacks_type)) return;
  onnx::ModelProto inferred = model;
  try {
    onnx::shape_inference::InferShapes(inferred);
  } catch (const std::exception&) {
    return;  // the checker says what is wrong
  }
  for (int i = 0; i < outputs.size(); ++i) {
    const onnx::ValueInfoProto& found = inferred.graph().output(i);
    if (!lacks_type(outputs[i]) || lacks_type(found)) continue;
    *outputs.Mutable(i)->mutable_type() = found.type();
    done.push_back("output '" + found.name() + "' has no type, and was given the inferred one");
  }
}

bool may_replace(const onnx::TensorProto& one, const onnx::TensorProto& other) {
  return one.data_type() == other.data_type() && std::ranges::equal(one.dims(), other.dims());
}

/// Leaves the last of initializers of one name.
void drop_duplicates(onnx::ModelProto& model, std::vector<std::string>& done) {
  auto& tensors = *model.mutable_graph()->mutable_initializer();
  std::unordered_map<std::string_view, int> last;
  for (int i = 0; i < tensors.size(); ++i) last[tensors[i].name()] = i;
  if (last.size() == static_cast<size_t>(tensors.size())) return;
  std::vector<int> kept;
  for (int i = 0; i < tensors.size(); ++i) {
    const int later = last.at(tensors[i].name());
    if (later == i || !may_replace(tensors[i], tensors[later]))
      kept.push_back(i);
    else
      done.push_back("initializer '" + tensors[i].name() + "' stands more than once, and the last counts");
  }
  for (size_t to = 0; to < kept.size(); ++to) tensors.SwapElements(static_cast<int>(to), kept[to]);
  tensors.DeleteSubrange(static_cast<int>(kept.size()), tensors.size() - static_cast<int>(kept.size()));
}

/// Calls the domain "ai.onnx" of what FUNCTION imports "", if it does not import that too.
bool rename_import(onnx::FunctionProto& function) {
  const auto names = [](const char* domain) {
    return [domain](const onnx::OperatorSetIdProto& import) { return import.domain() == domain; };
  };
  auto& imports = *function.mutable_opset_import();
  const auto spelled_out = std::ranges::find_if(imports, names(kSpelledOut));
  if (spelled_out == imports.end() || std::ranges::any_of(imports, names(""))) return false;
  spelled_out->clear_domain();
  return true;
}

/// Calls the domain "ai.onnx" "", where the model has no functions of its own in it.
void rename_domain(onnx::ModelProto& model, std::vector<std::string>& done) {
  const auto is_of_domain = [](const onnx::FunctionProto& function) { return is_onnx(function.domain()); };
  if (std::ranges::any_of(model.functions(), is_of_domain)) return;
  size_t renamed = 0;
  for_each_node(model, [&](onnx::NodeProto& node) {
    if (node.domain() != kSpelledOut) return;
    node.clear_domain();
    ++renamed;
  });
  for (onnx::FunctionProto& function : *model.mutable_functions()) renamed += rename_import(function);
  if (renamed > 0) done.push_back("the domain is spelled 'ai.onnx' in " + std::to_string(renamed) + " places, and is \"\"");
}

}  // namespace

std::vector<std::string> repair(onnx::ModelProto& model) {
  std::vector<std::string> done;
  rename_domain(model, done);
  drop_duplicates(model, done);
  add_types(model, done);
  return done;
}

}  // namespace attn_opt
