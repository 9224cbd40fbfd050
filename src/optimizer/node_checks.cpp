#include "src/optimizer/node_checks.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "src/graph/operator_name.h"
#include "src/io/check/onnx_schemas.h"

namespace attn_opt {
namespace {

constexpr std::string_view kContribDomain = "com.microsoft";

/// Where NODE is, of which neither it nor its outputs may have a name.
std::string place_of(const Node& node) {
  return node.label().empty() ? "node number " + std::to_string(node.position) + " of its graph" : node.label();
}

/// The first input that NODE leaves out and SCHEMA requires; -1 if there is none.
int missing_input(const Node& node, const onnx::OpSchema& schema) {
  const auto& formal = schema.inputs();
  for (size_t i = 0; i < node.inputs.size() && !formal.empty(); ++i) {
    const auto& parameter = formal[std::min(i, formal.size() - 1)];
    if (!node.inputs[i] && parameter.GetOption() != onnx::OpSchema::Optional) return static_cast<int>(i);
  }
  return -1;
}

/// Inputs, of an operator of com.microsoft that is a product wherever one is read, that ONNX Runtime's schema (contrib_defs.cc)
/// requires; 0 of any other.
size_t required_inputs(const Node& node) {
  if (node.domain() != kContribDomain) return 0;
  return node.op() == "FusedMatMul" ? 2 : node.op() == "MatMulIntegerToFloat" ? 4 : 0;
}

/// The first input that NODE leaves out and its operator requires; -1 if there is none.
int missing_input(const Node& node, const ModelGraph& view) {
  for (size_t i = 0; i < required_inputs(node); ++i)
    if (!node.input(i)) return static_cast<int>(i);
  if (std::ranges::find(node.inputs, nullptr) == node.inputs.end()) return -1;
  const std::string domain(node.domain());
  const auto* schema = onnx_schema(node.op(), view.opset(*node.graph, domain), domain);
  return schema ? missing_input(node, *schema) : -1;
}

Status check_inputs(const Node& node, const ModelGraph& view) {
  const int missing = missing_input(node, view);
  if (missing < 0) return {};
  return fail(ErrorCode::kInvalidInput, place_of(node),
              operator_name(node) + " has no input " + std::to_string(missing) + ", which it requires");
}

/// What a node makes first is what it is there for: ONNX Runtime does not run one of its operators without, even where ONNX's
/// checker takes it (Split, If, Scan). Operators of other domains may do something else.
Status check_outputs(const Node& node) {
  if (node.output(0) || (!node.domain().empty() && node.domain() != kContribDomain)) return {};
  return fail(ErrorCode::kInvalidInput, place_of(node),
              operator_name(node) + " leaves out its first output, which it requires");
}

Status check_permutation(const Node& node) {
  const auto* perm = node.is("Transpose") ? node.ints_attribute("perm") : nullptr;
  if (!perm) return {};
  std::vector<bool> seen(static_cast<size_t>(perm->size()));
  for (const int64_t axis : *perm) {
    if (axis < 0 || axis >= perm->size() || seen[static_cast<size_t>(axis)])
      return fail(ErrorCode::kInvalidInput, place_of(node), "the perm of a Transpose is no permutation");
    seen[static_cast<size_t>(axis)] = true;
  }
  return {};
}

/// TEXT without its first PART.
std::string without(std::string text, std::string_view part) {
  if (const size_t at = text.find(part); at != std::string::npos) text.erase(at, part.size());
  return text;
}

/// Of terms of letters, one for each input, with at most one ellipsis in each and one arrow: ONNX's own shape inference does
/// not come back from a sign that it does not expect.
Status check_equation(const Node& node) {
  const auto* attribute = node.is("Einsum") ? node.attribute("equation") : nullptr;
  if (!attribute) return {};
  const std::string& equation = attribute->s();
  const size_t arrow = equation.find("->");
  const auto is_term = [](std::string term) {
    return std::ranges::all_of(without(std::move(term), "..."),
                               [](char sign) { return std::isalpha(static_cast<unsigned char>(sign)) || sign == ' '; });
  };
  size_t terms = 0;
  bool is_valid = arrow == std::string::npos || is_term(equation.substr(arrow + 2));
  std::istringstream operands(equation.substr(0, arrow) + ',');
  for (std::string term; std::getline(operands, term, ','); ++terms) is_valid = is_valid && is_term(term);
  if (is_valid && terms == node.inputs.size()) return {};
  return fail(ErrorCode::kInvalidInput, place_of(node),
              "the equation '" + equation + "' of an Einsum is none for " + std::to_string(node.inputs.size()) + " inputs");
}

}  // namespace

Status check_nodes(const ModelGraph& view) {
  for (const auto& graph : view.graphs())
    for (const Node* node : graph->nodes()) {
      ATTN_OPT_CHECK(check_inputs(*node, view));
      ATTN_OPT_CHECK(check_outputs(*node));
      ATTN_OPT_CHECK(check_permutation(*node));
      ATTN_OPT_CHECK(check_equation(*node));
    }
  return {};
}

}  // namespace attn_opt
