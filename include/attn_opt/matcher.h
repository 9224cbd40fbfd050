// Combinators for small fixed shapes.
//
// A Matcher looks at a value, through nodes that change nothing (canonical.h), and says whether it fits. Captures are
// pointers to locals of the caller; they hold only if the whole matcher fits: an alternative that fails leaves them as they
// were.
//
//   Value* x; double cap;
//   if (commuted("Mul", op("Tanh", {any(&x)}), number(&cap))(value, facts)) ...
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/miss.h"

namespace attn_opt {

/// Does the value fit? Sets captures only if it does.
using Matcher = std::function<bool(Value&, Facts&)>;
/// Does the node fit?
using NodeTest = std::function<bool(const Node&)>;

/// What is asked of an operand of a node.
struct OperandMatcher {
  template <std::convertible_to<Matcher> M>
  OperandMatcher(M matcher, bool optional = false) : fits(std::move(matcher)), is_optional(optional) {}
  Matcher fits;
  bool is_optional;  ///< it may be absent
};

/// Fits every value; where same() took CAPTURE before, that value alone.
Matcher any(Value** capture = nullptr);
/// Fits the value that is in BOUND by then, or a mere copy of it. Within a whole matcher that holds null, it takes the value:
/// the any() of BOUND may come later, as in the other order of commuted().
Matcher same(Value** bound);
/// Fits a value all of whose elements are one number known beforehand.
Matcher number(double* capture = nullptr);
/// number() of one that equals WANTED.
Matcher number_is(double wanted);
/// number() of one that differs from WANTED by at most RELATIVE of it: constants are rounded to the model's type.
Matcher number_near(double wanted, double relative = 1e-3);
/// Fits a small integer tensor whose elements are WANTED, known beforehand: axes, a shape.
Matcher integers_are(const std::vector<int64_t>& wanted);
/// Fits the first output of a node OP_TYPE, "Op" of ai.onnx or "domain::Op", whose first inputs fit; more inputs may follow.
Matcher op(const std::string& op_type, const std::vector<OperandMatcher>& inputs, Node** capture = nullptr);
/// An operand of op() that may be absent; if it is there it fits MATCHER.
OperandMatcher optional(Matcher matcher);
/// op() for two inputs in either order.
Matcher commuted(const std::string& op_type, const Matcher& one, const Matcher& other, Node** capture = nullptr);
/// Fits if one of ALTERNATIVES does; the first that does sets its captures.
Matcher either(const std::vector<Matcher>& alternatives);
/// Fits what INNER fits, or the operator OP_TYPE of that, at most MOST times.
Matcher repeated(const std::string& op_type, const Matcher& inner, int most = 8);
/// Fits what INNER fits if the node that makes it passes TEST.
Matcher where(const Matcher& inner, const NodeTest& test);
/// True for nodes whose attribute NAME is WANTED; one that is absent is OTHERWISE.
NodeTest attribute_is(const std::string& name, int64_t wanted, int64_t otherwise = 0);
/// The same of an attribute that is a string.
NodeTest attribute_is(const std::string& name, const std::string& wanted, const std::string& otherwise = {});
/// The same of a list of integers; one that is absent is empty.
NodeTest attribute_is_ints(const std::string& name, const std::vector<int64_t>& wanted);
/// True for nodes whose attribute NAME, a float, differs from WANTED by at most RELATIVE of it; one that is absent is
/// OTHERWISE.
NodeTest attribute_near(const std::string& name, double wanted, double otherwise = 0, double relative = 1e-3);
/// Fits a product, in any order and nesting of Mul, and of Div by a number, of values that fit FACTORS, one each. The numbers
/// in it multiply to COEFFICIENT, which is captured.
Matcher product_of(const std::vector<Matcher>& factors, double* coefficient = nullptr);
/// product_of() whose numbers multiply to about WANTED, as in number_near().
Matcher product_near(double wanted, const std::vector<Matcher>& factors);
/// Fits ReduceSum, ReduceMax, ... (OP_TYPE) of INPUT over the last axis alone, that axis kept with size 1.
Matcher reduced_over_last(const std::string& op_type, const Matcher& input);
/// The same over AXES, in any order, be they an attribute or an input; -1 is the last one.
Matcher reduced_over(const std::string& op_type, const std::vector<int64_t>& axes, const Matcher& input);

/// That VALUE fits MATCHER. The miss, of the id ID, says what was found where matching got furthest.
Matched<void> fits(const Matcher& matcher, Value& value, Facts& facts, const std::string& id);

}  // namespace attn_opt
