#include "src/opset/node_raiser.h"

#include <algorithm>
#include <exception>

#include "src/io/check/onnx_schemas.h"
#include "src/io/check/runtime_operators.h"
#include "src/opset/onnx_conversion.h"
#include "src/opset/runtime_kernels.h"
#include "src/opset/site_key.h"
#include "src/opset/step_rules.h"

namespace attn_opt {
namespace {

TypeLookup types_of(const RaiseSite& site) {
  return [&site](SchemaChange::Kind kind, int position) {
    const auto at = static_cast<size_t>(position);
    return kind == SchemaChange::Kind::kInputTypes ? site.type(at) : site.output_type(at);
  };
}

std::string given_by_caller(const std::string& attribute) {
  return "attribute " + attribute + " is given by the function's caller";
}

/// True if NODE has all that its schema requires, on which the rules rely.
bool is_complete(const onnx::NodeProto& node, int opset) {
  const auto* schema = find_schema(node.op_type(), opset, "");
  if (schema == nullptr) return true;
  if (node.input_size() < schema->min_input() || node.output_size() < schema->min_output()) return false;
  return std::ranges::all_of(schema->attributes(), [&node](const auto& named) {
    return !named.second.required ||
           std::ranges::any_of(node.attribute(), [&named](const auto& attribute) { return attribute.name() == named.first; });
  });
}

}  // namespace

/// Where the history of the operator that the draft was renamed to goes on; empty if it has arrived.
struct NodeRaiser::Progress {
  std::string op;
  int opset = 0;
};

/// Takes the draft along the steps of its operator, up to one that gives it another operator.
tl::expected<NodeRaiser::Progress, NodeRaiser::Obstacle> NodeRaiser::follow(const std::vector<SchemaStep>& steps, Draft& draft,
                                                                            const RaiseSite& site) {
  const auto stop = [](std::string what, bool told_by_schema = false) {
    return tl::unexpected<Obstacle>(Obstacle{std::move(what), told_by_schema});
  };
  const std::string op = draft.node().op_type();
  for (const SchemaStep& step : steps) {
    const StepRule* rule = find_step_rule(op, step.version);
    if (rule == nullptr) {
      const auto* change = first_touching(step, draft.node(), types_of(site));
      if (change != nullptr) return stop(to_string(*change) + since(step.version), true);
      continue;
    }
    if (auto obstacle = (*rule)(draft, site)) return stop(std::move(*obstacle));
    if (const auto& name = draft.given_by_caller(); !name.empty()) return stop(given_by_caller(name));
    if (draft.node().op_type() != op) return Progress{draft.node().op_type(), step.version};
  }
  return Progress{};
}

tl::expected<Draft, NodeRaiser::Obstacle> NodeRaiser::draft_of(const onnx::NodeProto& canonical, int from,
                                                               const RaiseSite& site) {
  Draft draft(canonical);
  for (Progress next{canonical.op_type(), from}; !next.op.empty();) {
    const auto* steps = changes_.steps(next.op, next.opset);
    if (steps == nullptr) return tl::unexpected<Obstacle>(Obstacle{no_such_operator(next.op, next.opset)});
    auto progress = follow(*steps, draft, site);
    if (!progress) return tl::unexpected<Obstacle>(std::move(progress.error()));
    next = *std::move(progress);
  }
  return draft;
}

std::optional<std::string> NodeRaiser::objection(const Draft& draft, bool by_onnx, const onnx::NodeProto& canonical, int from,
                                                 const RaiseSite& site) const {
  try {
    const auto* schema = find_schema(draft.node().op_type(), to_, "");
    if (schema != nullptr) schema->Verify(draft.node());
  } catch (const std::exception& error) {
    return std::string("converted, it is not valid: ") + error.what();
  }
  const Comparison comparison = compare(canonical, from, draft, to_, site);
  switch (comparison.agreement) {
    case Agreement::kEqual: return std::nullopt;
    case Agreement::kDifferent: return "converted, it differs: " + comparison.why;
    case Agreement::kUnknown: break;
  }
  // What only says the same in other attributes stands by the text of the standard.
  if (!draft.rewired() && !by_onnx) return std::nullopt;
  return "cannot be compared: " + comparison.why;
}

NodeRaiser::Outcome NodeRaiser::convert(const RaiseSite& site, int from) {
  using Failure = tl::unexpected<std::string>;
  const onnx::NodeProto canonical = canonical_node(site.node());
  if (!is_complete(canonical, from)) return Failure("it lacks an input, output or attribute");
  auto own = draft_of(canonical, from, site);
  if (own && !own->changed()) return nullptr;
  const bool is_known_to_onnx = onnx_schema(canonical.op_type(), from, "") != nullptr;
  if (!own && !(own.error().told_by_schema && is_known_to_onnx)) return Failure(std::move(own.error().what));
  const bool by_onnx = !own;
  if (by_onnx) {
    auto converted = convert_with_onnx(canonical, from, to_, site);
    if (!converted) return Failure(own.error().what + "; ONNX does not convert it: " + converted.error());
    own = *std::move(converted);
  }
  if (auto reason = objection(*own, by_onnx, canonical, from, site)) return Failure(std::move(*reason));
  return std::make_shared<const Draft>(*std::move(own));
}

NodeRaiser::Outcome NodeRaiser::raise(const Node& node, int from) {
  using Failure = tl::unexpected<std::string>;
  const RaiseSite site(node, from, rows_keep_a_key_, facts_);
  if (loses_its_kernel(node.op(), site.type(0), from, to_)) return Failure("ONNX Runtime runs it only at lower opsets");
  if (changes_.never_changes(node.op(), from)) return nullptr;
  if (!node.bodies.empty()) {
    if (auto change = changes_.of_node(*node.proto, from, types_of(site))) return Failure(std::move(*change));
    return nullptr;
  }
  const auto [known, added] = outcomes_[from].try_emplace(site_key(site));
  if (added) known->second = convert(site, from);
  return known->second;
}

}  // namespace attn_opt
