#include "attn_opt/internal/emit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/emit/causal.h"
#include "src/emit/joint_sizes.h"
#include "src/emit/local_function.h"
#include "src/emit/mask.h"
#include "src/emit/mask_shape.h"
#include "src/emit/nan_rows.h"
#include "src/emit/operators.h"
#include "src/emit/order.h"
#include "src/emit/outputs.h"
#include "src/match/facts/declared_type.h"
#include "src/rewrite/faster_operators.h"

namespace attn_opt {
namespace {

bool is_supported(DataType type, const TargetRules& target) {
  return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::FLOAT16 ||
         (type == onnx::TensorProto::DOUBLE && target.takes_double) ||
         (type == onnx::TensorProto::BFLOAT16 && target.takes_bfloat16);
}

/// TYPE, and by which option it is written.
std::string unsupported(DataType type) {
  for (const std::string& name : target_names())
    if (is_supported(type, rules_of(*target_named(name)))) return type_name(type) + ", which --target " + name + " takes";
  return type_name(type);
}

/// ONNX's shape inference needs the hidden size of a V that is 3-D, and for the shape of qk_matmul_output that of Q and K, V's
/// number of keys and the shapes of both pasts: what it does not find by itself it takes for 0, or for no axes at all.
void declare_inputs(const WritingPlan& plan, const Operands& operands, const FurtherOutputs& further, Site& site) {
  if (plan.form != IoForm::k3d && !further.wants_scores()) return;
  const auto declare = [&site](Value& value, const Shape& shape) {
    site.build.edit().declare(value, declared_type(site.sdpa.type, shape));
  };
  declare(*operands.v.value, operands.v.shape);
  if (!further.wants_scores()) return;
  for (const Placed* operand : {&operands.q, &operands.k}) declare(*operand->value, operand->shape);
  if (!plan.has_past) return;
  for (Value* past : {plan.k->past, plan.v->past}) declare(*past, site.facts.shape(*past).known());
}

/// Keys at the product: rows of K and of the past before them.
Dim key_rows(const WritingPlan& plan, const Sdpa& sdpa, Facts& facts) {
  const OperandView& view = sdpa.k.views[0].past ? *plan.k : sdpa.k.views[0];
  const Dim rows = view.axes.size(Role::kRow);
  return view.past ? facts.shape(*view.past).known()[2] + rows : rows;
}

/// TERMS as the node's mask, null if there are none, and OPERANDS of the sizes that they have together.
Matched<Value*> join_mask(const std::vector<const ScoreTerm*>& terms, const WritingPlan& plan, Operands& operands, Site& site) {
  if (terms.empty()) {
    ATTN_OPT_DONE(join_sizes(plan, nullptr, operands, site));
    return nullptr;
  }
  ATTN_OPT_MATCH(Placed mask, write_mask(terms, site));
  ATTN_OPT_DONE(join_sizes(plan, &mask, operands, site));
  return fit_to_scores(std::move(mask), site);
}

/// What ran without a batch, queries, keys or features fails in a runtime whose Attention refuses them (a MultiHeadAttention
/// whose V has no features ends the process); it asks for new keys behind a past too. Misses: "emit.shape": one of these is 0
/// in every run.
Matched<void> assume_not_empty(const WritingPlan& plan, Site& site) {
  if (site.target.takes_empty_sizes) return {};
  const Dim rows = plan.has_past ? plan.k->axes.size(Role::kRow) : site.scores.back();
  Shape asked(site.scores.begin(), site.scores.end() - 1);
  asked.push_back(rows);
  for (const OperandView* view : {plan.q, plan.v})
    for (const Factor& factor : view->axes.factors())
      if (factor.role == Role::kFeature) asked.push_back(factor.size);
  const bool is_empty = std::ranges::any_of(asked, [](const Dim& size) { return size.is(0); });
  const std::string sizes = sizes_that_may_be_0(asked);
  if (is_empty)
    return missed("emit.shape", site.match.anchor,
                  "batch, heads, queries, keys or features are 0, which the target's Attention does not run");
  if (!sizes.empty()) site.assumed.push_back({std::string(kSizesNotEmpty), false, sizes});
  return {};
}

/// The rules of TARGET for what takes the place of ANCHOR. An Attention node's mask means to the one that takes its place what
/// it meant: its lowest number is -inf or not in either.
const TargetRules& rules_beside(const Node& anchor, Target target) {
  static const std::vector<TargetRules> of_kept_masks = [] {
    std::vector<TargetRules> all;
    for (const std::string& name : target_names()) all.push_back(rules_of(*target_named(name)));
    for (TargetRules& rules : all) rules.tells_lowest_from_infinity |= rules.family == OperatorFamily::kOnnx;
    return all;
  }();
  return anchor.is("Attention") ? of_kept_masks[static_cast<size_t>(target)] : rules_of(target);
}

class Emitter {
 public:
  Emitter(const Match& match, MatchContext& context, const SharedNodes& shared, const EmitOptions& options)
      : match_(match),
        context_(context),
        shared_(shared),
        accepted_(options.accepted),
        target_(rules_beside(*match.anchor, options.target)) {}

  /// The edit stands before ANCHOR; ELSEWHERE: where it would have to stand, if it stands too low or too high.
  Matched<Emission> write(const WritingPlan& plan, Further further_wanted, Node& anchor, Node** elsewhere) const;
  /// As write(), where the model's order of nodes allows it.
  Matched<Emission> write_in_order(const WritingPlan& plan, Further further_wanted) const;

 private:
  const Match& match_;
  MatchContext& context_;
  const SharedNodes& shared_;
  AcceptedAssumptions accepted_;
  const TargetRules& target_;
};

Matched<Emission> Emitter::write_in_order(const WritingPlan& plan, Further further_wanted) const {
  constexpr int kMaxAnchors = 4;
  Node* anchor = match_.insert_before;
  for (int tried = 1;; ++tried) {
    Node* elsewhere = nullptr;
    auto emission = write(plan, further_wanted, *anchor, &elsewhere);
    if (emission || !elsewhere || tried == kMaxAnchors) return emission;
    anchor = elsewhere;
  }
}

Matched<Emission> Emitter::write(const WritingPlan& plan, Further further_wanted, Node& anchor, Node** elsewhere) const {
  const Sdpa& sdpa = match_.sdpa;
  Emission emission{Edit(context_.view, anchor),
                    plan.form == IoForm::k3d ? "3d" : "4d",
                    plan.kv_group,
                    plan.has_past,
                    nullptr,
                    sdpa.scale * plan.q->scale * plan.k->scale,
                    sdpa.preconditions,
                    {sdpa.batch, sdpa.query_heads, plan.q->axes.size(Role::kRow), key_rows(plan, sdpa, context_.facts)},
                    {}};
  GraphBuilder build(emission.edit, shared_, match_.anchor->label());
  Site site{match_, sdpa, context_.facts, target_, build, SizeSource(build, context_.facts), emission.scores, {}};
  const AttentionOperator& written = operator_for(plan, sdpa, target_);
  site.says = written.says(plan, site);
  site.guards_nan = writes_nan_guard(sdpa, accepted_, site);
  ATTN_OPT_DONE(written.check(plan, site));
  ATTN_OPT_MATCH(Operands operands, write_operands(plan, emission.scale, site));
  if (plan.has_past) site.sizes.add(*plan.k->past, context_.facts.shape(*plan.k->past).known());
  const Causality causality = causality_of(terms_that_count(site), plan, accepted_, site);
  emission.target = &target_;
  emission.is_causal = causality.rules.is_causal;
  emission.mask_reading = causality.reading;
  ATTN_OPT_MATCH(Value * mask, join_mask(causality.masks, plan, operands, site));
  const FurtherOutputs further = further_outputs(plan, further_wanted, site);
  declare_inputs(plan, operands, further, site);
  hide_query_sizes(plan, further, operands, site);
  ATTN_OPT_DONE(written.check_masks(plan, causality, site));
  Value* lengths = nullptr;
  if (causality.rules.lengths) {
    ATTN_OPT_MATCH(lengths, write_lengths(*causality.rules.lengths, site));
  }
  const NodeParts parts{plan, operands, mask, lengths, causality.rules, further};
  ATTN_OPT_MATCH(emission.attention, written.write(parts, site));
  if (!emission.attention->is("Attention")) emission.attention_inputs = inputs_of(parts);
  ATTN_OPT_MATCH(Value * y, written.finish(*emission.attention, parts, site));
  if (y != emission.attention->output(0)) enter_row_guard(emission.preconditions);
  if (emission.is_causal && emission.attention->op() == "GroupQueryAttention" && match_.anchor->op() != "GroupQueryAttention")
    enter_unseen_keys(sdpa, emission.preconditions);
  if (site.guards_nan) {
    y = with_nan_zero(y, site);
    enter_nan_guard(emission.preconditions);
  }
  ATTN_OPT_DONE(take_over_outputs(plan, further, *emission.attention, *y, site));
  ATTN_OPT_DONE(assume_not_empty(plan, site));
  ATTN_OPT_DONE(complete(emission, site, elsewhere));
  return emission;
}

/// True if WRITTEN gives scores or probabilities of SDPA, which nothing reads but nodes that it removes.
bool gives_in_vain(const Emission& written, const Sdpa& sdpa) {
  const auto is_in_vain = [&](const std::optional<OutputView>& view) {
    if (!view || view->value->is_output) return false;
    const auto& takeovers = written.edit.takeovers();
    const bool is_given = std::ranges::find(takeovers, view->value, &Edit::Takeover::existing) != takeovers.end();
    return is_given && std::ranges::all_of(view->value->uses, [&](const Use& use) {
             return use.node && std::ranges::find(written.removed, use.node) != written.removed.end();
           });
  };
  return is_in_vain(sdpa.scores_output) || is_in_vain(sdpa.probabilities);
}

/// MATCH as the operators of OPTIONS' target.
Matched<Emission> emit_for_target(const Match& match, MatchContext& context, const SharedNodes& shared,
                                  const EmitOptions& options) {
  const Sdpa& sdpa = match.sdpa;
  auto with_peels = [&](Miss miss) {
    miss.peeled = match.peeled;
    return tl::unexpected<Miss>(std::move(miss));
  };
  for (const ScoreTerm& term : sdpa.terms)
    if (term.value->removed) return with_peels({"emit.order", match.anchor, "a mask is made by an attention above", {}});
  if (auto untouched = check_anchor(match, rules_of(options.target)); !untouched)
    return with_peels(std::move(untouched.error()));
  if (!is_supported(sdpa.type, rules_of(options.target)))
    return with_peels({"target.dtype", match.anchor, unsupported(sdpa.type), {}});
  const Emitter emitter(match, context, shared, options);
  std::optional<Emission> written;
  Miss reason;
  const auto write = [&](const WritingPlan& plan) {
    for (const Further wanted : {Further::kAll, Further::kScores, Further::kNone}) {
      if (wanted == Further::kScores && !plan.has_past) continue;
      auto emission = emitter.write_in_order(plan, wanted);
      if (emission) {
        const bool is_leaner = gives_in_vain(*emission, sdpa);
        const Further less = wanted == Further::kScores ? Further::kNone : Further::kPresents;
        auto leaner = is_leaner ? emitter.write_in_order(plan, less) : tl::unexpected<Miss>(Miss());
        written.emplace(leaner ? *std::move(leaner) : *std::move(emission));
        return true;
      }
      if (reason.id.empty() || emission.error().id == "emit.order") reason = std::move(emission.error());
    }
    return false;
  };
  auto planned = try_plans(sdpa, options, context.facts, write);
  if (written) return *std::move(written);
  return with_peels(std::move(planned ? reason : planned.error()));
}

/// The class in which OP is faster than Attention at what WRITTEN says, whose operator is given nothing beside Q, K and V; null
/// if it is in none.
const FasterOperator* faster_than_written(std::string_view op, const Emission& written) {
  const std::vector<Value*> given = written.given();
  const auto beside = given.begin() + std::min<ptrdiff_t>(3, std::ssize(given));
  if (std::any_of(beside, given.end(), [](const Value* value) { return value; })) return nullptr;
  return faster_at(op, written.is_causal, written.scores[2], written.scores[3]);
}

/// MATCH as the operators of OTHER, if the runtime is faster with them.
std::optional<Emission> emit_faster(const Match& match, MatchContext& context, const SharedNodes& shared, EmitOptions options,
                                    Target other) {
  options.target = other;
  auto emission = emit_for_target(match, context, shared, options);
  if (!emission || !faster_than_written(emission->attention->op(), *emission)) return std::nullopt;
  const auto is_accepted = [&](const Precondition& condition) { return options.accepted.accepts(condition); };
  if (!std::ranges::all_of(emission->preconditions, is_accepted)) return std::nullopt;
  return *std::move(emission);
}

}  // namespace

Matched<Emission> emit_attention(const Match& match, MatchContext& context, const SharedNodes& shared,
                                 const EmitOptions& options) {
  if (options.stage == Stage::kFunctions) return emit_local_function(match, context, shared);
  const std::optional<Target> other = rules_of(options.target).faster;
  if (other && match.sdpa.products > 1)
    return missed("target.slower", match.anchor, several_products_in_words(match.sdpa.products));
  if (!other || !may_have_faster_operator(match.sdpa)) return emit_for_target(match, context, shared, options);
  if (auto faster = emit_faster(match, context, shared, options, *other)) return *std::move(faster);
  auto emission = emit_for_target(match, context, shared, options);
  if (!emission || match.anchor->domain() != "com.microsoft") return emission;
  if (const FasterOperator* slower_than = faster_than_written(match.anchor->op(), *emission))
    return missed("target.slower", match.anchor, in_words(*slower_than, emission->scores[2], emission->scores[3]));
  return emission;
}

}  // namespace attn_opt
