#include "src/optimizer/function_inlining.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "attn_opt/internal/model_walk.h"
#include "attn_opt/internal/opset_raise.h"
#include "src/exec/plan.h"
#include "src/io/onnx_domain.h"
#include "src/opset/operator_changes.h"
#include "src/optimizer/node_checks.h"
#include "src/optimizer/sites.h"
#include "src/optimizer/taken_branches.h"
#include "src/rewrite/spared_expands.h"
#include "src/verify/read_nodes.h"

namespace attn_opt {
namespace {

/// Of what all calls would become: nested calls multiply, and the inliner recurses into them.
constexpr int64_t kMaxInlinedNodes = 1'000'000;
constexpr int kMaxCallDepth = 64;

bool has_anchor(const ModelGraph& view, const std::vector<const Pattern*>& chosen) {
  return std::ranges::any_of(view.graphs(), [&](const auto& graph) {
    return std::ranges::any_of(graph->nodes(), [&](const Node* node) {
      return std::ranges::any_of(chosen, [node](const Pattern* pattern) { return pattern->is_anchor(*node); });
    });
  });
}

/// What the calls in a function or in the main graph come to.
struct Expansion {
  int64_t nodes = 0;
  int depth = 0;
};

/// True if inlining all calls of MODEL stays within the limits.
bool can_be_inlined(const onnx::ModelProto& model) {
  std::unordered_map<std::string, Expansion> known;
  const auto expand = [&](const onnx::NodeProto& node, Expansion& caller) {
    const auto callee = known.find(function_key(node.domain(), node.op_type(), node.overload()));
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
      Expansion& held = known[function_key(function.domain(), function.name(), function.overload())];
      changed += held.nodes != expansion.nodes || held.depth != expansion.depth;
      held = expansion;
    }
  }
  Expansion all;
  for_each_node(model, [&](const onnx::NodeProto& node) { expand(node, all); });
  return all.nodes <= kMaxInlinedNodes && all.depth <= kMaxCallDepth;
}

/// What can be written of a copy of a model in which functions are inlined.
struct WritableSites {
  int count = 0;
  int64_t assumptions = 0;         ///< of all of them
  int64_t untyped = 0;             ///< values of no known type that they read: these cannot be drawn
  bool can_be_raised = true;       ///< the nodes around them
  size_t lines = 0;                ///< of a report on all sites, those that are missed too
  std::set<FunctionName> covered;  ///< functions of whose nodes they consist
};

/// The values that NODES read and whose type is not known.
int64_t untyped_inputs(const std::vector<Node*>& nodes, Facts& facts) {
  int64_t count = 0;
  for (const Node* node : nodes)
    count += std::ranges::count_if(
        node->inputs, [&](const Value* value) { return value && facts.type(*value) == onnx::TensorProto::UNDEFINED; });
  return count;
}

/// Those of FOUND, sites of a copy in which CALLS are inlined.
WritableSites writable(const InlinedCalls& calls, const std::vector<MatchedSite>& found, MatchContext& context,
                       const EmitOptions& options) {
  WritableSites sites;
  const SharedNodes none;
  for (const MatchedSite& site : found) {
    const auto emission = guarded(*site.match.anchor, [&] { return emit_attention(site.match, context, none, options); });
    if (!emission) continue;
    ++sites.count;
    sites.assumptions += std::ranges::count(emission->preconditions, false, &Precondition::proven);
    sites.untyped += untyped_inputs(emission->edit.nodes(), context.facts);
    std::vector<const Node*> nodes(emission->removed.begin(), emission->removed.end());
    nodes.push_back(site.match.anchor);  // stays where another site shares it
    for (const Node* node : nodes)
      if (const auto* origin = calls.origin(*node->proto)) {
        const onnx::FunctionProto& function = *calls.call_around(origin->scope)->function;
        sites.covered.emplace(function.domain(), function.name());
      }
  }
  return sites;
}

/// Enters the functions of ALL that call one of NAMES, directly or not: a body can only come to light with its callers'.
void add_callers(const onnx::ModelProto& model, const std::set<FunctionName>& all, std::set<FunctionName>& names) {
  for (size_t before = 0; before != names.size();) {
    before = names.size();
    for (const auto& function : model.functions()) {
      const FunctionName caller{function.domain(), function.name()};
      for_each_node(function, [&](const onnx::NodeProto& node) {
        if (names.contains({node.domain(), node.op_type()}) && all.contains(caller)) names.insert(caller);
      });
    }
  }
}

/// True if the operators of FUNCTION mean the same at the opsets of MODEL, in which the functions CALLED are. What a call means
/// is in the model, whatever version is imported.
bool means_the_same_in(const onnx::ModelProto& model, const std::set<std::string>& called,
                       const onnx::FunctionProto& function) {
  for (const auto& import : function.opset_import()) {
    const int own = static_cast<int>(import.version());
    const int others = opset_version(model, import.domain());
    if (others == 0 || others == own) continue;
    OperatorChanges changes(others);
    bool same = true;
    for_each_node(function, [&](const onnx::NodeProto& node) {
      const bool is_of_domain = node.domain() == import.domain() || (is_onnx(node.domain()) && is_onnx(import.domain()));
      if (!is_of_domain || called.contains(function_key(node.domain(), node.op_type(), node.overload()))) return;
      same = same && is_onnx(import.domain()) && changes.leave(node, own);
    });
    if (!same) return false;
  }
  return true;
}

/// All functions of MODEL, without those that say something else at its opsets.
std::set<FunctionName> all_functions(const onnx::ModelProto& model) {
  std::set<std::string> called;
  for (const auto& function : model.functions())
    called.insert(function_key(function.domain(), function.name(), function.overload()));
  std::set<FunctionName> names;
  for (const auto& function : model.functions()) names.emplace(function.domain(), function.name());
  for (const auto& function : model.functions())
    if (!means_the_same_in(model, called, function)) names.erase({function.domain(), function.name()});
  return names;
}

/// True if every node that lay in a function reads what it read there: nodes beside the sites, which are not run, too.
bool wiring_holds(InlinedModel& inlined) {
  const auto view = ModelGraph::create(inlined.proto);
  if (!view) return false;
  const ReadNodes read(&inlined.calls);
  return std::ranges::all_of((*view)->graphs(), [&](const auto& graph) { return read.wiring_fault(graph->nodes()).empty(); });
}

/// What can be written of MODEL with the functions NAMES inlined; nothing if that is no model.
WritableSites writable_behind(Model& model, const std::set<FunctionName>& names, const OptimizeOptions& options,
                              const std::vector<const Pattern*>& chosen) {
  InlinedModel trial = inline_functions(model.proto, names);
  auto created = ModelGraph::create(trial.proto);
  if (!created || !check_nodes(**created)) return {};
  const auto view = *std::move(created);
  view->set_edit_opset(options.opset);
  Redirections of_trial;
  spare_expands(*view, *model.tensors, &trial.calls, of_trial);
  Facts facts(*view, *model.tensors);
  MatchContext context{*view, facts, {}, rules_of(options.emit.target)};
  Report report;
  const FoundSites found = find_sites(context, chosen, report);
  WritableSites sites = writable(trial.calls, found.matched, context, options.emit);
  sites.lines = report.sites.size();
  sites.can_be_raised = sites.count == 0 || plan_raise(*view, facts, view->edit_opset()).has_value();
  return sites;
}

/// The functions that sites cover or share nodes of. Where those that stay hide what a site asks of the values it reads (a
/// type, a size, what a mask holds), or an attribute without which a node cannot be raised, all of them. All, too, where
/// nothing can be written and what is missed shows only behind calls: the report says what, and the model stays as it was.
std::set<FunctionName> functions_to_inline(Model& model, const OptimizeOptions& options,
                                           const std::vector<const Pattern*>& chosen) {
  const std::set<FunctionName> all = all_functions(model.proto);
  WritableSites sites = writable_behind(model, all, options, chosen);
  add_callers(model.proto, all, sites.covered);
  if (sites.count == 0 && sites.lines > 0) {
    const WritableSites seen = writable_behind(model, {}, options, chosen);
    return seen.count == 0 && seen.lines == 0 ? all : sites.covered;
  }
  if (sites.count == 0 || sites.covered == all) return sites.covered;
  const WritableSites left = writable_behind(model, sites.covered, options, chosen);
  const bool hides = left.count < sites.count || left.assumptions > sites.assumptions || left.untyped > sites.untyped ||
                     (sites.can_be_raised && !left.can_be_raised);
  return hides ? all : sites.covered;
}

/// True if more can be written of a model of which SITES can than of one of which OTHERS can; or, if nothing, more is missed.
bool shows_more(const WritableSites& sites, const WritableSites& others) {
  return sites.count > others.count || (sites.count == 0 && others.count == 0 && sites.lines > others.lines);
}

/// The branches of VIEW, that of MODEL, which are taken in every run, whether or not functions make their conditions.
std::vector<TakenBranch> branches_of(ModelGraph& view, Model& model) {
  if (model.proto.functions_size() == 0) return taken_branches(view, view, *model.tensors);
  InlinedModel trial = inline_functions(model.proto, all_functions(model.proto));
  const auto plain = ModelGraph::create(trial.proto);
  return plain ? taken_branches(view, **plain, *model.tensors) : std::vector<TakenBranch>();
}

/// Inlines what functions_to_inline() says, BRANCHES being functions. Nothing, and MODEL is as it was, where no site is gained
/// or none of the branches takes part.
std::optional<Inlining> inlined_with_branches(Model& model, const std::vector<TakenBranch>& branches,
                                              const OptimizeOptions& options, const std::vector<const Pattern*>& chosen) {
  const onnx::ModelProto read = model.proto;
  const WritableSites without = writable_behind(model, all_functions(read), options, chosen);
  model.proto = with_calls_of(branches, read);
  const bool gains = shows_more(writable_behind(model, all_functions(model.proto), options, chosen), without);
  const std::set<FunctionName> names = gains ? functions_to_inline(model, options, chosen) : std::set<FunctionName>();
  std::vector<TakenBranch> covered = branches;
  std::erase_if(covered, [&](const TakenBranch& branch) { return !names.contains({kBranchDomain, branch.function}); });
  if (!covered.empty()) {
    model.proto = with_calls_of(covered, read);
    auto inlining = inlined(model, names);
    const auto stands_for_branch = [](const onnx::FunctionProto& function) { return function.domain() == kBranchDomain; };
    if (inlining && std::ranges::none_of(model.proto.functions(), stands_for_branch)) {
      inlining->with_branches = read;
      return inlining;
    }
  }
  model.proto = read;
  return std::nullopt;
}

}  // namespace

std::optional<Inlining> inlined(Model& model, const std::set<FunctionName>& names) {
  InlinedModel trial = inline_functions(model.proto, names);
  if (!wiring_holds(trial)) return std::nullopt;
  Inlining inlining;
  model.proto.Swap(&trial.proto);
  inlining.before.Swap(&trial.proto);
  inlining.calls = std::move(trial.calls);
  return inlining;
}

void undo(Inlining& inlining, Model& model) {
  model.proto.Swap(inlining.with_branches ? &*inlining.with_branches : &inlining.before);
}

Expected<std::optional<Inlining>> inline_attention_functions(Model& model, const OptimizeOptions& options) {
  const auto& nodes = model.proto.graph().node();
  const bool has_branches = std::ranges::any_of(nodes, [](const onnx::NodeProto& node) { return node.op_type() == "If"; });
  if (model.proto.functions_size() == 0 && !has_branches) return std::nullopt;
  ATTN_OPT_TRY(const auto chosen, chosen_patterns(options));
  ATTN_OPT_TRY(auto view, ModelGraph::create(model.proto));
  if (!has_anchor(*view, chosen) || !can_be_inlined(model.proto)) return std::nullopt;
  const std::vector<TakenBranch> branches = has_branches ? branches_of(*view, model) : std::vector<TakenBranch>();
  view.reset();
  if (!branches.empty())
    if (auto inlining = inlined_with_branches(model, branches, options, chosen)) return inlining;
  if (model.proto.functions_size() == 0) return std::nullopt;
  const std::set<FunctionName> names = functions_to_inline(model, options, chosen);
  return names.empty() ? std::nullopt : inlined(model, names);
}

}  // namespace attn_opt
