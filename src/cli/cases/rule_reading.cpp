#include "src/cli/cases/rule_reading.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "attn_opt/canonical.h"
#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

constexpr std::array<std::string_view, 5> kWordsOfSoftmax = {"Exp", "Sub", "ReduceMax", "ReduceSum", "Div"};

class PartReader {
 public:
  PartReader(const RulePart& part, Facts& facts) : part_(part), facts_(facts), inside_(part.nodes.begin(), part.nodes.end()) {}

  RuleReading read() {
    said_ = {part_.anchor, part_.product, part_.last};
    read_scores();
    read_operands();
    const bool has_softmax = std::ranges::any_of(part_.nodes, [](const Node* node) { return node->is("Softmax"); });
    for (const Node* node : part_.nodes) {
      const bool is_softmax = !has_softmax && std::ranges::find(kWordsOfSoftmax, node->op()) != kWordsOfSoftmax.end();
      if (!said_.contains(node) && !is_softmax) result_.left_out.insert(operator_name(*node));
    }
    return std::move(result_);
  }

 private:
  const Node* inner_maker(Value* input) const {
    const Node* node = input ? canonical(*input, facts_).producer : nullptr;
    return inside_.contains(node) ? node : nullptr;
  }

  /// The one input of NODE that the part makes; -1: none, or several.
  int inner_input(const Node& node) const {
    int found = -1;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!inner_maker(node.inputs[i])) continue;
      if (found >= 0) return -1;
      found = static_cast<int>(i);
    }
    return found;
  }

  void read_scores() {
    const Node* node = part_.anchor;
    for (int input = inner_input(*node); input >= 0; input = inner_input(*node)) {
      node = inner_maker(node->inputs[static_cast<size_t>(input)]);
      if (node == part_.product) return;
      if (read_step(*node, inner_input(*node))) said_.insert(node);
    }
  }

  /// Is what NODE does with its INPUT said by the reading?
  bool read_step(const Node& node, int input) {
    if (input < 0) return false;
    Value* other = node.input(input == 0 ? 1 : 0);
    const double number = other ? facts_.uniform(*other).value_or(0) : 0;
    if (node.is("Mul") && number != 0) return scale_by(number);
    if (node.is("Div") && number != 0 && input == 0) return scale_by(1 / number);
    if (node.is("Add") && other) return mask_with(*other, RuleReading::MaskUse::kAdded);
    if (node.is("Where") && input > 0 && facts_.uniform(*node.inputs[input == 1 ? 2 : 1]))
      return mask_with(*node.inputs[0], input == 1 ? RuleReading::MaskUse::kKeeps : RuleReading::MaskUse::kDrops);
    return false;
  }

  bool scale_by(double number) {
    result_.scale *= number;
    return true;
  }

  /// Attention takes one, and adds it behind the scale.
  bool mask_with(Value& mask, RuleReading::MaskUse use) {
    if (result_.mask || result_.scale != 1) return false;
    result_.mask = &canonical(mask, facts_);
    result_.mask_use = use;
    return true;
  }

  /// What the part reads and does not make, but for constants.
  std::vector<Value*> outer_values() const {
    std::vector<Value*> outer;
    for (const Node* node : part_.nodes)
      for (Value* input : node->inputs)
        if (input && !inner_maker(input) && !is_fixed(*input, facts_)) outer.push_back(&canonical(*input, facts_));
    return outer;
  }

  void read_operands() {
    const std::vector<Value*> outer = outer_values();
    const Node& last = *part_.last;
    const auto operand = [&](Value* likely, size_t otherwise) -> Value* {
      Value* value = likely ? &canonical(*likely, facts_) : nullptr;
      if (value && !inside_.contains(value->producer)) return value;
      return outer.empty() ? nullptr : outer[std::min(otherwise, outer.size() - 1)];
    };
    const bool is_one_node = part_.nodes.size() == 1;
    const Node* product = is_one_node ? &last : part_.product;
    result_.q = operand(product ? product->input(0) : nullptr, 0);
    result_.k = operand(product ? product->input(1) : nullptr, 1);
    result_.v = operand(is_one_node ? last.input(2) : inner_maker(last.input(1)) ? last.input(0) : last.input(1), 2);
    result_.k_is_turned =
        part_.product && part_.product->op().ends_with("MatMul") && !part_.product->int_attribute("transB", 0);
  }

  const RulePart& part_;
  Facts& facts_;
  std::unordered_set<const Node*> inside_, said_;
  RuleReading result_;
};

}  // namespace

RuleReading read_part(const RulePart& part, Facts& facts) { return PartReader(part, facts).read(); }

}  // namespace attn_opt
