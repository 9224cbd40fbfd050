// A value times a number, however the graph says so.
#pragma once

#include <utility>

#include "attn_opt/pattern.h"
#include "patterns/scores/form_reader.h"

namespace attn_opt {

/// What NODE multiplies with a number, however it says so, and which: what is Inf or NaN above it is that below. Null if it
/// does something else, or adds up alike by Mean.
std::pair<Value*, double> scaled_by(Node& node, MatchContext& context);

/// True if NODE adds up numbers times CORE, being FORM together, of which one has the other sign or is 0 times that: of Inf the
/// sum is NaN, as FORM is not.
bool cancels(const Node& node, Value& core, const ScoreForm& form, FormReader& forms, Facts& facts);

}  // namespace attn_opt
