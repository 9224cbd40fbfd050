// Combinators for small fixed shapes.
//
// A Matcher looks at a value, through nodes that change nothing (canonical.h), and says whether it fits. Captures are
// pointers to locals of the caller; they hold only if the whole matcher fits.
//
//   Value* x; double cap;
//   if (commuted("Mul", op("Tanh", {any(&x)}), number(&cap))(value, facts)) ...
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Does the value fit? Sets captures only if it does.
using Matcher = std::function<bool(Value&, Facts&)>;

/// Fits every value.
Matcher any(Value** capture = nullptr);
/// Fits the value that is in BOUND by then, or a mere copy of it.
Matcher same(Value* const* bound);
/// Fits a value all of whose elements are one number known beforehand.
Matcher number(double* capture = nullptr);
/// number() of one that equals WANTED.
Matcher number_is(double wanted);
/// Fits the first output of an ai.onnx node OP_TYPE whose first inputs fit; more inputs may follow.
Matcher op(std::string op_type, std::vector<Matcher> inputs, Node** capture = nullptr);
/// op() for two inputs in either order.
Matcher commuted(std::string op_type, Matcher one, Matcher other, Node** capture = nullptr);
/// Fits if one of ALTERNATIVES does; the first that does sets its captures.
Matcher either(std::vector<Matcher> alternatives);
/// Fits ReduceSum, ReduceMax, ... (OP_TYPE) of INPUT over the last axis alone, that axis kept with size 1.
Matcher reduced_over_last(std::string op_type, Matcher input);

}  // namespace attn_opt
