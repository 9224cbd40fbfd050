// What the peels of scores share.
#pragma once

#include <string>
#include <vector>

#include "patterns/scores/score_walk.h"

namespace attn_opt {

using Ways = Matched<std::vector<ScoreWalk>>;

/// WALK gone on to NEXT through what is called WHAT.
ScoreWalk step(const ScoreWalk& walk, Value& next, const std::string& what);

/// The shape of VALUE for a miss.
std::string shape_text(const Value& value, Facts& facts);

/// True if an elementwise RESULT has the shape of its OPERAND: equal, or unequal only in sizes that are not both known.
bool keeps_shape(const Value& result, const Value& operand, Facts& facts);

/// TERM, met at NODE, as WALK's terms lie. Miss "scores.transpose".
Matched<Value*> placed_term(Value& term, Node& node, const ScoreWalk& walk, MatchContext& context);

/// Makes what FORM, met at NODE, adds and asks lie as WALK's terms do, and multiplies it with the tensors that the scores are
/// multiplied with below. Miss "scores.transpose".
Matched<void> place(ScoreForm& form, Node& node, const ScoreWalk& walk, MatchContext& context);

/// The axis of the keys of scores of RANK axes where WALK is.
int64_t axis_of_keys(const ScoreWalk& walk, size_t rank);
/// True if NODE, a Concat of scores of RANK axes, joins them along their keys.
bool joins_keys(const Node& node, const ScoreWalk& walk, size_t rank);

/// The shape that the scores have at NODE.
Shape frame_at(const Node& node, const ScoreWalk& walk, MatchContext& context);

/// WALK with terms in the place of its form. Misses: those of terms_of().
Matched<ScoreWalk> settled(ScoreWalk walk, MatchContext& context);

/// A fill above this leaves a masked key some weight, and scores may reach a bound below it: neither is there for masks alone.
inline constexpr double kHighestMaskFill = -1000;

}  // namespace attn_opt
