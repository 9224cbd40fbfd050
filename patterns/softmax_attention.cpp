// Attention written around a softmax.
//
//   before   Q ── scale ─┐                                       after   Q ─┐
//                        MatMul ─ scale, softcap, bias, mask ─ …         K ─┤
//   K ─ T ── scale ──────┘                                               V ─┼─ Attention ─ Y
//   … ─ Softmax ─ guard, cast ─┐                                      mask ─┘
//                              MatMul ─ transpose, reshape ─ Y
//   V ─────────────────────────┘
//
// Anchored at the softmax: down to the product with V, up to that of Q and K, then up from Q, K and V. Where several products
// read the probabilities, each is an attention of the same scores; all but the first are anchors themselves.
#include <algorithm>
#include <cmath>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"
#include "attn_opt/pattern.h"
#include "patterns/given_floats.h"
#include "patterns/layout_checks.h"
#include "patterns/leading_split.h"
#include "patterns/operands/broadcast_operands.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/preconditions.h"
#include "patterns/probabilities/guard_meaning.h"
#include "patterns/probabilities/kept_scores.h"
#include "patterns/probabilities/linear_steps.h"
#include "patterns/probabilities/padded_values.h"
#include "patterns/probabilities/picked_softmax.h"
#include "patterns/probabilities/probability_walk.h"
#include "patterns/probabilities/read_outputs.h"
#include "patterns/probabilities/steps_at_product.h"
#include "patterns/products/further_product.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/scores/causal_terms.h"
#include "patterns/scores/fills.h"
#include "patterns/scores/score_walk.h"
#include "patterns/softmax/computed_type.h"
#include "patterns/softmax/divided_within.h"
#include "patterns/softmax/key_blocks.h"
#include "patterns/softmax/late_division.h"
#include "patterns/softmax/merged_keys.h"
#include "patterns/softmax/sink_gate.h"
#include "patterns/softmax/softmax_anchor.h"
#include "patterns/softmax/softmax_assumptions.h"
#include "patterns/softmax/softmax_of_parts.h"
#include "src/io/number_text.h"
#include "src/match/cut_range.h"

namespace attn_opt {
namespace {

/// A product with a scale and a bias of its own, in the terms of the walk that ended at it.
Matched<void> add_what_product_adds(Reading& reading) {
  const ScoreProduct& product = reading.score_product;
  ScoreWalk& scores = reading.scores;
  if (product.addend) {
    Node* node = scores.value->producer;
    if (scores.softcap != 0) return missed("scores.bias-below-softcap", node, node->op(), scores.peeled);
    if (!scores.tensor_scales.empty()) return missed("scores.bias-below-tensor-scale", node, node->op(), scores.peeled);
    scores.terms.push_back({ScoreTerm::Kind::kBias, product.addend, product.addend_scale * scores.scale, 0, product.scores});
    scores.peeled.push_back(node->op() + "(bias)");
  }
  scores.scale *= product.scale;
  return {};
}

/// The layout that OUTPUT, the softmax's result, must have for what PRODUCT makes of it to be attention. Miss
/// "probabilities.transpose": its axes are moved and regrouped before that takes them from other places.
Matched<ScoreLayout> layout_at_softmax(const ProbabilityWalk& walk, const ScoreLayout& at_product, const Value& output,
                                       MatchContext& context) {
  const bool swaps = at_product.swaps_last_two();
  ScoreLayout layout = at_product;
  const MaybeShape shape = context.facts.shape(output);
  if (at_product.order.empty() || swaps) {
    const size_t rank = walk.perm.empty() && shape ? shape->size() : walk.perm.size();
    layout = swaps == walk.transposed || !shape ? ScoreLayout() : ScoreLayout::keys_by_queries(rank);
    layout.head_axes = at_product.head_axes;
  } else if (walk.transposed) {
    layout = at_product.swapped(context.facts.shape(*walk.probabilities).known().size());
  }
  if (!shape) return layout;
  const auto is_moved = [&](int64_t axis) { return axis == kNoAxis || axis < std::ssize(walk.perm); };
  if (!walk.perm.empty() && !std::ranges::all_of(layout.order, is_moved))
    return missed("probabilities.transpose", walk.product, "axes that are moved and then regrouped", walk.peeled);
  if (!walk.perm.empty()) return layout.before_moves(walk.perm, shape->size());
  const bool has_unit_axes = !walk.transposed && !layout.order.empty() && !layout.swaps_last_two();
  const auto origins = has_unit_axes ? unit_moves(*shape, context.facts.shape(*walk.probabilities).known()) : std::nullopt;
  return origins ? layout.before_moves(*origins, shape->size()) : layout;
}

/// Enters in SOFTMAX the sink of GATE, behind PRODUCT.
void gate_by(const SinkGate& gate, SoftmaxSite& softmax, const Node& product) {
  softmax.sinks = {gate.column};
  softmax.product = &product;
  softmax.moved = gate.gated;
  softmax.divided = gate.made;
  if (gate.leaves_exp_range) softmax.exponent_offset = softmax.exponent_offset.value_or(0);
}

/// WALK leads from SOFTMAX to the product, which takes no rows that a guard behind it makes 0.
Matched<Reading> read_site(SoftmaxSite& softmax, ProbabilityWalk walk, MatchContext& context) {
  Reading reading;
  reading.probabilities = std::move(walk);
  const ProbabilityWalk& probabilities = reading.probabilities;
  ATTN_OPT_DONE(take_kept_scores(probabilities, softmax, context));
  auto product = value_product(*probabilities.product, *probabilities.probabilities, context);
  if (const auto gate = product ? sink_gate(softmax, probabilities, *product, context) : std::nullopt)
    gate_by(*gate, softmax, *probabilities.last_node());
  ScoreLayout layout;
  if (product) {
    ATTN_OPT_MATCH(layout, layout_at_softmax(probabilities, product->probabilities, *softmax.output, context));
  }
  ATTN_OPT_DONE(check_softmax_axis(softmax, layout, context));
  reading.softmax_layout = layout;
  if (probabilities.row_split && !layout.order.empty())
    return missed("probabilities.reshape", probabilities.product, "rows regrouped in front of a product of keys by queries",
                  probabilities.peeled);
  ATTN_OPT_MATCH(reading.scores, walk_scores(*softmax.input, softmax.weights, layout,
                                             {probabilities.sinks, probabilities.row_split, softmax.sinks,
                                              softmax.after_lowering, softmax.drops_sinks},
                                             context));
  ATTN_OPT_MATCH(reading.value_product, std::move(product));
  reading.probabilities.values_factor *= std::max(1.0, std::abs(reading.value_product.factor));
  ATTN_OPT_DONE(part_leading_axes(reading, context));
  take_summed(reading, softmax, context.facts);
  ATTN_OPT_DONE(divide_behind_product(softmax, reading, context));
  ATTN_OPT_MATCH(reading.score_product, score_product(*reading.scores.value->producer, reading.scores.layout, context));
  const bool keeps_leading_axes = reading.scores.frames.empty() && !probabilities.regrouped && probabilities.perm.empty();
  if (keeps_leading_axes && join_head_axes(reading.score_product, reading.value_product, context.facts))
    reading.scores.layout.head_axes = 2;
  ATTN_OPT_DONE(add_what_product_adds(reading));
  ATTN_OPT_MATCH(reading.guard, read_guard(reading, layout, softmax, context));
  ATTN_OPT_MATCH(reading.value_product.value, stepped_values(reading, context));
  return reading;
}

/// True if NODE multiplies what its reader adds up to a product.
bool is_added_up(const Node& node, Facts& facts) {
  return node.is("Mul") && std::ranges::any_of(readers_of(*node.outputs[0], facts).all, [&](const Reader& reader) {
           return reader.node && factors_added_up(*reader.node, facts) == &node;
         });
}

/// True if what reads EXPONENTIALS makes a softmax of them, in front of any product.
bool is_divided_ahead(Value& exponentials, MatchContext& context) {
  return std::ranges::any_of(readers_of(exponentials, context.facts).all, [&](const Reader& reader) {
    const bool may_divide = reader.node && reader.node->graph == exponentials.graph && may_be_softmax(*reader.node);
    const auto softmax = may_divide ? multiple_of_softmax_at(*reader.node, context) : std::nullopt;
    return softmax && !softmax->divided;
  });
}

/// Exponentials of scores that a product reads are worth a line even where no softmax is read.
tl::unexpected<Miss> no_softmax(Node& anchor, MatchContext& context) {
  const Node* unread = unread_exponentials(anchor, context);
  if (!unread) return missed(std::string(kNotAttention), &anchor, "");
  if (!context.facts.shape(*anchor.outputs[0]))
    return missed("softmax.unknown-rank", unread, "the rank of '" + anchor.outputs[0]->name + "' is not known");
  return missed("softmax.unread", unread,
                "no division of '" + anchor.label() + "' (" + anchor.op() + " of scores) by its own sums");
}

class SoftmaxAttention : public Pattern {
 public:
  std::string_view name() const override { return "softmax_attention"; }
  std::string_view summary() const override {
    return "attention around a softmax: any order of scale, softcap, bias and mask; repeated heads; KV caches";
  }
  bool is_anchor(const Node& node) const override {
    return may_be_softmax(node) || may_make_product(node) || (node.is("Split") && may_pick_of_softmax(node));
  }
  size_t parts(const Node& anchor) const override { return anchor.is("Split") ? anchor.outputs.size() : 1; }

  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    auto part = cuts_out(anchor) ? match_part(anchor.outputs[context.part], context) : std::nullopt;
    if (anchor.is("Split"))  // what is in its way is told at the softmax
      return part && *part ? *std::move(part) : missed(std::string(kNotAttention), &anchor, "");
    if (part) return *std::move(part);
    auto match = match_with_given_floats(anchor, context, [&] { return match_whole(anchor, context); });
    const Node* split = match ? nullptr : match.error().node;
    if (!split || !split->is("Split")) return match;
    // What is in the way of the softmax as a whole may be none to parts of it.
    for (Value* one : split->outputs)
      if (auto of_part = match_part(one, context); of_part && !*of_part && of_part->error().id != kNotAttention)
        return *std::move(of_part);
    return match;
  }

 private:
  static Matched<Match> match_whole(Node& anchor, MatchContext& context) {
    if (may_make_product(anchor) && !anchor.is("Einsum")) return match_further_product(anchor, context);
    if (is_product(anchor))
      if (auto further = match_further_product(anchor, context); further || further.error().id != kNotAttention) return further;
    Value& made = *anchor.outputs[0];
    const Node* copied = canonical(made, context.facts).producer;
    if (copied && copied != &anchor && (may_be_softmax(*copied) || cuts_out(anchor)))
      return missed(std::string(kNotAttention), &anchor, "");  // it is told there
    auto softmax = multiple_of_softmax_at(anchor, context);
    const bool is_of_product = may_copy_product(made, context.facts) || is_added_up(anchor, context.facts);
    auto blocks = softmax || is_of_product ? std::nullopt : key_blocks(made, false, context);
    const Node* maker = blocks ? canonical(*blocks->made, context.facts).producer : &anchor;
    const bool is_one_block = blocks && blocks->softmax.key_blocks.empty();
    if ((maker && maker != &anchor && may_be_softmax(*maker)) || (is_one_block && is_divided_ahead(made, context)))
      return missed(std::string(kNotAttention), &anchor, "");  // it is told there
    if (!softmax && !blocks) blocks = merged_keys(anchor, context);
    if (!softmax && !blocks) blocks = anchor.is("Concat") ? product_in_parts(anchor, context) : divided_within(anchor, context);
    if ((blocks || (softmax && softmax->divided)) && is_part_of_product(*anchor.outputs[0], match_blocks, context))
      return missed(std::string(kNotAttention), &anchor, "");  // it is told at what joins the parts
    if (blocks) return match_blocks(anchor, *blocks, context);
    return softmax ? match_softmax(anchor, *softmax, context) : no_softmax(anchor, context);
  }

  /// PART, perhaps null, of probabilities that are no attention as a whole; nullopt if it is none of any, or nothing reads it.
  static std::optional<Matched<Match>> match_part(Value* part, MatchContext& context) {
    const bool is_read = part && !part->uses.empty() && &canonical(*part, context.facts) == part;
    auto softmax = is_read ? picked_softmax(*part, context) : std::nullopt;
    if (!softmax) return std::nullopt;
    Node& anchor = *part->producer;
    auto match = match_softmax(anchor, *softmax, context);
    const bool is_told_elsewhere = match && may_pick_of_softmax(anchor) &&
                                   (match_whole(*picked_source(anchor), context) ||
                                    is_part_of_product(*match->insert_before->outputs[0], match_blocks, context));
    return is_told_elsewhere ? missed(std::string(kNotAttention), &anchor, "") : std::move(match);
  }

  /// SOFTMAX, which ANCHOR makes.
  static Matched<Match> match_softmax(Node& anchor, SoftmaxSite& softmax, MatchContext& context) {
    if (weighs_choices(*softmax.input, context.facts)) return missed(std::string(kNotAttention), &anchor, "");
    const SoftmaxSite own = softmax;
    auto walk = walk_probabilities(softmax, softmax.product, context);
    const bool joins_rows = walk && walk->row_split, are_read = walk && !walk->escaping.empty();
    auto match = walk ? match_product(anchor, softmax, *std::move(walk), context) : tl::unexpected<Miss>(walk.error());
    if (!match && match.error().id == "softmax.divided-late")
      if (auto whole = match_one_block(anchor, *softmax.output, context)) return whole;
    // Masks of queries and heads that are taken for queries are repeated, and their probabilities lie otherwise.
    const auto may_be_better = [&](const Sdpa& sdpa) {
      return joins_rows && (!sdpa.terms.empty() || sdpa.is_causal || (are_read && !sdpa.probabilities));
    };
    if (match ? !may_be_better(match->sdpa) : match.error().id == kNotAttention) return match;
    return match_parted(anchor, own, std::move(match), context);
  }

  /// SOFTMAX with each axis of what ANCHOR makes cut into factors that move as one; MATCH, perhaps a miss, if that is no
  /// attention.
  static Matched<Match> match_parted(Node& anchor, SoftmaxSite softmax, Matched<Match> match, MatchContext& context) {
    auto walk = walk_probabilities(softmax, nullptr, context, true);
    auto parted = walk && walk->summed ? match_walk(anchor, softmax, *std::move(walk), context) : tl::unexpected<Miss>(Miss());
    return parted ? std::move(parted) : std::move(match);
  }

  static Matched<Match> match_further_product(Node& product, MatchContext& context) {
    auto softmax = makes_product(product, context.facts) ? softmax_of_further_product(product, context) : std::nullopt;
    if (!softmax) return missed(std::string(kNotAttention), &product, "");
    ATTN_OPT_MATCH(ProbabilityWalk walk, walk_probabilities(*softmax, &product, context));
    return match_product(product, *softmax, std::move(walk), context);
  }

  /// EXPONENTIALS as those of one block of all keys, whose sums divide wherever they lie.
  static Matched<Match> match_one_block(Node& anchor, Value& exponentials, MatchContext& context) {
    auto blocks = key_blocks(exponentials, false, context);
    return blocks ? match_blocks(anchor, *blocks, context) : tl::unexpected<Miss>(Miss());
  }

  static Matched<Match> match_blocks(Node& anchor, KeyBlocks& blocks, MatchContext& context) {
    return match_walk(anchor, blocks.softmax, walk_of(blocks), context);
  }

  /// WALK leads from SOFTMAX to one of its products.
  static Matched<Match> match_product(Node& anchor, SoftmaxSite& softmax, ProbabilityWalk walk, MatchContext& context) {
    if (auto blocks = key_blocks(softmax.divided ? *softmax.divided : *walk.product->outputs[0], true, context))
      if (auto match = match_blocks(anchor, *blocks, context)) return match;
    auto cut = without_zero_rows(walk, softmax, context);
    if (!cut) return match_walk(anchor, softmax, std::move(walk), context);
    SoftmaxSite as_cut = softmax;
    auto match = match_walk(anchor, softmax, std::move(walk), context);
    auto match_of_cut = match ? tl::unexpected<Miss>(Miss()) : match_walk(anchor, as_cut, *std::move(cut), context);
    return match_of_cut ? std::move(match_of_cut) : std::move(match);
  }

  static Matched<Match> match_walk(Node& anchor, SoftmaxSite& softmax, ProbabilityWalk walk, MatchContext& context) {
    ATTN_OPT_MATCH(const Reading reading, read_site(softmax, std::move(walk), context));
    Match match;
    match.anchor = &anchor;
    match.insert_before = reading.probabilities.last_node();
    match.peeled = reading.scores.peeled;
    match.peeled.insert(match.peeled.end(), reading.probabilities.peeled.begin(), reading.probabilities.peeled.end());
    ATTN_OPT_MATCH(match.sdpa, describe(reading, softmax, context));
    ATTN_OPT_DONE(check_masks(match.sdpa, context));
    ATTN_OPT_DONE(check_lowering(softmax, match.sdpa, context.facts));
    return match;
  }

  static Matched<Sdpa> describe(const Reading& reading, const SoftmaxSite& softmax, MatchContext& context) {
    Sdpa sdpa;
    const auto split = leading_split(reading, context);
    const auto operand = [&](const ProductSide& side) {
      return walk_operand({side.value, axes_of(side, split, context)}, context);
    };
    Node& reader = *reading.scores.value->producer;
    const ScoreProduct& scores = reading.score_product;
    const ProductSide query = broadcast_query(scores.query, scores.key, reader, context);
    sdpa.q = operand(query);
    ProductSide key = broadcast_leading(scores.key, query, reader, context);
    ProductSide value = broadcast_leading(reading.value_product.value, query, *reading.probabilities.product, context);
    sdpa.k = operand(key);
    sdpa.v = operand(value);
    const auto heads = [](const Operand& side) { return side.views.back().axes.size(Role::kHead); };
    if (heads(sdpa.k) != heads(sdpa.v)) {
      broadcast_heads(key, value, query, reading.value_product.output, reader, context);
      sdpa.k = operand(key);
      sdpa.v = operand(value);
    }
    const ProductSide& output = reading.value_product.output;
    const AxisMap made = axes_of(output, split, context);
    ATTN_OPT_DONE(check_leading_sizes(made, split, reading));
    sdpa.outputs = walk_output(*output.value, made, context);
    if (softmax.moved) ATTN_OPT_DONE(enter_moved_outputs(softmax, sdpa, context));
    ATTN_OPT_DONE(add_output_steps(reading, sdpa, context));
    sdpa.outputs.front().value = &behind_added(*sdpa.outputs.front().value, sdpa.output_steps);
    if (!sdpa.output_steps.empty()) sdpa.outputs.resize(1);
    sdpa.type = context.facts.type(*reading.score_product.query.value);
    set_leading_sizes(reading, split, sdpa);
    sdpa.scale = reading.scores.scale;
    sdpa.softcap = reading.scores.softcap;
    sdpa.tensor_scales = reading.scores.tensor_scales;
    sdpa.terms.assign(reading.scores.terms.rbegin(), reading.scores.terms.rend());
    sdpa.clamp = reading.scores.clamp;
    sdpa.sums_otherwise = reading.scores.sums_otherwise;
    const auto& sinks = reading.scores.sinks;
    if (sinks) ATTN_OPT_DONE(add_sinks(*sinks, sdpa, reader, context));
    read_causal_terms(sdpa, context.facts);
    sdpa.type = computed_type(sdpa.type, sdpa.terms, context.facts);
    const DataType scores_type = context.facts.type(*softmax.input);
    if (is_floating(scores_type) && scores_type != sdpa.type) sdpa.softmax_precision = scores_type;
    sdpa.narrowest_scores = reading.scores.narrowest;
    sdpa.exponent_offset = softmax.exponent_offset;
    sdpa.exponent_power = softmax.exponent_power;
    sdpa.exponent_range = softmax.exponent_range;
    if (reading.scores.leaves_exp_range) sdpa.exponent_offset = sdpa.exponent_offset.value_or(0);
    sdpa.guarded = reading.guard != GuardMeaning::kNothing;
    sdpa.hides_nan = reading.guard == GuardMeaning::kScores;
    sdpa.less_largest_of_all = softmax.less_largest_of_all || reading.scores.lowered_by_largest_of_all;
    sdpa.products = std::max<size_t>(1, reading.probabilities.products.size());
    if (!is_divided_late(softmax, reading.probabilities))
      sdpa.probabilities = readable_probabilities(reading, split, sdpa.batch, sdpa.query_heads, context);
    if (!sinks) set_scores_output(reading, softmax, split, context, sdpa);
    const bool lowers_rows = !softmax.is_unlowered || reading.scores.lowered;
    const auto own_fill = sinks ? std::nullopt : deepen_fills(sdpa, lowers_rows, context.facts);
    sdpa.preconditions = preconditions_of(sdpa, context);
    assume_of_guard(reading, sdpa);
    assume_of_steps(reading.probabilities, sdpa, context.facts);
    if (sinks) assume_of_sinks(*sinks, sdpa, context);
    assume_of_softmax(softmax, reading.scores, sdpa, context.facts);
    if (const auto fill = own_fill ? own_fill : fill_that_scores_stay_above(reading))
      assume("scores-above-fill", "masked keys have " + number_text(*fill) + " in the softmax", sdpa);
    return sdpa;
  }
};

}  // namespace

ATTN_OPT_REGISTER_PATTERN(SoftmaxAttention)

}  // namespace attn_opt
