#include "patterns/rules/rule.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "attn_opt/operator_traits.h"
#include "patterns/rules/rule_constants.h"
#include "src/graph/operator_name.h"
#include "src/io/check/nearest_name.h"
#include "src/io/text_format.h"
#include "src/rewrite/operator_check.h"

namespace attn_opt {
namespace {

constexpr int kMaxRuleNodes = 256;
const std::vector<std::string> kKeys = {"RULE", "ABOUT", "WHERE", "ASSUME"};
constexpr std::array<std::string_view, 3> kPreconditions = {"rows-keep-a-key", "scores-finite", "exp-in-range"};

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string()
                                         : std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// Comments are free text, but for those whose first word is in capitals, or spells a key otherwise and is followed by what it
/// takes.
bool is_meant_as_key(const std::string& word, const std::string& rest) {
  constexpr size_t kShortestKey = 4;
  if (word.size() < kShortestKey || !std::ranges::all_of(word, [](unsigned char c) { return std::isalpha(c); })) return false;
  if (word == upper(word)) return true;
  const std::string first = rest.substr(0, rest.find(' '));
  const bool is_where = upper(word) == "WHERE" && first.ends_with(':');
  return is_where || (upper(word) == "ASSUME" && std::ranges::find(kPreconditions, rest) != kPreconditions.end());
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(trimmed(part));
  return parts;
}

bool is_size(const std::string& dim) {
  return dim == "?" || (!dim.empty() && std::ranges::all_of(dim, [](unsigned char c) { return std::isalnum(c) || c == '_'; }));
}

/// "NAME: constant float|float16 [B, 8, ?]", each part but the name optional.
Expected<RuleConstraint> read_constraint(const std::string& text, const std::string& where) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    return fail(ErrorCode::kInvalidInput, where, "'" + text + "' is no WHERE", "NAME: TYPE [DIMS]");
  RuleConstraint constraint{where, trimmed(text.substr(0, colon)), false, {}, {}};
  std::string rest = trimmed(text.substr(colon + 1));
  if (const size_t open = rest.find('['); open != std::string::npos) {
    const size_t close = rest.find(']', open);
    if (close == std::string::npos) return fail(ErrorCode::kInvalidInput, where, "'" + text + "' has no ']'");
    constraint.dims = split(rest.substr(open + 1, close - open - 1), ',');
    for (const std::string& dim : *constraint.dims)
      if (!is_size(dim)) return fail(ErrorCode::kInvalidInput, where, "'" + dim + "' is no size", "a number, a name or ?");
    rest = trimmed(rest.substr(0, open));
  }
  std::istringstream words(rest);
  for (std::string word; words >> word;) {
    if (word == "constant") {
      constraint.is_constant = true;
      continue;
    }
    for (const std::string& type : split(word, '|')) {
      onnx::TensorProto::DataType known = onnx::TensorProto::UNDEFINED;
      if (!onnx::TensorProto::DataType_Parse(upper(type), &known) || known == onnx::TensorProto::UNDEFINED)
        return fail(ErrorCode::kInvalidInput, where, "'" + type + "' is no type", "float, float16, bool, int64, ...");
      constraint.types.push_back(known);
    }
  }
  return constraint;
}

Status read_header(std::string_view text, const std::string& path, Rule& rule) {
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] != '#') continue;
    const std::string where = path + ":" + std::to_string(number);
    std::istringstream words(line.substr(1));
    std::string key, rest;
    words >> key;
    std::getline(words, rest);
    rest = trimmed(rest);
    if (key == "RULE") rule.name = rest;
    if (key == "ABOUT") rule.about = rest;
    if (key == "WHERE") {
      ATTN_OPT_TRY(RuleConstraint constraint, read_constraint(rest, where));
      rule.constraints.push_back(std::move(constraint));
    }
    if (is_meant_as_key(key, rest) && std::ranges::find(kKeys, key) == kKeys.end())
      return fail(ErrorCode::kInvalidInput, where, "'" + key + "' is no key of a rule's header", suggestion(upper(key), kKeys));
    if (key != "ASSUME") continue;
    if (std::ranges::find(kPreconditions, rest) == kPreconditions.end())
      return fail(ErrorCode::kInvalidInput, where, "there is no precondition '" + rest + "'",
                  "rows-keep-a-key, scores-finite or exp-in-range");
    rule.assumed.push_back(rest);
  }
  const bool is_name = !rule.name.empty() &&
                       std::ranges::all_of(rule.name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
  if (!is_name) return fail(ErrorCode::kInvalidInput, path, "it does not say how the rule is called", "a line '# RULE name'");
  if (rule.about.empty()) rule.about = "rule of " + path;
  return {};
}

using Names = std::set<std::string>;

/// Every value that FUNCTION's nodes can read. Error: one is read before it is made, or made twice.
Expected<Names> values_of(const onnx::FunctionProto& function, const std::string& where) {
  Names values(function.input().begin(), function.input().end());
  if (function.node_size() > kMaxRuleNodes)
    return fail(ErrorCode::kLimit, where,
                "'" + function.name() + "' has more than " + std::to_string(kMaxRuleNodes) + " nodes");
  for (const auto& node : function.node()) {
    for (const auto& attribute : node.attribute())
      if (attribute.has_g() || attribute.graphs_size() > 0)
        return fail(ErrorCode::kInvalidInput, where, node.op_type() + " of '" + function.name() + "' has a body");
    for (const auto& input : node.input())
      if (!input.empty() && !values.count(input))
        return fail(ErrorCode::kInvalidInput, where,
                    "'" + input + "' of '" + function.name() + "' is read before anything makes it");
    if (node.output_size() == 0 || node.output(0).empty())
      return fail(ErrorCode::kInvalidInput, where, node.op_type() + " of '" + function.name() + "' has no first output");
    for (const auto& output : node.output())
      if (!output.empty() && !values.insert(output).second)
        return fail(ErrorCode::kInvalidInput, where, "'" + output + "' of '" + function.name() + "' is made twice");
  }
  for (const auto& output : function.output())
    if (!maker_of(function, output))
      return fail(ErrorCode::kInvalidInput, where, "nothing in '" + function.name() + "' makes its output '" + output + "'");
  return values;
}

/// What the first output of FUNCTION is made from.
Names above_first_output(const onnx::FunctionProto& function) {
  Names reached;
  std::vector<std::string> pending{function.output(0)};
  while (!pending.empty()) {
    const std::string value = pending.back();
    pending.pop_back();
    const onnx::NodeProto* maker = maker_of(function, value);
    if (value.empty() || !reached.insert(value).second || !maker) continue;
    reached.insert(maker->output().begin(), maker->output().end());
    pending.insert(pending.end(), maker->input().begin(), maker->input().end());
  }
  return reached;
}

Status check_pattern(const Rule& rule, const std::string& where) {
  ATTN_OPT_TRY(const Names values, values_of(rule.pattern, where));
  if (rule.pattern.output_size() == 0) return fail(ErrorCode::kInvalidInput, where, "the pattern has no output");
  for (const std::string& output : rule.pattern.output())
    if (is_constant_node(*maker_of(rule.pattern, output)))
      return fail(ErrorCode::kInvalidInput, where, "the pattern's output '" + output + "' is a constant");
  const Names reached = above_first_output(rule.pattern);
  for (const std::string& value : values)
    if (!reached.count(value))
      return fail(ErrorCode::kInvalidInput, where,
                  "'" + value + "' of the pattern does not lead to its output '" + rule.pattern.output(0) + "'",
                  "the first output is where matching begins");
  for (const auto& constraint : rule.constraints)
    if (!values.count(constraint.value))
      return fail(ErrorCode::kInvalidInput, constraint.where,
                  "WHERE names '" + constraint.value + "', which the pattern does not have",
                  suggestion(constraint.value, {values.begin(), values.end()}));
  return {};
}

Status check_replacement(const Rule& rule, const std::string& where) {
  const onnx::FunctionProto& made = rule.replacement;
  ATTN_OPT_CHECK(values_of(made, where));
  for (const std::string& input : made.input())
    if (std::find(rule.pattern.input().begin(), rule.pattern.input().end(), input) == rule.pattern.input().end())
      return fail(ErrorCode::kInvalidInput, where, "the replacement's input '" + input + "' is none of the pattern's");
  if (!std::equal(made.output().begin(), made.output().end(), rule.pattern.output().begin(), rule.pattern.output().end()))
    return fail(ErrorCode::kInvalidInput, where, "pattern and replacement have different outputs");
  if (!writes_attention(rule)) {
    if (!rule.assumed.empty())
      return fail(ErrorCode::kInvalidInput, where, "ASSUME is of attention, and the replacement has none");
    return {};
  }
  const auto attentions =
      std::count_if(made.node().begin(), made.node().end(), [](const auto& node) { return node.op_type() == "Attention"; });
  if (attentions != 1)
    return fail(ErrorCode::kInvalidInput, where, "the replacement has " + std::to_string(attentions) + " Attention nodes",
                "one is needed");
  const auto& attention =
      *std::find_if(made.node().begin(), made.node().end(), [](const auto& node) { return node.op_type() == "Attention"; });
  if (attention.input_size() < 3 || attention.input(0).empty() || attention.input(1).empty() || attention.input(2).empty())
    return fail(ErrorCode::kInvalidInput, where, "the Attention node has no Q, K and V");
  const onnx::NodeProto* maker = maker_of(made, made.output(0));
  while (maker->op_type() != "Attention") {
    const bool is_layout = operator_has(maker->op_type(), Trait::kKeepsAll);
    const onnx::NodeProto* above = is_layout && maker->input_size() > 0 ? maker_of(made, maker->input(0)) : nullptr;
    if (!above)
      return fail(ErrorCode::kInvalidInput, where, "'" + made.output(0) + "' comes of " + maker->op_type(),
                  "only Transpose, Reshape and the like may follow the Attention node");
    maker = above;
  }
  for (const std::string& output : made.output())
    if (output != made.output(0) && maker_of(made, output) != maker)
      return fail(ErrorCode::kInvalidInput, where, "the replacement's output '" + output + "' is none of the Attention node's");
  return {};
}

/// What @NAME can stand for in the pattern, or in the replacement.
std::vector<std::string> parameters_of(const Rule& rule, bool with_sizes) {
  std::vector<std::string> names(rule.pattern.attribute().begin(), rule.pattern.attribute().end());
  for (const auto& with_default : rule.pattern.attribute_proto()) names.push_back(with_default.name());
  for (const auto& constraint : rule.constraints)
    if (with_sizes && constraint.dims) names.insert(names.end(), constraint.dims->begin(), constraint.dims->end());
  return names;
}

Status check_parameters(const onnx::NodeProto& node, const std::vector<std::string>& known, const std::string& where) {
  for (const auto& attribute : node.attribute()) {
    const std::string& name = attribute.ref_attr_name();
    if (!name.empty() && std::ranges::find(known, name) == known.end())
      return fail(ErrorCode::kInvalidInput, where, "'@" + name + "' is no parameter of the pattern, nor a size of a WHERE line",
                  suggestion(name, known));
  }
  return {};
}

/// The nodes of FUNCTION, which stand at LINES of the file (null: not known), against the schemas of the opsets that it
/// imports. PARAMETERS is what its attributes can refer to.
Status check_operators(const onnx::FunctionProto& function, const std::vector<std::string>& parameters, const int* lines,
                       const std::string& file) {
  for (int i = 0; i < function.node_size(); ++i) {
    const onnx::NodeProto& node = function.node(i);
    const std::string where = lines ? file + ":" + std::to_string(lines[i]) : file;
    const auto import = std::find_if(function.opset_import().begin(), function.opset_import().end(), [&](const auto& known) {
      return known.domain() == node.domain() || (is_onnx(known.domain()) && is_onnx(node.domain()));
    });
    if (import == function.opset_import().end())
      return fail(ErrorCode::kInvalidInput, where,
                  node.op_type() + " is of " + (is_onnx(node.domain()) ? "ai.onnx" : "'" + node.domain() + "'") +
                      ", which opset_import of '" + function.name() + "' does not name",
                  "a line <domain: \"rule\", opset_import: [\"" + node.domain() + "\" : VERSION]>");
    ATTN_OPT_CHECK(check_operator(node, static_cast<int>(import->version()), where));
    ATTN_OPT_CHECK(check_parameters(node, parameters, where));
  }
  return {};
}

}  // namespace

bool writes_attention(const Rule& rule) {
  const auto& nodes = rule.replacement.node();
  return std::ranges::any_of(nodes, [](const auto& node) { return node.op_type() == "Attention" && is_onnx(node.domain()); });
}

const onnx::NodeProto* maker_of(const onnx::FunctionProto& function, const std::string& value) {
  for (const auto& node : function.node())
    if (std::find(node.output().begin(), node.output().end(), value) != node.output().end()) return &node;
  return nullptr;
}

Expected<Rule> read_rule(std::string_view text, const std::string& where) {
  Rule rule;
  ATTN_OPT_CHECK(read_header(text, where, rule));
  ATTN_OPT_TRY(auto functions, parse_functions(text, where));
  std::vector<std::string> order;
  for (auto& function : functions) {
    order.push_back(function.name());
    if (function.name() == "pattern")
      rule.pattern = std::move(function);
    else if (function.name() == "replacement")
      rule.replacement = std::move(function);
    else
      return fail(ErrorCode::kInvalidInput, where, "there is a function '" + function.name() + "'",
                  "a rule has 'pattern' and 'replacement'");
  }
  if (functions.size() != 2 || rule.pattern.name().empty() || rule.replacement.name().empty())
    return fail(ErrorCode::kInvalidInput, where, "a rule has two functions, 'pattern' and 'replacement'");
  ATTN_OPT_CHECK(check_pattern(rule, where));
  ATTN_OPT_CHECK(check_replacement(rule, where));
  const std::vector<int> lines = operator_lines(text);
  const bool are_known = std::ssize(lines) == rule.pattern.node_size() + rule.replacement.node_size();
  const int* next = are_known ? lines.data() : nullptr;
  for (const std::string& name : order) {
    const bool is_pattern = name == "pattern";
    const onnx::FunctionProto& function = is_pattern ? rule.pattern : rule.replacement;
    ATTN_OPT_CHECK(check_operators(function, parameters_of(rule, !is_pattern), next, where));
    if (next) next += function.node_size();
  }
  return rule;
}

}  // namespace attn_opt
