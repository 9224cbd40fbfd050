// Rules as patterns: what a rule's file spells is matched and described like any other front end.
//
//   before   what the rule's `pattern` says            after   what its `replacement` means
//
//   inputs ── (pattern's nodes) ── outputs             inputs ── (replacement's nodes) ── Attention ── layout ── outputs
//
// The nodes of the replacement above its Attention node are unplaced: an emission takes those it reads.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/rules.h"
#include "patterns/attention_description.h"
#include "patterns/inner_values.h"
#include "patterns/operand_walk.h"
#include "patterns/preconditions.h"
#include "patterns/rule_match.h"
#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

/// The replacement of a rule, drafted in place of one match of its pattern.
class RuleDraft {
 public:
  RuleDraft(const Rule& rule, const RuleBinding& binding, Node& anchor, MatchContext& context)
      : rule_(rule), binding_(binding), anchor_(anchor), context_(context), inner_(anchor, context) {}

  Matched<Sdpa> describe() {
    for (const std::string& input : rule_.replacement.input()) made_[input] = binding_.values.at(input);
    for (const auto& node : rule_.replacement.node()) ATTN_OPT_DONE(add(node));
    ATTN_OPT_MATCH(Sdpa sdpa, describe_attention(*attention_, outputs_of_attention(), context_));
    ATTN_OPT_MATCH(const AxisMap axes, axes_of_output(sdpa.outputs[0].axes));
    sdpa.outputs = walk_output(*model_value(rule_.replacement.output(0)), axes, context_);
    for (const std::string& id : rule_.assumed) assume(id, "assumed by the rule " + rule_.name, sdpa);
    return sdpa;
  }

 private:
  /// What the pattern's output NAME is in the model; null if it is none of its outputs.
  Value* model_value(const std::string& name) const {
    const auto& outputs = rule_.pattern.output();
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) return nullptr;
    const onnx::NodeProto* maker = maker_of(rule_.pattern, name);
    const auto number = std::find(maker->output().begin(), maker->output().end(), name) - maker->output().begin();
    return binding_.nodes.at(maker->output(0))->output(static_cast<size_t>(number));
  }

  AttentionOutputs outputs_of_attention() const {
    const auto wanted = [&](int output) -> Value* {
      return output < attention_proto_->output_size() ? model_value(attention_proto_->output(output)) : nullptr;
    };
    return {model_value(rule_.replacement.output(0)), wanted(1), wanted(2), wanted(3)};
  }

  Matched<void> add(const onnx::NodeProto& proto) {
    std::vector<Value*> inputs;
    for (const std::string& input : proto.input()) inputs.push_back(input.empty() ? nullptr : made_.at(input));
    GraphBuilder::Attributes attributes;
    for (const auto& attribute : proto.attribute()) {
      attributes.push_back(attribute);
      if (attribute.ref_attr_name().empty()) continue;
      const auto bound = binding_.attributes.find(attribute.ref_attr_name());
      if (bound == binding_.attributes.end() || bound->second.type() != attribute.type())
        return missed("rule.parameter", &anchor_, "'" + attribute.ref_attr_name() + "' of " + rule_.name + " has no value of that type");
      attributes.back() = bound->second;
      attributes.back().set_name(attribute.name());
    }
    const std::string op = proto.domain().empty() ? proto.op_type() : proto.domain() + "::" + proto.op_type();
    const std::vector<bool> wanted(static_cast<size_t>(proto.output_size()), true);
    const bool is_attention = proto.op_type() == "Attention";
    if (proto.output_size() == 1 && !is_attention) {
      made_[proto.output(0)] = inner_.build().node(op, inputs, attributes);
      return {};
    }
    Node* node = inner_.build().new_node(op, inputs, wanted, attributes);
    if (is_attention) {
      attention_ = node;
      attention_proto_ = &proto;
    }
    for (int i = 0; i < proto.output_size(); ++i) made_[proto.output(i)] = node->output(static_cast<size_t>(i));
    return {};
  }

  /// The axes of the first output, through the layout that follows the Attention node, whose Y has AXES.
  Matched<AxisMap> axes_of_output(AxisMap axes) const {
    std::vector<const Node*> behind;
    for (Node* node = made_.at(rule_.replacement.output(0))->producer; node != attention_; node = node->inputs[0]->producer)
      behind.push_back(node);
    for (auto node = behind.rbegin(); node != behind.rend(); ++node) {
      auto next = axes_after(**node, axes, context_);
      if (!next) return missed("rule.output", &anchor_, "where " + (*node)->op() + " of " + rule_.name + " puts its axes cannot be told");
      axes = *std::move(next);
    }
    return axes;
  }

  const Rule& rule_;
  const RuleBinding& binding_;
  Node& anchor_;
  MatchContext& context_;
  InnerValues inner_;
  std::map<std::string, Value*> made_;
  Node* attention_ = nullptr;
  const onnx::NodeProto* attention_proto_ = nullptr;
};

class RulePattern : public Pattern {
 public:
  explicit RulePattern(Rule rule)
      : rule_(std::move(rule)),
        anchor_(maker_of(rule_.pattern, rule_.pattern.output(0))),
        nodes_(std::count_if(rule_.pattern.node().begin(), rule_.pattern.node().end(),
                             [](const auto& node) { return node.op_type() != "Constant"; })) {
    if (is_commutative(*anchor_)) return;
    for (const std::string& input : anchor_->input()) {
      const onnx::NodeProto* maker = maker_of(rule_.pattern, input);
      operands_.push_back(maker && maker->op_type() != "Constant" ? maker : nullptr);
    }
  }

  std::string_view name() const override { return rule_.name; }
  std::string_view summary() const override { return rule_.about; }
  bool is_anchor(const Node& node) const override {
    return is_operator(*anchor_, node);
  }

  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    if (!has_operands(anchor, context.facts)) return missed(std::string(kNotAttention), &anchor, "");
    auto binding = match_rule(rule_, anchor, context);
    if (!binding) {
      Miss& miss = binding.error();
      if (!is_near(miss)) miss.id = kNotAttention;
      return tl::unexpected<Miss>(std::move(miss));
    }
    Match match;
    match.anchor = match.insert_before = &anchor;
    for (const auto& [name, node] : binding->nodes) match.peeled.push_back(operator_name(*node));
    ATTN_OPT_MATCH(match.sdpa, RuleDraft(rule_, *binding, anchor, context).describe());
    return match;
  }

 private:
  /// A rule is tried at every node like its last, and nearly all of them end here.
  bool has_operands(const Node& anchor, Facts& facts) const {
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i]) continue;
      Value* input = anchor.input(i);
      if (!input || !input->producer) return false;
      if (is_operator(*operands_[i], *input->producer)) continue;
      const Node* found = canonical(*input, facts).producer;
      if (!found || !is_operator(*operands_[i], *found)) return false;
    }
    return true;
  }

  /// A rule is tried at every operator like its last: worth a line is only what it fits but for a node in four.
  bool is_near(const Miss& miss) const {
    return miss.id != "rule.structure" || 4 * static_cast<int64_t>(miss.peeled.size()) >= 3 * nodes_;
  }

  Rule rule_;
  const onnx::NodeProto* anchor_;
  std::vector<const onnx::NodeProto*> operands_;  ///< what makes the anchor's inputs; null: no matter
  int64_t nodes_;  ///< that are to be found; constants are not
};

/// The files *.rule of FOLDER, by name.
Expected<std::vector<fs::path>> rule_files(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".rule") files.push_back(entry.path());
  if (error) return fail(ErrorCode::kInvalidInput, folder, "cannot be read: " + error.message());
  if (files.empty()) return fail(ErrorCode::kInvalidInput, folder, "holds no rule", "rules are files *.rule (docs/rules.md)");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Expected<std::unique_ptr<Pattern>> parse_rule(std::string_view text, const std::string& where) {
  ATTN_OPT_TRY(Rule rule, read_rule(text, where));
  return std::make_unique<RulePattern>(std::move(rule));
}

Expected<std::vector<std::shared_ptr<const Pattern>>> load_rules(const std::vector<std::string>& folders) {
  std::set<std::string, std::less<>> names;
  for (const auto& pattern : patterns()) names.emplace(pattern->name());
  std::set<fs::path> read;
  std::vector<std::shared_ptr<const Pattern>> rules;
  for (const std::string& folder : folders) {
    std::error_code none;
    if (!read.insert(fs::weakly_canonical(folder, none)).second) continue;
    ATTN_OPT_TRY(const auto files, rule_files(folder));
    for (const fs::path& file : files) {
      std::ifstream stream(file, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      if (!stream.is_open() || stream.bad()) return fail(ErrorCode::kInvalidInput, file.string(), "cannot be read");
      ATTN_OPT_TRY(auto rule, parse_rule(text, file.string()));
      if (!names.emplace(rule->name()).second)
        return fail(ErrorCode::kInvalidInput, file.string(), "there is another pattern '" + std::string(rule->name()) + "'", "call the rule otherwise");
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

}  // namespace attn_opt
