#include "patterns/rules/rule_match.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/rules/rule_constants.h"
#include "src/graph/operator_name.h"
#include "src/io/check/runtime_operators.h"
#include "src/match/attribute_default.h"

namespace attn_opt {
namespace {

constexpr int kMaxRuleSteps = 10'000;
constexpr std::string_view kMisfit = "rule.structure";

/// A value of the pattern is to be one of the graph.
struct Claim {
  std::string name;
  Value* value = nullptr;
};

struct State {
  RuleBinding binding;
  std::vector<Claim> claims;
};

std::vector<double> numbers(const Tensor& tensor) {
  const auto wide = tensor.cast(onnx::TensorProto::DOUBLE);
  if (!wide) return {};
  return {wide->data<double>().begin(), wide->data<double>().end()};
}

/// As a tensor of TYPE holds them, if that is a floating one: 1/6 in half precision is no 1/6.
std::vector<double> numbers_in(const Tensor& tensor, DataType type) {
  const auto rounded = is_floating(type) && is_floating(tensor.type()) ? tensor.cast(type) : Expected<Tensor>(tensor);
  return rounded ? numbers(*rounded) : std::vector<double>();
}

bool holds(const Tensor& wanted, const Value& value, Facts& facts) {
  const std::vector<double> numbers_wanted = numbers_in(wanted, facts.type(value));
  if (numbers_wanted.size() == 1) {
    const auto uniform = facts.uniform(value);
    return uniform && is_near(numbers_wanted[0], *uniform);
  }
  const Tensor* constant = facts.constant(value);
  if (!constant || constant->dims() != wanted.dims()) return false;
  const std::vector<double> found = numbers(*constant);
  return std::ranges::equal(found, numbers_wanted, is_near);
}

class RuleMatcher {
 public:
  RuleMatcher(const Rule& rule, const ModelGraph& view, Facts& facts) : rule_(rule), view_(view), facts_(facts) {}

  Matched<RuleBinding> match(const Node& anchor) {
    const std::string& output = rule_.pattern.output(0);
    const onnx::NodeProto& last = *maker_of(rule_.pattern, output);
    State state;
    const auto& outputs = last.output();
    const auto number = static_cast<size_t>(std::ranges::find(outputs, output) - outputs.begin());
    Value* value = anchor.output(number);
    if (!value) return missed(std::string(kMisfit), &anchor, "it has no output " + std::to_string(number));
    state.claims = {{output, value}};
    auto binding = solve(std::move(state));
    if (!binding) return tl::unexpected<Miss>(binding.error().id == kMisfit ? nearest_ : std::move(binding.error()));
    ATTN_OPT_DONE(check_constraints(*binding));
    return binding;
  }

 private:
  Matched<RuleBinding> solve(State state) {
    while (!state.claims.empty()) {
      if (++steps_ > kMaxRuleSteps)
        return missed("rule.too-many-ways", nullptr, std::to_string(kMaxRuleSteps) + " steps were tried");
      const Claim claim = state.claims.back();
      state.claims.pop_back();
      const onnx::NodeProto* wanted = maker_of(rule_.pattern, claim.name);
      const auto [bound, is_new] = state.binding.values.emplace(claim.name, claim.value);
      if (wanted && is_constant_node(*wanted)) {  // a model may hold its number once for each use
        if (!holds(constant_of(*wanted), *claim.value, facts_))
          return misfit(state, claim, "'" + claim.value->name + "' is not the constant '" + claim.name + "'");
        continue;
      }
      if (!is_new && &canonical(*bound->second, facts_) != &canonical(*claim.value, facts_))
        return misfit(state, claim,
                      "'" + claim.name + "' of the pattern is '" + bound->second->name + "' in one place and '" +
                          claim.value->name + "' here");
      if (!is_new || !wanted) continue;
      ATTN_OPT_MATCH(Node * node, fit(*wanted, claim, state));
      if (!node) continue;
      if (wanted->input_size() == 2 && is_commutative(*wanted)) return either_way(*wanted, *node, std::move(state));
      claim_inputs(*wanted, *node, false, state);
    }
    return std::move(state.binding);
  }

  /// The node behind CLAIM if it is as WANTED; null if it was bound before, by another of its outputs.
  Matched<Node*> fit(const onnx::NodeProto& wanted, const Claim& claim, State& state) {
    Value& seen = canonical(*claim.value, facts_);
    Node* node = seen.producer;
    if (!node) return misfit(state, claim, "'" + seen.name + "' is an input or a constant, no " + wanted.op_type());
    if (!is_operator(wanted, *node)) return misfit(state, claim, "'" + node->label() + "' is no " + wanted.op_type());
    if (seen.output >= wanted.output_size() || wanted.output(seen.output) != claim.name)
      return misfit(state, claim, "'" + seen.name + "' is another output of '" + node->label() + "'");
    const auto [bound, is_new] = state.binding.nodes.emplace(wanted.output(0), node);
    if (!is_new) {
      if (bound->second != node) return misfit(state, claim, "'" + node->label() + "' is not '" + bound->second->label() + "'");
      return nullptr;
    }
    ATTN_OPT_DONE(fit_inputs(wanted, *node, claim, state));
    ATTN_OPT_DONE(fit_attributes(wanted, *node, claim, state));
    return node;
  }

  Matched<void> fit_inputs(const onnx::NodeProto& wanted, const Node& node, const Claim& claim, const State& state) {
    const size_t count = std::max(node.inputs.size(), static_cast<size_t>(wanted.input_size()));
    for (size_t i = 0; i < count; ++i) {
      const bool is_wanted = i < static_cast<size_t>(wanted.input_size()) && !wanted.input(static_cast<int>(i)).empty();
      if (is_wanted != (node.input(i) != nullptr))
        return misfit(state, claim, "'" + node.label() + "' has " + (is_wanted ? "no" : "an") + " input " + std::to_string(i));
    }
    return {};
  }

  /// Attributes that the pattern does not mention must have their default.
  Matched<void> fit_attributes(const onnx::NodeProto& wanted, const Node& node, const Claim& claim, State& state) {
    const int opset = node.domain().empty() ? view_.onnx_opset(node) : view_.opset(*node.graph, std::string(node.domain()));
    for (const auto& attribute : wanted.attribute()) {
      const auto* found = attribute_or_default(node, attribute.name(), opset);
      if (!found) found = parameter_default(attribute.ref_attr_name());
      if (!found && attribute.ref_attr_name().empty() && says_the_default(node, attribute, opset)) continue;
      if (!found) return misfit(state, claim, "'" + node.label() + "' has no attribute '" + attribute.name() + "'");
      if (!attribute.ref_attr_name().empty()) {
        const auto [bound, is_new] = state.binding.attributes.emplace(attribute.ref_attr_name(), *found);
        if (is_new || same_value(bound->second, *found)) continue;
      } else if (same_value(attribute, *found)) {
        continue;
      }
      return misfit(state, claim, "attribute '" + attribute.name() + "' of '" + node.label() + "' differs");
    }
    for (const auto& given : node.proto->attribute()) {
      const auto mentioned = std::any_of(wanted.attribute().begin(), wanted.attribute().end(),
                                         [&](const auto& attribute) { return attribute.name() == given.name(); });
      if (!mentioned && !says_the_default(node, given, opset))
        return misfit(state, claim, "'" + node.label() + "' has an attribute '" + given.name() + "'");
    }
    return {};
  }

  /// What the pattern's parameter NAME is where a node does not say; null if it must.
  const onnx::AttributeProto* parameter_default(const std::string& name) const {
    for (const auto& parameter : rule_.pattern.attribute_proto())
      if (parameter.name() == name) return &parameter;
    return nullptr;
  }

  static void claim_inputs(const onnx::NodeProto& wanted, const Node& node, bool swapped, State& state) {
    for (int i = wanted.input_size(); i-- > 0;)
      if (!wanted.input(i).empty())
        state.claims.push_back({wanted.input(i), node.inputs[static_cast<size_t>(swapped ? 1 - i : i)]});
  }

  Matched<RuleBinding> either_way(const onnx::NodeProto& wanted, const Node& node, State state) {
    State other = state;
    claim_inputs(wanted, node, false, state);
    auto one = solve(std::move(state));
    if (one) return one;
    claim_inputs(wanted, node, true, other);
    return solve(std::move(other));
  }

  /// Of all ways that fail, the first of those that took in most of the pattern is reported.
  tl::unexpected<Miss> misfit(const State& state, const Claim& claim, std::string found) {
    Miss miss{std::string(kMisfit), claim.value->producer, std::move(found), state.binding.operators()};
    if (state.binding.values.size() > taken_in_) nearest_ = miss;
    taken_in_ = std::max(taken_in_, state.binding.values.size());
    return tl::unexpected<Miss>(std::move(miss));
  }

  Matched<void> check_constraints(RuleBinding& binding) const {
    std::map<std::string, Dim> sizes;
    for (const auto& constraint : rule_.constraints) {
      Value& value = *binding.values.at(constraint.value);
      const auto violated = [&](const std::string& found) {
        return missed("rule.where", value.producer, "'" + value.name + "' (" + constraint.value + ") " + found);
      };
      if (constraint.is_constant && !facts_.uniform(value) && !facts_.constant(value)) return violated("is no constant");
      const DataType type = facts_.type(value);
      if (!constraint.types.empty() && std::ranges::find(constraint.types, type) == constraint.types.end())
        return violated("is " + type_name(type));
      if (!constraint.dims) continue;
      const MaybeShape shape = facts_.shape(value);
      if (!shape) return violated("has no known rank");
      if (!fits(*constraint.dims, *shape, sizes)) return violated("is of " + to_string(*shape));
    }
    for (const auto& [name, size] : sizes)
      if (size.is_constant()) binding.attributes.emplace(name, GraphBuilder::attribute(name, size.value()));
    return {};
  }

  static bool fits(const std::vector<std::string>& dims, const Shape& shape, std::map<std::string, Dim>& sizes) {
    if (dims.size() != shape.size()) return false;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const std::string& name = dims[axis];
      if (name == "?") continue;
      const bool is_number = std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c); });
      const Dim wanted = is_number ? Dim::parse(name) : sizes.try_emplace(name, shape[axis]).first->second;
      if (wanted != shape[axis]) return false;
    }
    return true;
  }

  const Rule& rule_;
  const ModelGraph& view_;
  Facts& facts_;
  int steps_ = 0;
  Miss nearest_;
  size_t taken_in_ = 0;  ///< names of the pattern that stood for something when NEAREST_ failed
};

}  // namespace

std::vector<std::string> RuleBinding::operators() const {
  std::vector<std::string> all;
  all.reserve(nodes.size());
  for (const auto& [name, node] : nodes) all.push_back(operator_name(*node));
  return all;
}

bool is_commutative(const onnx::NodeProto& node) {
  return is_onnx(node.domain()) && operator_has(node.op_type(), Trait::kCommutes);
}

bool is_operator(const onnx::NodeProto& wanted, const Node& node) {
  return wanted.op_type() == node.op() && (is_onnx(wanted.domain()) ? node.domain().empty() : node.domain() == wanted.domain());
}

Matched<RuleBinding> match_rule(const Rule& rule, const Node& anchor, const ModelGraph& view, Facts& facts) {
  return RuleMatcher(rule, view, facts).match(anchor);
}

}  // namespace attn_opt
