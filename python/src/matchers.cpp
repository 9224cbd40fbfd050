// attn_opt.matcher: its descriptions as the combinators of matcher.h. What these capture has names in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <map>

#include "attn_opt/matcher.h"
#include "attn_opt/rewrite.h"
#include "python/src/attributes.h"
#include "python/src/bindings.h"
#include "src/match/attribute_default.h"

namespace attn_opt::python {
namespace {

/// What a use of a matcher captures, by name. Pointers to entries stay good.
struct Captures {
  ScopeRef scope;
  std::map<std::string, Value*> values = {};
  std::map<std::string, double> numbers = {};  ///< NaN where there is none
  std::map<std::string, Node*> nodes = {};
};

/// Makes matchers of descriptions, which outlive them.
class MatcherMaker {
 public:
  explicit MatcherMaker(Captures& captures) : captures_(captures) {}

  Matcher made(nb::handle given) {
    if (nb::isinstance<nb::str>(given)) return same(value_at(nb::cast<std::string>(given)));
    if (PyNumber_Check(given.ptr())) return number_near(nb::cast<double>(nb::float_(given)));
    if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given))
      return integers_are(nb::cast<std::vector<int64_t>>(given));
    const auto kind = nb::cast<std::string>(given.attr("kind"));
    const nb::object arguments = given.attr("arguments");
    if (kind == "any") return any(value_at(nb::cast<std::string>(arguments[0])));
    if (kind == "number") return number(number_at(nb::cast<std::string>(arguments[0])));
    if (kind == "number_is") return number_is(nb::cast<double>(arguments[0]));
    if (kind == "number_near") return number_near(nb::cast<double>(arguments[0]), nb::cast<double>(arguments[1]));
    if (kind == "either") return either(all(arguments[0]));
    if (kind == "repeated")
      return repeated(nb::cast<std::string>(arguments[0]), made(arguments[1]), nb::cast<int>(arguments[2]));
    if (kind == "where") return where(made(arguments[0]), node_test(arguments[1]));
    if (kind == "product_of") return product_of(all(arguments[0]), number_at(nb::cast<std::string>(arguments[1])));
    if (kind == "product_near") return product_near(nb::cast<double>(arguments[0]), all(arguments[1]));
    if (kind == "reduced_over")
      return reduced_over(nb::cast<std::string>(arguments[0]), nb::cast<std::vector<int64_t>>(arguments[1]),
                          made(arguments[2]));
    return operator_of(arguments);
  }

 private:
  Value** value_at(const std::string& name) { return name.empty() ? nullptr : &captures_.values[name]; }
  Node** node_at(const std::string& name) { return name.empty() ? nullptr : &captures_.nodes[name]; }
  double* number_at(const std::string& name) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return name.empty() ? nullptr : &captures_.numbers.emplace(name, kNone).first->second;
  }

  std::vector<Matcher> all(nb::handle given) {
    std::vector<Matcher> matchers;
    for (nb::handle one : given) matchers.push_back(made(one));
    return matchers;
  }

  /// ARGUMENTS: the operator, (matcher, may be absent) of each operand, the name of the node, and tests of attributes by name.
  Matcher operator_of(nb::handle arguments) {
    std::vector<OperandMatcher> operands;
    for (nb::handle operand : nb::object(arguments[1])) operands.emplace_back(made(operand[0]), nb::cast<bool>(operand[1]));
    const Matcher whole = op(nb::cast<std::string>(arguments[0]), operands, node_at(nb::cast<std::string>(arguments[2])));
    const auto tests = nb::cast<nb::dict>(arguments[3]);
    return tests.size() == 0 ? whole : where(whole, attribute_test(tests));
  }

  NodeTest node_test(nb::handle test) {
    return [test, scope = captures_.scope](const Node& node) {
      return nb::cast<bool>(nb::bool_(test(NodeHandle{scope, &lent(node)})));
    };
  }

  /// TESTS get the value of an attribute, None where there is none.
  NodeTest attribute_test(const nb::dict& tests) {
    return [tests, scope = captures_.scope](const Node& node) {
      const int opset = scope->open().view.opset(*node.graph, std::string(node.domain()));
      for (const auto& [name, test] : tests) {
        const auto* found = attribute_or_default(node, nb::cast<std::string>(name), opset);
        const nb::object value = found ? attribute_value(*found, {scope, &lent(node)}) : nb::none();
        if (!nb::cast<bool>(nb::bool_(test(value)))) return false;
      }
      return true;
    };
  }

  Captures& captures_;
};

nb::dict dict_of(const Captures& captures) {
  nb::dict found;
  for (const auto& [name, value] : captures.values) found[text(name)] = handle_or_none(captures.scope, value);
  for (const auto& [name, node] : captures.nodes) found[text(name)] = handle_or_none(captures.scope, node);
  for (const auto& [name, number] : captures.numbers)
    found[text(name)] = std::isnan(number) ? nb::none() : nb::object(nb::float_(number));
  return found;
}

/// Of what match() was given, or of the facts in it, which stand in its place in C++.
const ScopeRef& scope_of(nb::handle context) {
  if (ContextHandle* whole = nullptr; nb::try_cast(context, whole) && whole) return whole->scope;
  if (FactsHandle* facts = nullptr; nb::try_cast(context, facts) && facts) return facts->scope;
  const auto type = nb::cast<std::string>(nb::object(context.type().attr("__name__")));
  throw nb::type_error(("fits() takes the context that match() was given, not a " + type).c_str());
}

/// The captures, or what was found where matching got furthest, and the node there.
nb::object fitted(nb::handle wanted, nb::handle value, nb::handle context) {
  const ScopeRef scope = scope_of(context);
  Captures captures{scope};
  Facts& facts = scope->open().facts;
  Value& at = needed_value(value, scope, "what is matched");
  const Matched<void> found = fits(MatcherMaker(captures).made(wanted), at, facts, std::string(kNoMatch));
  if (found) return dict_of(captures);
  const Node* furthest = found.error().node;
  return nb::make_tuple(text(found.error().found), NodeHandle{scope, furthest ? &lent(*furthest) : scope->anchor});
}

}  // namespace

void bind_matchers(nb::module_& module) {
  module.def("fitted", fitted, nb::arg("wanted"), nb::arg("value"), nb::arg("context"),
             "What WANTED, of attn_opt.matcher, captures at VALUE by name; or what was found instead, and at which node.",
             nb::sig("def fitted(wanted: Any, value: Value, context: Context | Facts) -> dict[str, Any] | tuple[str, Node]"));
}

}  // namespace attn_opt::python
