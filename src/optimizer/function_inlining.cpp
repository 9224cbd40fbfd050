#include "src/optimizer/function_inlining.h"

#include <onnx/inliner/inliner.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "attn_opt/model_walk.h"
#include "src/optimizer/sites.h"

namespace attn_opt {
namespace {

using FunctionName = std::pair<std::string, std::string>;  // domain, name

constexpr const char* kMark = "attn_opt.function";
/// Of what all calls would become: nested calls multiply, and the inliner recurses into them.
constexpr int64_t kMaxInlinedNodes = 1'000'000;
constexpr int kMaxCallDepth = 64;

bool has_anchor(const ModelGraph& view, const std::vector<const Pattern*>& chosen) {
  for (const auto& graph : view.graphs()) {
    if (!graph->outermost().function()) continue;
    for (const Node* node : graph->nodes())
      for (const Pattern* pattern : chosen)
        if (pattern->is_anchor(*node)) return true;
  }
  return false;
}

/// Notes on each node of a function, in its metadata, which function that is. Inlining keeps the note.
void mark_nodes(onnx::ModelProto& model) {
  for (int i = 0; i < model.functions_size(); ++i)
    for_each_node(*model.mutable_functions(i), [&](onnx::NodeProto& node) {
      auto* mark = node.add_metadata_props();
      mark->set_key(kMark);
      mark->set_value(std::to_string(i));
    });
}

/// What the calls in a function or in the main graph come to.
struct Expansion {
  int64_t nodes = 0;
  int depth = 0;
};

/// True if inlining all calls of MODEL stays within the limits.
bool can_be_inlined(const onnx::ModelProto& model) {
  std::map<std::array<std::string, 3>, Expansion> known;  // by domain, name, overload
  const auto expand = [&](const onnx::NodeProto& node, Expansion& caller) {
    const auto callee = known.find({node.domain(), node.op_type(), node.overload()});
    if (callee == known.end()) return void(++caller.nodes);
    caller.nodes = std::min(caller.nodes + callee->second.nodes, kMaxInlinedNodes + 1);
    caller.depth = std::max(caller.depth, callee->second.depth + 1);
  };
  // Callees come to their final numbers one level of depth a round; a round that changes nothing is the last.
  for (int round = 0, changed = 1; changed != 0; ++round) {
    if (round > kMaxCallDepth) return false;
    changed = 0;
    for (const auto& function : model.functions()) {
      Expansion expansion;
      for_each_node(function, [&](const onnx::NodeProto& node) { expand(node, expansion); });
      Expansion& held = known[{function.domain(), function.name(), function.overload()}];
      changed += held.nodes != expansion.nodes || held.depth != expansion.depth;
      held = expansion;
    }
  }
  Expansion all;
  for_each_node(model, [&](const onnx::NodeProto& node) { expand(node, all); });
  return all.nodes <= kMaxInlinedNodes && all.depth <= kMaxCallDepth;
}

/// Functions of ORIGINAL that FOUND, sites of its marked and inlined copy, cover nodes of.
std::set<FunctionName> covered_functions(const onnx::ModelProto& original, const std::vector<MatchedSite>& found,
                                         MatchContext& context, const EmitOptions& options) {
  std::set<FunctionName> covered;
  const SharedNodes none;
  for (const MatchedSite& site : found) {
    const auto emission = emit_attention(site.match, context, none, options);
    if (!emission) continue;
    for (const Node* node : emission->removed)
      for (const auto& note : node->proto->metadata_props())
        if (note.key() == kMark) {
          const auto& function = original.functions(std::stoi(note.value()));
          covered.emplace(function.domain(), function.name());
        }
  }
  return covered;
}

/// Enters the functions that call one of NAMES, directly or not: a body can only come to light with its callers'.
void add_callers(const onnx::ModelProto& model, std::set<FunctionName>& names) {
  for (size_t before = 0; before != names.size();) {
    before = names.size();
    for (const auto& function : model.functions())
      for_each_node(function, [&](const onnx::NodeProto& node) {
        if (names.count({node.domain(), node.op_type()})) names.emplace(function.domain(), function.name());
      });
  }
}

Expected<std::set<FunctionName>> functions_to_inline(Model& model, const OptimizeOptions& options,
                                                     const std::vector<const Pattern*>& chosen) {
  onnx::ModelProto trial = model.proto;
  mark_nodes(trial);
  onnx::inliner::InlineLocalFunctions(trial);
  ATTN_OPT_TRY(auto view, ModelGraph::create(trial));
  view->set_edit_opset(options.opset);
  Facts facts(*view, *model.tensors);
  MatchContext context{*view, facts};
  Report unused;
  auto names = covered_functions(model.proto, find_sites(context, chosen, unused).matched, context, options.emit);
  add_callers(model.proto, names);
  return names;
}

}  // namespace

Expected<std::optional<onnx::ModelProto>> inline_attention_functions(Model& model, const OptimizeOptions& options) {
  if (model.proto.functions_size() == 0 || !can_be_inlined(model.proto)) return std::nullopt;
  ATTN_OPT_TRY(const auto chosen, chosen_patterns(options));
  ATTN_OPT_TRY(auto view, ModelGraph::create(model.proto));
  if (!has_anchor(*view, chosen)) return std::nullopt;
  view.reset();
  try {
    ATTN_OPT_TRY(const auto names, functions_to_inline(model, options, chosen));
    if (names.empty()) return std::nullopt;
    onnx::ModelProto proto = model.proto;
    const auto selected = onnx::inliner::FunctionIdSet::Create({names.begin(), names.end()});
    onnx::inliner::InlineSelectedLocalFunctions(proto, *selected);
    model.proto.Swap(&proto);
    return proto;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace attn_opt
