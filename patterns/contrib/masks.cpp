#include "patterns/contrib/masks.h"

#include <limits>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"

namespace attn_opt {
namespace {

constexpr double kLowest = std::numeric_limits<float>::lowest();
/// Where adding this to the lowest float gives another number.
constexpr double kFarFromLowest = -1e30;

class MaskWriter {
 public:
  MaskWriter(const ContribScores& scores, const Node& node, Facts& facts, InnerValues& inner)
      : scores_(scores), node_(node), facts_(facts), inner_(inner) {}

  /// True where a key is none of the padding; null where the mask says nothing.
  Matched<Value*> not_padding(const ContribMasking& masking) {
    Value& mask = *masking.padding;
    const MaybeShape shape = facts_.shape(mask);
    if (!shape) return missed("contrib.mask-form", &node_, "the rank of '" + mask.name + "' is not known");
    if (shape->empty() || shape->size() > 3) return missed("contrib.mask-form", &node_, "a mask " + to_string(*shape));
    if (shape->size() == 1) return within_lengths(mask, (*shape)[0], masking.knows_ends_and_starts);
    if (shape->size() == 2 && (*shape)[1].is(1) && masking.knows_no_mask) return nullptr;
    Value* keep = positive(mask);
    if (shape->size() == 3) return over_scores(inner_.unsqueezed(keep, {1}));
    if (masking.knows_no_mask) keep = or_of_one_column(keep, mask, (*shape)[1]);
    return over_scores(inner_.unsqueezed(keep, {1, 2}));
  }

  /// True where key j may be seen by query i: up to its own place, and by the last query always.
  Value* causal() {
    Value* query = inner_.unsqueezed(inner_.positions(scores_.query_count), {1});
    Value* place = scores_.past_count ? inner_.sum(query, scores_.past_count) : query;
    Value* seen = inner_.build().node("LessOrEqual", {keys(), place});
    if (scores_.queries == scores_.new_keys) return seen;
    Value* one = inner_.build().ints({1});
    Value* last = inner_.build().node("Sub", {scores_.query_count, one});
    return inner_.build().node("Or", {seen, inner_.build().node("Equal", {query, last})});
  }

 private:
  Value* keys() { return inner_.positions(scores_.key_count); }

  Value* positive(Value& mask) { return inner_.build().node("Greater", {&mask, inner_.number(0, facts_.type(mask))}); }

  /// KEEP, or true where a run gives MASK a single column: ONNX Runtime takes it whatever number of keys there is, and masks
  /// nothing (attention_base.h, MASK_2D_DUMMY).
  Value* or_of_one_column(Value* keep, Value& mask, const Dim& columns) {
    if (columns == scores_.keys() || (columns - 2).never_negative()) return keep;
    return inner_.build().node("Or", {keep, inner_.build().node("Equal", {inner_.size(mask, 1), inner_.build().ints({1})})});
  }

  /// MASK over all queries and keys, whose numbers its own axes must have.
  Value* over_scores(Value* mask) {
    Value* sizes = inner_.concat({inner_.build().ints({1, 1}), scores_.query_count, scores_.key_count}, 0);
    return inner_.build().node("Expand", {mask, sizes});
  }

  /// The first B numbers are the ends of the keys; (2B) goes on with their starts, (3B + 2) with what packed kernels read.
  Matched<Value*> within_lengths(Value& mask, const Dim& size, bool knows_ends_and_starts) {
    const Dim& batch = scores_.batch;
    const bool only_ends = size == batch || size == batch * 3 + 2;
    const bool has_starts = knows_ends_and_starts && !only_ends;
    if (has_starts && size != batch * 2)
      return missed("contrib.mask-form", &node_, "a mask of " + size.str() + " numbers for a batch of " + batch.str());
    Value* zero = inner_.build().ints({0});
    Value* ends = size == batch ? &mask : inner_.slice(&mask, zero, scores_.batch_size, 0);
    Value* before_end = inner_.build().node("Less", {keys(), per_batch(ends)});
    if (!has_starts) return before_end;
    Value* twice = inner_.sum(scores_.batch_size, scores_.batch_size);
    Value* starts = inner_.slice(&mask, scores_.batch_size, twice, 0);
    Value* from_start = inner_.build().node("GreaterOrEqual", {keys(), per_batch(starts)});
    return inner_.build().node("And", {before_end, from_start});
  }

  /// (B) as int64 (B, 1, 1, 1).
  Value* per_batch(Value* numbers) { return inner_.unsqueezed(inner_.int64(*numbers), {1, 2, 3}); }

  const ContribScores& scores_;
  const Node& node_;
  Facts& facts_;
  InnerValues& inner_;
};

/// A term that adds VALUE. ONNX Runtime's CPU kernels compute in float what is given in halves.
ScoreTerm added(Value* value, const ContribScores& scores) {
  ScoreTerm term;
  term.adds_in_float = true;
  term.value = value;
  term.frame = scores.frame();
  return term;
}

/// A term that puts FILL in the place of the scores where KEEP is false.
ScoreTerm laid_over(Value* keep, double fill, const ContribScores& scores) {
  ScoreTerm term = added(keep, scores);
  term.kind = ScoreTerm::Kind::kKeep;
  term.fill = fill;
  return term;
}

/// Lengths are no longer than the keys, and a mask of scores has their sizes.
void enter_legal(Value& mask, const ContribScores& scores, Facts& facts, Sdpa& sdpa) {
  const Shape& shape = facts.shape(mask).known();
  if (shape.size() == 1) enter_legal_integers(mask, 0, scores.keys(), facts, sdpa);
  if (shape.size() > 1 && !shape.back().is(1)) sdpa.legal_sizes.emplace_back(shape.back(), scores.keys());
  if (shape.size() == 3) sdpa.legal_sizes.emplace_back(shape[1], scores.queries);
}

}  // namespace

void enter_legal_integers(Value& value, const Dim& least, const Dim& most, Facts& facts, Sdpa& sdpa) {
  sdpa.legal_integers.push_back({&value, least, most});
  if (Value& source = canonical(value, facts); &source != &value) sdpa.legal_integers.push_back({&source, least, most});
}

Matched<void> add_mask_terms(const ContribMasking& masking, const ContribScores& scores, const Node& node, Facts& facts,
                             InnerValues& inner, Sdpa& sdpa) {
  MaskWriter writer(scores, node, facts, inner);
  const auto add = [&](Value* value) { sdpa.terms.push_back(added(value, scores)); };
  Value* padding = nullptr;
  if (masking.padding) {
    ATTN_OPT_MATCH(Value * keep, writer.not_padding(masking));
    // The operator adds floats: what no number of the scores' type is swallows them.
    const bool is_beyond_type = std::isfinite(masking.fill) && masking.fill < lowest_finite(scores.type);
    if (keep && is_beyond_type)
      sdpa.terms.push_back(laid_over(keep, masking.fill, scores));
    else if (keep)
      padding = inner.additive(keep, masking.fill, scores.type);
    enter_legal(*masking.padding, scores, facts, sdpa);
  }
  // The lowest number stands in the place of the padding's fill, which is the same as their sum unless that overflows.
  const bool is_one_mask = padding && masking.is_causal && masking.fill <= kFarFromLowest;
  if (padding && !is_one_mask) add(padding);
  if (!masking.is_causal) return {};
  Value* causal = writer.causal();
  Value* lowest = inner.build().scalar(lowest_finite(scores.type), scores.type);
  add(is_one_mask ? inner.build().node("Where", {causal, padding, lowest}) : inner.additive(causal, kLowest, scores.type));
  return {};
}

void add_attention_bias(Value* bias, const ContribScores& scores, Facts& facts, Sdpa& sdpa) {
  if (!bias) return;
  sdpa.terms.push_back(added(bias, scores));
  enter_legal_bias(*bias, scores, facts, sdpa);
}

void enter_legal_bias(const Value& bias, const ContribScores& scores, Facts& facts, Sdpa& sdpa) {
  const MaybeShape shape = facts.shape(bias);
  if (!shape.has_rank(4)) return;
  const Shape frame = scores.frame();
  for (size_t axis = 0; axis < frame.size(); ++axis)
    if (axis >= 2 || !(*shape)[axis].is(1)) sdpa.legal_sizes.emplace_back((*shape)[axis], frame[axis]);
}

}  // namespace attn_opt
