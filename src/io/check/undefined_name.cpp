#include "src/io/check/undefined_name.h"

#include <algorithm>
#include <vector>

#include "attn_opt/internal/model_walk.h"
#include "src/io/check/nearest_name.h"

namespace attn_opt {
namespace {

/// Names of PROTO, of whatever graph and function; none of a model so large that comparing them all takes long.
std::vector<std::string> names_of_values(const onnx::ModelProto& proto) {
  constexpr size_t kMostNames = 10'000;
  std::vector<std::string> names;
  const auto add = [&names](const auto& found) { names.insert(names.end(), found.begin(), found.end()); };
  for_each_graph(proto, [&names](const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) names.push_back(input.name());
    for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
  });
  for (const auto& function : proto.functions()) add(function.input());
  for_each_node(proto, [&add](const onnx::NodeProto& node) { add(node.output()); });
  return names.size() > kMostNames ? std::vector<std::string>() : names;
}

}  // namespace

std::string naming_undefined(const std::string& said, const onnx::ModelProto& proto) {
  constexpr std::string_view kBegin = "topologically sorted, however input '";
  const size_t found = said.find(kBegin), begin = found + kBegin.size(), end = said.find('\'', begin);
  if (found == std::string::npos || end == std::string::npos) return said;
  const std::string name = said.substr(begin, end - begin);
  const std::vector<std::string> names = names_of_values(proto);
  if (names.empty() || std::ranges::find(names, name) != names.end()) return said;
  std::string reader;
  for_each_node(proto, [&](const onnx::NodeProto& node) {
    if (reader.empty() && std::ranges::find(node.input(), name) != node.input().end()) reader = node.op_type();
  });
  const auto near = nearest_name(name, names);
  return reader + " reads '" + name + "', which nothing makes" + (near ? "; did you mean '" + *near + "'?" : "");
}

}  // namespace attn_opt
