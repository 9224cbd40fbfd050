#include "src/optimizer/local_attention.h"

#include <algorithm>
#include <set>

#include "attn_opt/internal/model_walk.h"
#include "src/emit/local_function.h"
#include "src/optimizer/node_checks.h"
#include "src/optimizer/sites.h"

namespace attn_opt {
namespace {

bool is_call_of(const onnx::NodeProto& node, const onnx::FunctionProto& function) {
  return node.domain() == function.domain() && node.op_type() == function.name();
}

int calls_in_functions(const onnx::ModelProto& model, const onnx::FunctionProto& callee) {
  int calls = 0;
  for (const auto& function : model.functions())
    for_each_node(function, [&](const onnx::NodeProto& node) { calls += is_call_of(node, callee); });
  return calls;
}

int calls_in_graphs(const onnx::ModelProto& model, const onnx::FunctionProto& callee) {
  int calls = 0;
  for_each_node(model, [&](const onnx::NodeProto& node) { calls += is_call_of(node, callee); });
  return calls - calls_in_functions(model, callee);
}

/// True if all of the CALLS of FUNCTION can be written as calls again, and one of them takes heads that are repeated so far.
bool is_worth_inlining(Model& model, const onnx::FunctionProto& function, int calls, const OptimizeOptions& options,
                       const std::vector<const Pattern*>& chosen) {
  InlinedModel trial = inline_functions(model.proto, {{function.domain(), function.name()}});
  auto created = ModelGraph::create(trial.proto);
  if (!created || !check_nodes(**created)) return false;
  const auto view = *std::move(created);
  view->set_edit_opset(options.opset);
  Facts facts(*view, *model.tensors);
  MatchContext context{*view, facts, {}, rules_of(options.emit.target)};
  const SharedNodes none;
  Report unused;
  int written = 0;
  bool repeats = false;
  for (const MatchedSite& site : find_sites(context, chosen, unused).matched) {
    if (!trial.calls.origin(*site.match.anchor->proto)) continue;
    const auto emission = guarded(*site.match.anchor, [&] { return emit_attention(site.match, context, none, options.emit); });
    written += emission.has_value();
    repeats = repeats || (emission && emission->kv_group > 1);
  }
  return repeats && written == calls;
}

}  // namespace

bool is_local_attention(const onnx::FunctionProto& function) {
  return function.domain() == kLocalAttentionDomain && function.name().starts_with("LocalAttention");
}

Expected<std::optional<Inlining>> inline_local_attention(Model& model, const OptimizeOptions& options) {
  ATTN_OPT_TRY(const auto chosen, chosen_patterns(options));
  std::set<FunctionName> names;
  for (const auto& function : model.proto.functions()) {
    const bool repeats_already = function.name().starts_with("LocalAttentionGQA");
    if (!is_local_attention(function) || repeats_already || calls_in_functions(model.proto, function) > 0) continue;
    const int calls = calls_in_graphs(model.proto, function);
    if (calls > 0 && is_worth_inlining(model, function, calls, options, chosen))
      names.emplace(function.domain(), function.name());
  }
  return names.empty() ? std::nullopt : inlined(model, names);
}

}  // namespace attn_opt
