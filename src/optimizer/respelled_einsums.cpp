#include "src/optimizer/respelled_einsums.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <vector>

#include "attn_opt/internal/model_walk.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {
namespace {

/// The axis of the operand that each axis of the result of EQUATION is; nullopt if it does more than move them.
std::optional<std::vector<int64_t>> moved_axes(std::string equation) {
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  const std::string operand = equation.substr(0, arrow), result = equation.substr(arrow + 2);
  const bool has_letters_alone =
      std::ranges::all_of(operand, [](char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0; });
  const bool has_each_once = std::set<char>(operand.begin(), operand.end()).size() == operand.size();
  if (!has_letters_alone || !has_each_once || !std::ranges::is_permutation(operand, result)) return std::nullopt;
  std::vector<int64_t> axes;
  for (const char letter : result) axes.push_back(static_cast<int64_t>(operand.find(letter)));
  return axes;
}

bool is_of_onnx(const onnx::NodeProto& node, const char* op_type) {
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

}  // namespace

RespelledEinsums::RespelledEinsums(onnx::ModelProto& model) {
  for_each_node(model, [this](onnx::NodeProto& node) {
    const auto axes = moved_axes(node);
    if (!axes) return;
    read_.emplace(node.output(0), node);
    node.set_op_type("Transpose");
    onnx::AttributeProto& perm = *node.mutable_attribute(0);
    perm.Clear();
    perm.set_name("perm");
    perm.set_type(onnx::AttributeProto::INTS);
    for (const int64_t axis : *axes) perm.add_ints(axis);
  });
}

void RespelledEinsums::restore(onnx::ModelProto& model) const {
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
