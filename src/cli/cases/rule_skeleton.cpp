#include "src/cli/cases/rule_skeleton.h"

#include <algorithm>
#include <map>

#include "attn_opt/attribute.h"
#include "attn_opt/canonical.h"
#include "attn_opt/rules.h"
#include "src/cli/cases/rule_reading.h"
#include "src/io/text_format.h"

namespace attn_opt {
namespace {

constexpr int64_t kMostNumbers = 16;  // of a constant that a pattern spells
constexpr int kReplacementOpset = 24;
constexpr int kOpsetOfNumbers = 12;  // from which on a Constant may hold a number or a list

onnx::FunctionProto function_of(const std::string& name) {
  onnx::FunctionProto function;
  function.set_domain("rule");
  function.set_name(name);
  return function;
}

void import_opset(onnx::FunctionProto& function, const std::string& domain, int version) {
  for (const auto& known : function.opset_import())
    if (known.domain() == domain) return;
  auto& import = *function.add_opset_import();
  import.set_domain(domain);
  import.set_version(version);
}

void add_node(onnx::FunctionProto& function, const std::string& output, const std::string& op,
              const std::vector<std::string>& inputs, const std::vector<Attribute>& attributes = {}) {
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  for (const Attribute& attribute : attributes) *node.add_attribute() = attribute.proto();
}

std::string joined(const std::set<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

/// The nodes of a part under names of their roles.
class PatternWriter {
 public:
  PatternWriter(const RulePart& part, const RuleReading& reading, const ModelGraph& view, Facts& facts)
      : part_(part), view_(view), facts_(facts) {
    enter_input(reading.q, "q");
    enter_input(reading.k, "k");
    enter_input(reading.v, "v");
    enter_input(reading.mask, "mask");
    names_[part.last->output(0)] = "y";
    if (part.anchor != part.last) names_[part.anchor->output(0)] = "p";
    if (part.product) names_[part.product->output(0)] = "product";
  }

  onnx::FunctionProto write() {
    import_opset(function_, "", view_.onnx_opset(*part_.last));
    for (const Node* node : part_.nodes) write_node(*node);
    function_.add_output("y");
    return std::move(function_);
  }

  const std::string& name_of(const Value* value) const { return names_.at(value); }

 private:
  void enter_input(const Value* value, const std::string& name) {
    if (value && names_.emplace(value, name).second) function_.add_input(name);
  }

  /// What the pattern calls INPUT, which becomes a constant or an input of it if nothing made it so far.
  std::string read(Value& input) {
    Value& value = canonical(input, facts_);
    if (const auto known = names_.find(&value); known != names_.end()) return known->second;
    if (write_constant(value)) return names_[&value];
    enter_input(&value, "x" + std::to_string(++inputs_));
    return names_[&value];
  }

  static Tensor number_of(double number, bool is_floating) {
    return *Tensor::scalar(number).cast(is_floating ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT64);
  }

  /// NUMBER, which all elements of TENSOR are if there is one: a double does not hold each integer.
  static int64_t integer_of(double number, const Tensor* tensor) {
    const bool is_exact = tensor && tensor->type() == onnx::TensorProto::INT64 && tensor->size() > 0;
    return is_exact ? tensor->data<int64_t>()[0] : number_of(number, false).data<int64_t>()[0];
  }

  bool write_constant(const Value& value) {
    const auto number = facts_.uniform(value);
    const Tensor* tensor = facts_.constant(value);
    if (!number && (!tensor || element_count(tensor->dims()) > kMostNumbers)) return false;
    const std::string name = "c" + std::to_string(++constants_);
    names_[&value] = name;
    const bool is_list = tensor && tensor->type() == onnx::TensorProto::INT64 && tensor->dims().size() == 1;
    const bool is_number = is_floating(facts_.type(value));
    Attribute content{"value", tensor ? *tensor : number_of(*number, is_number)};
    if (view_.onnx_opset(*part_.last) >= kOpsetOfNumbers) {  // which read better
      if (number && is_number)
        content = {"value_float", *number};
      else if (number)
        content = {"value_int", integer_of(*number, tensor)};
      else if (is_list)
        content = {"value_ints", std::vector<int64_t>(tensor->data<int64_t>().begin(), tensor->data<int64_t>().end())};
    }
    add_node(function_, name, "Constant", {}, {content});
    return true;
  }

  void write_node(const Node& node) {
    std::vector<std::string> inputs;
    for (Value* input : node.inputs) inputs.push_back(input ? read(*input) : "");
    onnx::NodeProto& proto = *function_.add_node();
    proto.set_op_type(node.op());
    proto.set_domain(std::string(node.domain()));
    for (const std::string& input : inputs) proto.add_input(input);
    for (const Value* output : node.outputs) {
      const std::string name = "v" + std::to_string(values_ + 1);
      if (output && names_.emplace(output, name).second) ++values_;
      proto.add_output(output ? names_[output] : "");
    }
    *proto.mutable_attribute() = node.proto->attribute();
    for (auto& attribute : *proto.mutable_attribute()) attribute.clear_doc_string();
    if (!node.domain().empty()) import_opset(function_, proto.domain(), view_.opset(*node.graph, proto.domain()));
  }

  const RulePart& part_;
  const ModelGraph& view_;
  Facts& facts_;
  std::map<const Value*, std::string> names_;
  int inputs_ = 0, constants_ = 0, values_ = 0;
  onnx::FunctionProto function_ = function_of("pattern");
};

/// Attention as READING says, of operands that may have fewer axes than it takes.
class ReplacementWriter {
 public:
  ReplacementWriter(const RuleReading& reading, const PatternWriter& names, Facts& facts)
      : reading_(reading), names_(names), facts_(facts) {}

  onnx::FunctionProto write() {
    import_opset(function_, "", kReplacementOpset);
    const Value& q = *reading_.q;
    const MaybeShape shape = facts_.shape(q);
    rank_ = shape ? shape->size() : 4;
    const bool is_lifted = rank_ == 2 || rank_ == 3;
    if (is_lifted)
      add_node(function_, "axes", "Constant", {},
               {{"value_ints", rank_ == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{0, 1}}});
    std::vector<std::string> inputs{lifted(input(reading_.q)), key(), lifted(input(reading_.v))};
    if (reading_.mask) inputs.push_back(mask());
    add_node(function_, is_lifted ? "attention" : "y", "Attention", inputs, {{"scale", reading_.scale}});
    if (is_lifted) add_node(function_, "y", "Squeeze", {"attention", "axes"});
    function_.add_output("y");
    return std::move(function_);
  }

 private:
  std::string input(const Value* value) {
    const std::string& name = names_.name_of(value);
    const auto& known = function_.input();
    if (std::ranges::find(known, name) == known.end()) function_.add_input(name);
    return name;
  }

  std::string lifted(const std::string& name) {
    if (rank_ != 2 && rank_ != 3) return name;
    const std::string made = name + "_4d";
    if (made_.insert(made).second) add_node(function_, made, "Unsqueeze", {name, "axes"});
    return made;
  }

  std::string key() {
    std::string name = input(reading_.k);
    if (!reading_.k_is_turned) return lifted(name);
    std::vector<int64_t> axes(rank_);
    for (size_t i = 0; i < rank_; ++i) axes[i] = static_cast<int64_t>(i);
    if (rank_ >= 2) std::swap(axes[rank_ - 1], axes[rank_ - 2]);
    add_node(function_, "keys", "Transpose", {name}, {{"perm", axes}});
    return lifted("keys");
  }

  std::string mask() {
    std::string name = input(reading_.mask);
    if (reading_.mask_use == RuleReading::MaskUse::kDrops) {
      add_node(function_, "kept", "Not", {name});
      name = "kept";
    }
    const MaybeShape shape = facts_.shape(*reading_.mask);
    return rank_ == 3 && shape.has_rank(3) ? lifted(name) : name;
  }

  const RuleReading& reading_;
  const PatternWriter& names_;
  Facts& facts_;
  size_t rank_ = 4;
  std::set<std::string> made_;
  onnx::FunctionProto function_ = function_of("replacement");
};

/// Lines WHERE of Q, K and V: the number of their axes, and which sizes are one.
class SizeLines {
 public:
  explicit SizeLines(Facts& facts) : facts_(facts) {}

  std::string line(const Value& value, const std::string& name, std::vector<std::string> roles) {
    const MaybeShape shape = facts_.shape(value);
    if (!shape || shape->empty() || !lined_.insert(name).second) return {};
    while (roles.size() > shape->size()) roles.erase(roles.begin());
    roles.insert(roles.begin(), shape->size() - roles.size(), "?");
    std::string text;
    for (size_t axis = 0; axis < roles.size(); ++axis) {
      const auto [known, is_new] = sizes_.emplace(roles[axis], (*shape)[axis]);
      text += (text.empty() ? "" : ", ") + (is_new || known->second == (*shape)[axis] ? roles[axis] : "?");
    }
    return "# WHERE   " + name + ": [" + text + "]\n";
  }

 private:
  Facts& facts_;
  std::set<std::string> lined_;
  std::map<std::string, Dim> sizes_;
};

std::string header(const std::string& name, const RulePart& part, const RuleReading& reading, const PatternWriter& names,
                   Facts& facts) {
  std::string text = "# RULE    " + name + "\n# ABOUT   attention as one model spells it\n";
  SizeLines sizes(facts);
  text += sizes.line(*reading.q, names.name_of(reading.q), {"B", "H", "L", "D"});
  text += sizes.line(
      *reading.k, names.name_of(reading.k),
      reading.k_is_turned ? std::vector<std::string>{"B", "H", "D", "S"} : std::vector<std::string>{"B", "H", "S", "D"});
  text += sizes.line(*reading.v, names.name_of(reading.v), {"B", "H", "S", "E"});
  if (reading.mask) text += "# ASSUME  rows-keep-a-key\n";
  if (reading.mask && reading.mask_use != RuleReading::MaskUse::kAdded) text += "# ASSUME  scores-finite\n";
  const bool has_softmax = std::ranges::any_of(part.nodes, [](const Node* node) { return node->is("Softmax"); });
  const bool has_exp = std::ranges::any_of(part.nodes, [](const Node* node) { return node->is("Exp"); });
  if (has_exp && !has_softmax) text += "# ASSUME  exp-in-range\n";
  text +=
      "# a skeleton: the pattern is what the model has, the replacement a first reading of it; attn-opt refuses it if it is "
      "wrong\n";
  if (!part.product && part.nodes.size() > 1)
    text += "# check: no product of Q and K was found; the first inputs are taken for them\n";
  if (!reading.left_out.empty()) text += "# check: the replacement says nothing of " + joined(reading.left_out) + "\n";
  return text + "# try: attn-opt explain MODEL --rules FOLDER\n";
}

/// What rules call themselves: letters, digits, _ and -.
std::string rule_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  return name;
}

}  // namespace

Expected<std::string> rule_skeleton(CaseCutter& cutter, const SiteReport& site, const std::string& name) {
  ATTN_OPT_TRY(const SitePlace place, cutter.place_of(site));
  ATTN_OPT_TRY(const RulePart part, rule_part(*place.anchor, *place.facts));
  const RuleReading reading = read_part(part, *place.facts);
  if (!reading.q || !reading.k || !reading.v)
    return fail(ErrorCode::kUnsupported, site.name, "its Q, K and V cannot be told apart", "--case-out writes its nodes");
  PatternWriter pattern(part, reading, *place.view, *place.facts);
  const std::string pattern_text = print_function(pattern.write());
  std::string text = header(rule_name(name), part, reading, pattern, *place.facts) + pattern_text +
                     print_function(ReplacementWriter(reading, pattern, *place.facts).write());
  if (const auto parsed = parse_rule(text, name); !parsed)
    return fail(ErrorCode::kUnsupported, site.name, "no rule can spell it: " + parsed.error().what,
                "--case-out writes its nodes");
  return text;
}

}  // namespace attn_opt
