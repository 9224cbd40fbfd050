#include "src/optimizer/respelled_einsums.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "attn_opt/internal/model_walk.h"
#include "src/io/einsum_equation.h"
#include "src/io/onnx_domain.h"
#include "src/optimizer/einsum_split.h"

namespace attn_opt {
namespace {

/// The axis of the operand that each axis of the result of EQUATION is; nullopt if it does more than move them.
std::optional<std::vector<int64_t>> moved_axes(std::string equation) {
  const EinsumEquation read = einsum_equation(std::move(equation));
  if (!read.result || read.operands.size() != 1) return std::nullopt;
  const std::string &operand = read.operands[0], &result = *read.result;
  if (!has_letters_once(operand) || !std::ranges::is_permutation(operand, result)) return std::nullopt;
  std::vector<int64_t> axes;
  for (const char letter : result) axes.push_back(static_cast<int64_t>(operand.find(letter)));
  return axes;
}

bool is_of_onnx(const onnx::NodeProto& node, std::string_view op_type) {
  return node.op_type() == op_type && is_onnx(node.domain());
}

std::optional<std::vector<int64_t>> moved_axes(const onnx::NodeProto& node) {
  if (!is_of_onnx(node, "Einsum") || node.input_size() != 1 || node.output_size() != 1 || node.attribute_size() != 1)
    return std::nullopt;
  const onnx::AttributeProto& equation = node.attribute(0);
  return equation.ref_attr_name().empty() ? moved_axes(equation.s()) : std::nullopt;
}

/// What NODE, a Transpose, says of its axes.
std::vector<int64_t> perm_of(const onnx::NodeProto& node) {
  if (!is_of_onnx(node, "Transpose") || node.attribute_size() != 1) return {};
  return {node.attribute(0).ints().begin(), node.attribute(0).ints().end()};
}

/// How NODE is split; nullopt if it stays as it is.
std::optional<EinsumSplit> split_of(const onnx::NodeProto& node) {
  if (!is_of_onnx(node, "Einsum") || node.input_size() < 3 || node.output_size() != 1 || node.attribute_size() != 1)
    return std::nullopt;
  const onnx::AttributeProto& equation = node.attribute(0);
  return equation.ref_attr_name().empty() ? split_einsum(equation.s()) : std::nullopt;
}

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// The lists of nodes of all graphs and functions of MODEL.
std::vector<Nodes*> lists_of_nodes(onnx::ModelProto& model) {
  std::vector<Nodes*> lists;
  for_each_graph(model, [&](onnx::GraphProto& graph) { lists.push_back(graph.mutable_node()); });
  for (onnx::FunctionProto& function : *model.mutable_functions()) lists.push_back(function.mutable_node());
  return lists;
}

/// What the nodes of MODEL make, and its graphs and functions are given.
std::set<std::string> names_made(const onnx::ModelProto& model) {
  std::set<std::string> names;
  for_each_graph(model, [&](const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) names.insert(input.name());
    for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  });
  for (const auto& function : model.functions()) names.insert(function.input().begin(), function.input().end());
  for_each_node(model, [&](const onnx::NodeProto& node) { names.insert(node.output().begin(), node.output().end()); });
  return names;
}

/// STEM with what it takes for it to be none of NAMES.
std::string name_beside(const std::set<std::string>& names, std::string stem) {
  while (names.contains(stem)) stem += '_';
  return stem;
}

bool are_same(const onnx::NodeProto& one, const onnx::NodeProto& other) {
  return one.SerializeAsString() == other.SerializeAsString();
}

/// How many of NODES read NAME: what is equal was made one since.
template <class Nodes>
auto readers_of(const std::string& name, const Nodes& nodes) {
  return std::ranges::count_if(
      nodes, [&name](const onnx::NodeProto& node) { return std::ranges::find(node.input(), name) != node.input().end(); });
}

}  // namespace

void RespelledEinsums::move_axes(onnx::NodeProto& node) {
  const auto axes = moved_axes(node);
  if (!axes) return;
  read_.emplace(node.output(0), node);
  node.set_op_type("Transpose");
  onnx::AttributeProto& perm = *node.mutable_attribute(0);
  perm.Clear();
  perm.set_name("perm");
  perm.set_type(onnx::AttributeProto::INTS);
  for (const int64_t axis : *axes) perm.add_ints(axis);
}

void RespelledEinsums::split(Nodes& nodes, std::set<std::string>& names) {
  for (int i = 0; i < nodes.size(); ++i) {
    const auto split = split_of(nodes[i]);
    if (!split) continue;
    const onnx::NodeProto read = nodes[i];
    onnx::NodeProto &product = *nodes.Add(), &map = nodes[i];
    const std::string name = name_beside(names, read.output(0) + "/product");
    names.insert(name);
    product = read;
    // What is said of it is said of the one that the model has.
    product.set_name(read.name().empty() ? read.output(0) : read.name());
    product.set_output(0, name);
    product.mutable_input()->DeleteSubrange(static_cast<int>(split->map), 1);
    product.mutable_attribute(0)->set_s(split->product);
    map.clear_input();
    map.add_input(name);
    map.add_input(read.input(static_cast<int>(split->map)));
    map.mutable_attribute(0)->set_s(split->rest);
    split_.emplace(name, Split{read, product, map});
    // What was added at the end is moved to stand in front of what reads it.
    for (int at = nodes.size() - 1; at > i; --at) nodes.SwapElements(at, at - 1);
    ++i;
  }
}

void RespelledEinsums::join(Nodes& nodes) const {
  for (int i = 0; i < nodes.size(); ++i) {
    const auto found = nodes[i].output_size() == 1 ? split_.find(nodes[i].output(0)) : split_.end();
    if (found == split_.end() || !are_same(nodes[i], found->second.product)) continue;
    const onnx::NodeProto& read = found->second.map;
    const auto map = std::find_if(nodes.begin() + i + 1, nodes.end(), [&](const auto& node) {
      return node.output_size() == 1 && node.output(0) == read.output(0) && are_same(node, read);
    });
    if (map == nodes.end() || readers_of(nodes[i].output(0), nodes) != 1) continue;
    *map = found->second.read;
    nodes.DeleteSubrange(i--, 1);
  }
}

RespelledEinsums::RespelledEinsums(onnx::ModelProto& model) {
  bool splits = false;
  for_each_node(model, [&](onnx::NodeProto& node) {
    move_axes(node);
    splits |= split_of(node).has_value();
  });
  if (!splits) return;
  std::set<std::string> names = names_made(model);
  for (Nodes* nodes : lists_of_nodes(model)) split(*nodes, names);
}

void RespelledEinsums::restore(onnx::ModelProto& model) const {
  if (!split_.empty())
    for (Nodes* nodes : lists_of_nodes(model)) join(*nodes);
  if (read_.empty()) return;
  for_each_node(model, [this](onnx::NodeProto& node) {
    if (node.output_size() != 1) return;
    const auto [begin, end] = read_.equal_range(node.output(0));
    const auto same = std::find_if(begin, end, [&](const auto& read) { return perm_of(node) == moved_axes(read.second); });
    if (same == end) return;
    node.set_op_type("Einsum");
    *node.mutable_attribute() = same->second.attribute();
  });
}

}  // namespace attn_opt
