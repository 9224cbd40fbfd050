#include "src/emit/plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "src/match/moved_from.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

/// What K and V are taken at: with a cache passed or not, with repeated heads passed or not.
struct Level {
  bool past = false;
  bool repeats = false;
};

constexpr Level kLevels[] = {{true, true}, {true, false}, {false, true}, {false, false}};
constexpr const char* kNoViews = "emit.operands";

int layout_nodes(const AxisMap& axes, IoForm form) {
  return LayoutChange(axes.grouping(), grouping_for(axes, form)).node_count();
}

/// Of reading a value that is_measured_outside(), in layout nodes that are rather written.
constexpr int kCostOfMeasured = 8;

/// Whether a node of INNER that reads VALUE reads it from an enclosing graph, where a Shape stands on it. ONNX Runtime 1.32,
/// where it folds that Shape and an If of a constant condition, takes VALUE away, and the model does not load.
bool is_measured_outside(const Value& value, const Graph& inner) {
  const auto measures = [&](const Use& use) { return use.node && use.node->graph == value.graph && use.node->is("Shape"); };
  return value.graph != &inner && std::ranges::any_of(value.uses, measures);
}

bool is_unplaced(const Value& value) { return value.producer && value.producer->placement == Placement::kUnplaced; }

/// The usable view of the least cost in SITE, which is added to COST, and with the fewest nodes that a description made and
/// that are placed with it; of several the last, which leaves most of the old nodes dead.
template <class View, class Usable>
const View* best_view(const std::vector<View>& views, IoForm form, const Graph& site, int& cost, Usable usable) {
  const View* best = nullptr;
  int least = 0, of_best = 0, unplaced = 0;
  for (auto view = views.rbegin(); view != views.rend() && !(best && least == 0); ++view) {
    unplaced += is_unplaced(*view->value) ? 1 : 0;
    // What was seen through may be gone with an attention above, which makes what its readers read.
    if (view->value->removed || !usable(*view)) continue;
    const int measured = is_measured_outside(*view->value, site) ? kCostOfMeasured : 0;
    const int own = layout_nodes(view->axes, form) + measured;
    if (best && own + unplaced >= least) continue;
    best = &*view;
    of_best = own;
    least = own + unplaced;
  }
  cost += of_best;
  return best;
}

bool repeats_are_shared_heads(const AxisMap& axes) {
  const bool heads_only = std::all_of(axes.factors().begin(), axes.factors().end(),
                                      [](const Factor& factor) { return !factor.repeated || factor.role == Role::kHead; });
  return heads_only && (axes.repeats_interleave() || axes.size(Role::kHead).is(1));
}

class Planner {
 public:
  Planner(const Sdpa& sdpa, const TargetRules& target, Facts& facts) : sdpa_(sdpa), target_(target), facts_(facts) {}

  Matched<WritingPlan> plan(const Level& level, IoForm form) const;

 private:
  bool usable(const OperandView& view, const Level& level) const;
  Dim sharing(const OperandView& view) const;
  std::optional<Miss> choose_views(WritingPlan& plan, const Level& level) const;
  std::optional<Miss> check_query(const WritingPlan& plan) const;
  std::optional<Miss> share_heads(WritingPlan& plan, const Level& level) const;
  std::optional<Miss> broadcast_batch(WritingPlan& plan) const;
  std::optional<Miss> check_form(const WritingPlan& plan) const;
  std::optional<Miss> check_past(const WritingPlan& plan) const;
  bool has_equal_pasts(const WritingPlan& plan) const;
  bool may_add_no_keys(const WritingPlan& plan) const;

  const Sdpa& sdpa_;
  const TargetRules& target_;
  Facts& facts_;
};

Miss miss_at(const OperandView& view, std::string id, std::string found) {
  return {std::move(id), view.value->producer, std::move(found), {}};
}

/// Whether HEADS heads can serve QUERY_HEADS, both being numbers.
bool divides(const Dim& heads, const Dim& query_heads) {
  return heads.is_constant() && query_heads.is_constant() && heads.value() > 0 && query_heads.value() > 0 &&
         query_heads.value() % heads.value() == 0;
}

/// How many query heads share one of VIEW's: that it is repeated for, or for which it has no axis.
Dim Planner::sharing(const OperandView& view) const {
  if (view.axes.has_repeats()) return view.axes.size(Role::kHead, true);
  const Dim heads = view.axes.size(Role::kHead);
  return divides(heads, sdpa_.query_heads) ? sdpa_.query_heads.value() / heads.value() : 1;
}

bool Planner::usable(const OperandView& view, const Level& level) const {
  if ((view.past != nullptr) != level.past) return false;
  if (!view.axes.has_repeats()) return !level.repeats || !sharing(view).is(1);
  return level.repeats && repeats_are_shared_heads(view.axes);
}

std::optional<Miss> Planner::choose_views(WritingPlan& plan, const Level& level) const {
  int& cost = plan.cost;
  const Graph& site = *sdpa_.outputs.front().value->graph;
  plan.k = best_view(sdpa_.k.views, plan.form, site, cost, [&](const OperandView& view) { return usable(view, level); });
  if (!plan.k) return Miss{kNoViews, nullptr, "no view of K fits", {}};
  const bool repeats_keys = plan.k->axes.has_repeats();
  plan.v = best_view(sdpa_.v.views, plan.form, site, cost, [&](const OperandView& view) {
    // Where neither is repeated, heads are shared without a level of their own.
    const bool fits = !level.repeats || ((repeats_keys || view.axes.has_repeats()) && sharing(view) == sharing(*plan.k));
    return usable(view, level) && view.scale == 1 && fits;
  });
  if (!plan.v) return miss_at(*plan.k, kNoViews, "no view of V fits that of K");
  plan.q = best_view(sdpa_.q.views, plan.form, site, cost,
                     [](const OperandView& view) { return !view.past && !view.axes.has_repeats(); });
  plan.output = best_view(sdpa_.outputs, plan.form, site, cost, [](const OutputView&) { return true; });
  if (!plan.q || !plan.output) return Miss{kNoViews, nullptr, "no view of Q or the output fits", {}};
  plan.has_past = level.past;
  return std::nullopt;
}

/// True if SIZE, of Q, is JOINT in each run or expanded to it. Where it is 1 and the KEY's too, that would make the product
/// with K once for each of JOINT.
bool may_become(const Dim& size, const Dim& key, const Dim& joint) {
  if (size == joint) return true;
  const Dim& made = size.is(1) ? key : size;
  return !made.is(1) && may_be_equal(made, joint);
}

std::optional<Miss> Planner::check_query(const WritingPlan& plan) const {
  const auto becomes = [&plan](Role role, const Dim& joint) {
    return may_become(plan.q->axes.size(role), plan.k->axes.size(role), joint);
  };
  if (becomes(Role::kBatch, sdpa_.batch) && becomes(Role::kHead, sdpa_.query_heads)) return std::nullopt;
  return miss_at(*plan.q, "emit.query-broadcasts",
                 plan.q->axes.str() + " against " + to_string({sdpa_.batch, sdpa_.query_heads}));
}

std::optional<Miss> Planner::share_heads(WritingPlan& plan, const Level& level) const {
  const Dim key = plan.k->axes.size(Role::kHead), value = plan.v->axes.size(Role::kHead);
  const Dim& query = sdpa_.query_heads;
  if (level.repeats && key * sharing(*plan.k) != query)
    return miss_at(*plan.k, "emit.heads", plan.k->axes.str() + " against " + query.str() + " query heads");
  if (key == value && key == query) return std::nullopt;
  const bool tells_shared_heads = plan.form == IoForm::k3d || target_.infers_shared_heads;
  if (level.repeats && !tells_shared_heads)
    return miss_at(*plan.k, "emit.form",
                   "no 4-D form for " + std::string(target_.name) + ": " + query.str() + " query heads share " + key.str() +
                       " of K and V");
  if (key == value && divides(key, query) && tells_shared_heads) {
    plan.kv_group = query.value() / key.value();
    return std::nullopt;
  }
  const bool expandable =
      !level.repeats && (key.is(1) || may_be_equal(key, query)) && (value.is(1) || may_be_equal(value, query));
  if (!expandable)
    return miss_at(*plan.k, "emit.heads",
                   key.str() + " of K and " + value.str() + " of V against " + query.str() + " query heads");
  plan.expands_key_heads = key != query;
  plan.expands_value_heads = value != query;
  return std::nullopt;
}

std::optional<Miss> Planner::broadcast_batch(WritingPlan& plan) const {
  const Dim query = plan.q->axes.size(Role::kBatch);
  // Q of a single one is expanded to K's.
  const Dim joint = query.is(1) ? plan.k->axes.size(Role::kBatch) : query;
  for (const OperandView* view : {plan.k, plan.v}) {
    const Dim batch = view->axes.size(Role::kBatch);
    if (batch == joint) continue;
    const std::string found = "batch " + joint.str() + (query.is(1) ? " of K against " : " of Q against ") + batch.str();
    if (joint.is(1)) return miss_at(*plan.q, "emit.query-broadcasts", found);
    if (!batch.is(1) && !may_be_equal(batch, joint)) return miss_at(*view, "emit.batch", found);
    (view == plan.k ? plan.expands_key_batch : plan.expands_value_batch) = true;
  }
  return std::nullopt;
}

std::optional<Miss> Planner::check_past(const WritingPlan& plan) const {
  const MaybeShape lengths = sdpa_.nonpad_kv_seqlen ? facts_.shape(*sdpa_.nonpad_kv_seqlen) : nullptr;
  if (lengths && lengths->size() != 1)
    return miss_at(*plan.k, "emit.nonpad", "nonpad_kv_seqlen of shape " + to_string(*lengths));
  if (!plan.has_past) {
    const bool passed_cache = std::ranges::any_of(sdpa_.k.views, [](const OperandView& view) { return view.past != nullptr; });
    if ((sdpa_.is_causal || sdpa_.left_window || sdpa_.right_window) && passed_cache)
      return miss_at(*plan.k, "emit.causal", "causal from the past's length on, without past_key");
    return std::nullopt;
  }
  if (sdpa_.nonpad_kv_seqlen) return miss_at(*plan.k, "emit.nonpad", "nonpad_kv_seqlen beside past_key");
  const bool expands = plan.expands_key_heads || plan.expands_value_heads || plan.expands_key_batch || plan.expands_value_batch;
  if (expands) return miss_at(*plan.k, "emit.past", "K or V broadcasts along batch or heads");
  for (const OperandView* view : {plan.k, plan.v}) {
    for (const Value* value : {view->value, view->past})
      if (facts_.type(*value) != sdpa_.type) return miss_at(*view, "emit.past", "cache of another type");
    const MaybeShape shape = facts_.shape(*view->past);
    if (!shape || shape->size() != 4) return miss_at(*view, "emit.past", "cache of another rank");
  }
  if (may_add_no_keys(plan))
    return miss_at(*plan.k, "emit.past",
                   "'" + plan.k->value->name + "' of " + plan.k->axes.size(Role::kRow).str() + " rows may be empty");
  if (!has_equal_pasts(plan))
    return miss_at(*plan.v, "emit.past",
                   facts_.shape(*plan.v->past).known()[2].str() + " past values and " +
                       facts_.shape(*plan.k->past).known()[2].str() + " past keys");
  return std::nullopt;
}

/// True for n - 3 and max(0, n - 3): what a Slice leaves of a tensor that may be no longer than what it cuts off.
bool is_rest(const Dim& rows) {
  const Atom* atom = sole_atom(rows);
  if (atom && atom->kind == Atom::Kind::kMax)
    return std::ranges::any_of(atom->operands, [](const Dim& size) { return size.is(0); });
  return std::ranges::any_of(rows.terms(), [](const auto& term) { return term.factors.empty() && term.coefficient < 0; });
}

/// True of an input, and of what a cache by heads that is one is moved or cast to.
bool is_given(Value& value, Facts& facts) {
  const Value& source = moved_from(value, facts);
  const MaybeShape shape = facts.shape(source);
  return value.is_input || (source.is_input && shape && shape->size() == 4);
}

/// A caller may give no rows for what stands behind the past, as for a past that stands behind the new rows, and none may be
/// left for it: runtimes refuse that, of an operator that has a past in the model already too.
bool Planner::may_add_no_keys(const WritingPlan& plan) const {
  if (sdpa_.k.views.front().past) return false;
  const Dim rows = plan.k->axes.size(Role::kRow);
  return rows.is(0) || is_rest(rows) ||
         (is_given(*plan.k->value, facts_) && !rows.is_constant() && rows != plan.q->axes.size(Role::kRow));
}

/// As many past keys as past values: proven of them, or of the new ones, since there are as many keys as values in all.
bool Planner::has_equal_pasts(const WritingPlan& plan) const {
  return facts_.shape(*plan.k->past).known()[2] == facts_.shape(*plan.v->past).known()[2] ||
         plan.k->axes.size(Role::kRow) == plan.v->axes.size(Role::kRow);
}

/// ONNX's shape inference takes an unknown hidden size of V for 0: it must be declared, or free to be.
bool shows_hidden_size(const OperandView& v) {
  if (!v.axes.size(Role::kFeature).is_constant()) return false;
  const bool is_free = !v.value->declared_type || !(v.value->is_input || v.value->is_output);
  if (!v.axes.is_three_dimensional() || is_free) return true;
  const auto& declared = v.value->declared_type->tensor_type().shape();
  return declared.dim_size() == 3 && declared.dim(2).has_dim_value();
}

/// True if VALUE is made in the body of a Loop or Scan that does not declare the ranks of all that it carries: a runtime that
/// takes them from there cannot tell inputs of three axes from those of four.
bool is_in_loop_of_unknown_ranks(const Value& value) {
  const auto has_no_rank = [](const Value* input) {
    return !input->declared_type || !input->declared_type->tensor_type().has_shape();
  };
  for (const Graph* graph = value.graph; graph && graph->owner(); graph = graph->parent()) {
    const bool is_loop = graph->owner()->is("Loop") || graph->owner()->is("Scan");
    if (is_loop && std::ranges::any_of(graph->inputs(), has_no_rank)) return true;
  }
  return false;
}

std::optional<Miss> Planner::check_form(const WritingPlan& plan) const {
  if (plan.form == IoForm::k4d) return std::nullopt;
  const bool expands_heads = plan.expands_key_heads || plan.expands_value_heads;
  std::string obstacle;
  if (!sdpa_.query_heads.is_constant()) obstacle = sdpa_.query_heads.str() + " query heads";
  if (expands_heads) obstacle = "heads of K or V broadcast";
  if (plan.expands_key_batch && !sdpa_.tensor_scales.empty()) obstacle = "a factor of the scores is a tensor, and K broadcasts";
  if (target_.family == OperatorFamily::kOnnx && !shows_hidden_size(*plan.v)) obstacle = "the hidden size of V is not declared";
  const bool knows_ranks = target_.family != OperatorFamily::kOnnx || target_.infers_ranks_in_loops;
  if (!knows_ranks && is_in_loop_of_unknown_ranks(*plan.q->value)) obstacle = "the loop around it does not declare ranks";
  if (obstacle.empty()) return std::nullopt;
  return miss_at(*plan.q, "emit.form", "no 3-D form: " + obstacle);
}

Matched<WritingPlan> Planner::plan(const Level& level, IoForm form) const {
  WritingPlan plan;
  plan.form = form;
  std::optional<Miss> miss = choose_views(plan, level);
  if (!miss) miss = check_query(plan);
  if (!miss) miss = share_heads(plan, level);
  if (!miss) miss = broadcast_batch(plan);
  if (!miss) miss = check_past(plan);
  if (!miss) miss = check_form(plan);
  if (miss) return tl::unexpected<Miss>(*std::move(miss));
  return plan;
}

/// True if PLAN takes no node around the operator.
bool is_free(const WritingPlan& plan, const Sdpa& sdpa) { return plan.cost == 0 && sdpa.tensor_scales.empty(); }

}  // namespace

Matched<void> try_plans(const Sdpa& sdpa, const EmitOptions& options, Facts& facts,
                        const std::function<bool(const WritingPlan&)>& write) {
  const TargetRules& target = rules_of(options.target);
  const Planner planner(sdpa, target, facts);
  // Those of com.microsoft know no other.
  const Form wanted = target.family == OperatorFamily::kMicrosoft ? Form::k3d : options.form;
  bool any = false;
  Miss reason{kNoViews, nullptr, "K and V have no views at one level", {}};
  for (const Level& level : kLevels)
    for (const IoForm form : {IoForm::k3d, IoForm::k4d}) {
      const bool keeps_heads = options.past_is_4d && level.past && wanted == Form::kAuto;
      if ((keeps_heads ? Form::k4d : wanted) == (form == IoForm::k3d ? Form::k4d : Form::k3d)) continue;
      auto plan = planner.plan(level, form);
      const bool optional_form = form == IoForm::k3d && wanted == Form::kAuto;
      if (!plan) {
        if (!optional_form && plan.error().id != kNoViews) reason = plan.error();
      } else if (!optional_form || is_free(*plan, sdpa) || (plan->kv_group > 1 && !target.infers_shared_heads)) {
        any = true;
        if (write(*plan)) return {};
      }
    }
  if (!any) return tl::unexpected<Miss>(std::move(reason));
  return {};
}

}  // namespace attn_opt
