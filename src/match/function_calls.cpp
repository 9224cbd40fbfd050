// Calls of model-local functions: the body's facts with the call's inputs in place of its own.
#include "src/io/check/runtime_operators.h"
#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {
namespace {

constexpr int kDeepestCalls = 8;
constexpr int64_t kMaxNodesInCalls = 1 << 17;  ///< nodes of all bodies that are looked into, each call counted
constexpr int64_t kMaxPassedElements = 1024;

std::string function_key(std::string_view domain, const std::string& name, const std::string& overload) {
  return std::string(domain) + "::" + name + "::" + overload;
}

}  // namespace

const Graph* FactStore::function_called(const Node& node) {
  if (!functions_read_) {
    functions_read_ = true;
    for (const auto& graph : view_.graphs()) {
      const onnx::FunctionProto* function = graph->function();
      if (!function || graph->parent()) continue;
      if (may_be_an_operator(function->domain(), function->name())) continue;
      const std::string domain = function->domain() == "ai.onnx" ? "" : function->domain();
      functions_.emplace(function_key(domain, function->name(), function->overload()), graph.get());
    }
  }
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(function_key(node.domain(), node.op(), node.proto->overload()));
  return found == functions_.end() ? nullptr : found->second;
}

void FactStore::infer_call(RuleContext& context, const Graph& body) {
  int64_t& looked_into = nodes_in_calls_ ? *nodes_in_calls_ : own_nodes_in_calls_;
  looked_into += static_cast<int64_t>(body.nodes().size());
  if (depth_ >= kDeepestCalls || looked_into > kMaxNodesInCalls) return;
  const Node& node = context.node();
  if (!context.wants(0)) return;
  FactStore callee(view_, tensors_);
  callee.enter(*this, *node.outputs[0]);
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    callee.bind(*body.inputs()[i], *this, node.input(i));
  }
  for (size_t i = 0; i < body.outputs().size(); ++i) {
    if (!context.wants(i) || !body.outputs()[i]) continue;
    ValueFact fact = callee.fact(*body.outputs()[i]);
    fact.same_as = nullptr;
    fact.foldable = false;
    context.result(i) = std::move(fact);
  }
  for (const SizeAssumption& assumption : callee.assumptions_) assume_equal(assumption.one, assumption.other, node);
}

/// Makes of this store that of a body within what AROUND describes, whose unknown sizes are called after NAMED.
void FactStore::enter(FactStore& around, const Value& named) {
  depth_ = around.depth_ + 1;
  proven_ = around.proven_;
  nodes_in_calls_ = around.nodes_in_calls_ ? around.nodes_in_calls_ : &around.own_nodes_in_calls_;
  hint_prefix_ = around.hint(named) + "/";
}

void FactStore::bind(const Value& parameter, FactStore& caller, const Value* argument) {
  ValueFact& bound = facts_[parameter];
  if (!argument) return;
  bound = caller.computed(*argument);
  bound.same_as = nullptr;
  const std::optional<int64_t> count = bound.shape ? attn_opt::element_count(*bound.shape) : std::nullopt;
  const bool passed = bound.foldable && count && *count <= kMaxPassedElements;
  const Tensor* tensor = passed ? caller.constant(*argument) : nullptr;
  bound.foldable = tensor != nullptr;
  if (tensor) constants_[parameter] = *tensor;
}

}  // namespace attn_opt
