#include "patterns/scores/score_walk.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/linear_function.h"
#include "patterns/products/chosen_columns.h"
#include "patterns/products/products.h"
#include "patterns/scores/heads_in_rows.h"
#include "patterns/scores/merged_axes.h"
#include "patterns/scores/peel_form.h"
#include "patterns/scores/peel_steps.h"
#include "patterns/scores/sink_peels.h"
#include "patterns/scores/undone_moves.h"

namespace attn_opt {
namespace {

/// True if more than one node, or the graph's caller, reads the contents of VALUE.
bool is_read_elsewhere(const Value& value) {
  const auto reads_contents = [](const Use& use) {
    if (!use.node) return true;
    return !use.node->is("Shape") && !use.node->is("Size") && !(use.node->is("CastLike") && use.input == 1);
  };
  size_t reads = 0;
  std::set<const Node*> owners;  // branches of one If are one reader
  for (const Use& use : value.uses) {
    if (!reads_contents(use)) continue;
    const Node* node = value.graph->holder_of(*use.node);
    if (node == use.node || owners.insert(node).second) ++reads;
  }
  return value.is_output || reads > 1;
}

/// WALK as it goes on where what splits its rows only adds axes of size 1: these are no axes of the scores then.
Matched<ScoreWalk> without_unit_split(ScoreWalk walk, Node& node, MatchContext& context) {
  const auto origins = unit_moves(walk.split->parts, walk.split->merged);
  if (!origins || !walk.layout.order.empty()) return walk;
  ATTN_OPT_MATCH(walk, settled(std::move(walk), context));
  ATTN_OPT_DONE(merge_terms(*walk.split, walk.terms, walk.sinks, node, context));
  walk.layout = walk.layout.before_moves(*origins, walk.split->parts.size());
  walk.split.reset();
  return walk;
}

/// What NODE, a product, makes with the rows of SPLIT, which its other axes hold apart or for one; null if it does not.
Value* product_of_rows(Node& node, const ScoreSplit& split, MatchContext& context) {
  if (Value* apart = product_with_heads_apart(node, split, context)) return apart;
  const auto runs = split.keeps_keys() ? runs_merged(split.parts, split.merged) : std::nullopt;
  return runs && runs->back().count == 1 ? with_axes_merged(*node.outputs[0], *runs, split.merged, node, context) : nullptr;
}

/// WALK as it goes on above NODE, a product, with the rows of its split.
Matched<ScoreWalk> with_rows_of_split(ScoreWalk walk, Node& node, MatchContext& context) {
  Value* apart = walk.layout.order.empty() ? product_of_rows(node, *walk.split, context) : nullptr;
  if (!apart) return walk;
  ATTN_OPT_MATCH(walk, settled(std::move(walk), context));
  ATTN_OPT_DONE(merge_terms(*walk.split, walk.terms, walk.sinks, node, context));
  walk.frames.push_back(walk.split->merged);
  walk.value = apart;
  walk.split.reset();
  return walk;
}

/// What FORM multiplies its core with; 0 if that differs by cases.
double scale_of(const ScoreForm& form) {
  double scale = 0;
  for (const ScoreCase& one : form) {
    if (one.scale == 0) continue;
    if (scale != 0 && one.scale != scale) return 0;
    scale = one.scale;
  }
  return scale;
}

/// Of VALUE and the copies between it and SEEN, what it copies, the one nearest to SEEN that others read.
Value* read_copy(Value& value, Value& seen, Facts& facts) {
  const auto copies_seen = [&](Value* copy) { return copy && &canonical(*copy, facts) == &seen; };
  Value* found = nullptr;
  for (Value* copy = &value; copy;) {
    // What stands between nodes that undo each other is no copy.
    if (copies_seen(copy) && is_read_elsewhere(*copy)) found = copy;
    if (copy == &seen || !copy->producer || copy->producer->inputs.empty()) break;
    const auto& inputs = copy->producer->inputs;
    const auto copied = std::ranges::find_if(inputs, copies_seen);
    copy = copied == inputs.end() ? inputs[0] : *copied;
  }
  return found;
}

// Bounds the ways tried for one softmax: an Add of two Adds of two Adds ... can be read in exponentially many.
constexpr int kMaxPeels = 512;

class ScoreWalker {
 public:
  explicit ScoreWalker(MatchContext& context) : context_(context) {}

  Matched<ScoreWalk> walk(ScoreWalk walk) {
    for (;;) {
      Value& seen = canonical(*walk.value, context_.facts);
      note_readers(walk, seen);
      walk.value = &seen;
      note_type(walk);
      Node* node = walk.value->producer;
      if (!node) return missed("scores.input", nullptr, "'" + walk.value->name + "' is not computed", walk.peeled);
      if (!walk.reader) walk.reader = node;
      const bool is_product = makes_product(*node, context_.facts);
      if (const auto chosen = is_product ? chosen_columns(*node, context_.facts) : std::nullopt) {
        if (Value* value = product_above(*chosen, *node)) {
          ATTN_OPT_MATCH(walk, with_form(walk, *value, chosen->factor, 0, "MatMul(columns)"));
          continue;
        }
      }
      if (is_product && walk.split) {
        ATTN_OPT_MATCH(walk, without_unit_split(std::move(walk), *node, context_));
      }
      if (is_product && walk.split) {
        ATTN_OPT_MATCH(walk, with_rows_of_split(std::move(walk), *node, context_));
        if (!walk.split) continue;
      }
      if (is_product && !walk.split) {
        // What is no Q K^T may be a bias of the scores that another operand of an addition holds.
        ATTN_OPT_DONE(score_product(*node, walk.layout, context_));
        ATTN_OPT_MATCH(walk, settled(std::move(walk), context_));
        if (walk.cut_off && !walk.cut_off->is_none())
          return missed("scores.sinks", node, "no sinks are what is cut off the probabilities", walk.peeled);
        return walk;
      }
      if (node->is("DequantizeLinear"))
        return missed("scores.quantized", node, "'" + walk.value->name + "' was quantized", walk.peeled);
      if (const auto linear = linear_function_in(*walk.value, context_.facts)) {
        // A number that is added to all scores of a row is one that the softmax does not see.
        const bool is_seen = walk.form.size() > 1 || walk.sinks || walk.changes_row_numbers();
        const double number = is_seen ? linear->number : 0;
        ATTN_OPT_MATCH(walk, with_form(walk, *linear->value, linear->factor, number, node->op() + "(linear)"));
        if (!is_seen && linear->number != 0) walk.lowered = true;
        if (walk.lowered) walk.read.clear();
        continue;
      }
      const auto& peels = score_peels();
      const auto row = std::ranges::find_if(peels, [&](const ScorePeel& peel) { return node->is(peel.op); });
      if (row == peels.end()) return missed("scores.operator", node, node->op(), walk.peeled);
      if (++peels_ > kMaxPeels) return missed("scores.too-many-ways", node, "gave up", walk.peeled);
      auto ways = row->peel(*node, walk, context_);
      if (has(*node, Trait::kKeepsAll)) return moved(*node, walk, std::move(ways));
      if (!ways) return tl::unexpected<Miss>(ways.error());
      if (ways->size() > 1) return first_of(*ways);
      walk = std::move(ways->front());
    }
  }

 private:
  void note_type(ScoreWalk& walk) const {
    const DataType type = context_.facts.type(*walk.value);
    const bool is_narrower = largest_finite(type) < largest_finite(walk.narrowest);
    if (is_floating(type) && (walk.narrowest == onnx::TensorProto::UNDEFINED || is_narrower)) walk.narrowest = type;
  }

  void note_readers(ScoreWalk& walk, Value& seen) const {
    if (&seen == walk.lowered_value) return;
    Value* value = read_copy(*walk.value, seen, context_.facts);
    if (value)
      walk.read.push_back({value, walk.scale * scale_of(walk.form), walk.softcap, walk.layout.order.empty(),
                           walk.tensor_scales.size(), walk.changes});
  }

  /// What NODE chooses of scores; null if CHOSEN is of what no product leads to, but is multiplied by itself.
  Value* product_above(const ChosenColumns& chosen, Node& node) {
    const bool are_scores = may_be_scores(*chosen.source, [](const Node&) { return true; }, context_.facts);
    return are_scores ? chosen_value(chosen, node, context_) : nullptr;
  }

  /// WALK gone on to VALUE through what is called WHAT, which multiplies that with FACTOR and adds NUMBER.
  Matched<ScoreWalk> with_form(const ScoreWalk& walk, Value& value, double factor, double number, const std::string& what) {
    ScoreForm own = sum(product(number_form(factor), core_form()).value(), number_form(number), 1).value();
    ATTN_OPT_DONE(place(own, *walk.value->producer, walk, context_));
    auto form = substituted(walk.form, own);
    if (!form)
      return missed("scores.too-many-ways", walk.value->producer, "scores in more cases than are followed", walk.peeled);
    ScoreWalk next = step(walk, value, what);
    next.form = *std::move(form);
    next.makes_nan_of_infinity = true;
    return next;
  }

  /// WALK on by WAYS, which look through NODE, a move; where moves cannot be followed, as if they were undone.
  Matched<ScoreWalk> moved(Node& node, const ScoreWalk& walk, Ways ways) {
    auto found = !ways               ? tl::unexpected<Miss>(ways.error())
                 : ways->size() == 1 ? this->walk(std::move(ways->front()))
                                     : first_of(*ways);
    const bool is_lost = !found && (found.error().id == "scores.reshape" || found.error().id == "scores.transpose");
    const MaybeShape shape = context_.facts.shape(*node.outputs[0]);
    if (!is_lost || walk.split || !shape || shape->empty()) return found;
    Value* undone = with_moves_undone(node, static_cast<size_t>(axis_of_keys(walk, shape->size())), context_);
    if (!undone) return found;
    auto unmoved = this->walk(step(walk, *undone, node.op() + "(undone)"));
    const Node* stop = unmoved ? nullptr : unmoved.error().node;
    const bool is_of_model = stop && stop->placement != Placement::kUnplaced;
    if (!unmoved && is_of_model) return tl::unexpected<Miss>(deeper(found.error(), unmoved.error()));
    return unmoved ? std::move(unmoved) : std::move(found);
  }

  Matched<ScoreWalk> first_of(const std::vector<ScoreWalk>& ways) {
    Miss miss;
    std::optional<ScoreWalk> with_table;  // its product may be that of positions, and the one of keys another operand
    for (const ScoreWalk& way : ways) {
      auto found = walk(way);
      if (found && has_equal_batches(*found->value->producer, context_.facts)) return found;
      if (found && !with_table) with_table = *found;
      if (!found) miss = miss.id.empty() ? found.error() : deeper(miss, found.error());
    }
    if (with_table) return *std::move(with_table);
    return tl::unexpected<Miss>(miss);
  }

  MatchContext& context_;
  int peels_ = 0;
};

/// Takes COLUMNS of the keys off the frames of FORM.
void narrow(ScoreForm& form, const CutColumns& columns) {
  for (ScoreCase& one : form)
    for (Literal& literal : one.guard) literal.frame.back() = literal.frame.back() - (columns.in_front + columns.behind);
}

}  // namespace

void ScoreWalk::take_changes_of(const ScoreWalk& part) {
  if (largest_finite(part.narrowest) < largest_finite(narrowest)) narrowest = part.narrowest;
  cancels_norms |= part.cancels_norms;
  hides_infinity |= part.hides_infinity;
  makes_nan_of_infinity |= part.makes_nan_of_infinity;
  sums_otherwise |= part.sums_otherwise;
  sums_operands |= part.sums_operands;
  caps_in_exp_range |= part.caps_in_exp_range;
  lies_above_fill |= part.lies_above_fill;
}

Matched<ScoreWalk> walk_scores(Value& softmax_input, const ScoreForm& form, ScoreLayout layout, ScoresEnd end,
                               MatchContext& context) {
  ScoreWalk start;
  start.cut_off = end.cut_off;
  start.split = std::move(end.split);
  start.after_lowering = end.after_lowering;
  start.layout = std::move(layout);
  start.value = &softmax_input;
  start.form = form;
  if (form.size() > 1) {
    start.peeled.emplace_back("Where(weights)");
    ++start.changes;
    start.reader = softmax_input.producer;
    if (!start.reader || softmax_input.output != 0 || !context.facts.shape(softmax_input))
      return missed("scores.input", start.reader, "'" + softmax_input.name + "' is not computed, or of unknown rank");
    ATTN_OPT_DONE(place(start.form, *start.reader, start, context));
    if (end.drops_sinks && end.cut_off) narrow(start.form, *end.cut_off);
  }
  if (!end.sinks.empty()) {
    start.reader = softmax_input.producer;
    if (!start.reader) return missed("scores.input", nullptr, "'" + softmax_input.name + "' is not computed");
    ATTN_OPT_MATCH(start.sinks, sinks_beside(std::move(end.sinks), start, context));
    start.peeled.emplace_back("Add(sinks)");
  }
  ATTN_OPT_MATCH(ScoreWalk walked, ScoreWalker(context).walk(std::move(start)));
  if (end.drops_sinks) walked.sinks.reset();
  return walked;
}

std::optional<ScoresOutput> scores_output(const ScoreWalk& walk) {
  // A fill laid over the scores, or a floor, is no sum of scores and mask.
  const bool masks_add = std::ranges::all_of(walk.terms, [](const ScoreTerm& term) {
    return term.kind == ScoreTerm::Kind::kBias || (term.kind != ScoreTerm::Kind::kFloor && term.fill == -INFINITY);
  });
  for (auto read = walk.read.rbegin(); read != walk.read.rend(); ++read) {
    if (read->scale != 1 || read->tensor_scales != 0 || !read->is_placed || !walk.frames.empty()) continue;
    const bool has_no_mask = read->changes == walk.changes;
    if (has_no_mask && read->softcap == walk.softcap) return ScoresOutput{read->value, 0};
    if (has_no_mask && read->softcap == 0) return ScoresOutput{read->value, 1};
    if (read->changes == 0 && read->softcap == 0 && masks_add) return ScoresOutput{read->value, 2};
  }
  return std::nullopt;
}

}  // namespace attn_opt
