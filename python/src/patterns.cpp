#include "python/src/patterns.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "attn_opt/attention_parts.h"
#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/tensors.h"
#include "src/cli/optimize_arguments.h"
#include "src/rewrite/operator_check.h"

namespace attn_opt::python {
namespace {

/// The field NAME of OBJECT, an attn_opt.KIND.
template <class T>
T field_of(nb::handle object, const std::string& kind, const char* name) {
  T read;
  if (!nb::try_cast(nb::object(object.attr(name)), read)) throw nb::type_error((kind + "." + name + " is of another type").c_str());
  return read;
}

/// Reads the fields of an attn_opt.Sdpa.
class PartsReader {
 public:
  PartsReader(nb::handle sdpa, const ScopeRef& scope) : sdpa_(sdpa), scope_(scope) {}

  AttentionParts read() const {
    AttentionParts parts;
    for (const auto& [name, part] : {std::pair("q", &parts.q), {"k", &parts.k}, {"v", &parts.v}, {"output", &parts.output}}) {
      part->value = value(name);
      part->axes = field<std::string>((std::string(name) + "_axes").c_str());
    }
    parts.heads = field<int64_t>("heads");
    parts.kv_heads = field<int64_t>("kv_heads");
    if (!nb::object(sdpa_.attr("scale")).is_none()) parts.scale = field<double>("scale");
    parts.softcap = field<double>("softcap");
    for (nb::handle one : nb::object(sdpa_.attr("terms"))) parts.terms.push_back(term(one));
    parts.is_causal = field<bool>("is_causal");
    parts.guarded = field<bool>("guarded");
    parts.subtracts_maximum = field<bool>("subtracts_maximum");
    for (const auto& [name, given] : {std::pair("nonpad_kv_seqlen", &parts.nonpad_kv_seqlen), {"past_key", &parts.past_key},
                                      {"past_value", &parts.past_value}, {"present_key", &parts.present_key},
                                      {"present_value", &parts.present_value}})
      *given = value(name);
    parts.softmax_precision = type_named(sdpa_.attr("softmax_precision"));
    parts.assumed = field<std::vector<std::string>>("assumed");
    parts.peeled = field<std::vector<std::string>>("peeled");
    return parts;
  }

 private:
  Value* value(const char* name) const { return value_of(nb::object(sdpa_.attr(name)), scope_, std::string("Sdpa.") + name); }

  template <class T>
  T field(const char* name) const {
    return field_of<T>(sdpa_, "Sdpa", name);
  }

  ScoreTerm term(nb::handle one) const {
    const auto kind = field_of<std::string>(one, "Term", "kind");
    Value* value = value_of(nb::object(one.attr("value")), scope_, "a term of Sdpa");
    const auto number = field_of<double>(one, "Term", "number");
    return kind == "bias" ? bias(value, number) : kind == "keep" ? keep(value, number) : drop(value, number);
  }

  nb::handle sdpa_;
  const ScopeRef& scope_;
};

Miss miss_of(nb::handle given, Node& anchor, const ScopeRef& scope) {
  Miss miss;
  miss.id = field_of<std::string>(given, "Miss", "id");
  miss.found = field_of<std::string>(given, "Miss", "detail");
  miss.peeled = field_of<std::vector<std::string>>(given, "Miss", "peeled");
  miss.node = &anchor;
  if (nb::object node = given.attr("node"); !node.is_none()) {
    NodeHandle handle;
    if (!nb::try_cast(node, handle) || handle.scope != scope) throw nb::type_error("Miss.node is no Node of this match");
    miss.node = &handle.get();
  }
  return miss;
}

/// The exception object that ERROR holds, with its traceback.
nb::object exception_in(nb::python_error& error) {
  error.restore();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return nb::steal(value);
}

class PythonPattern : public Pattern {
 public:
  explicit PythonPattern(nb::handle pattern)
      : pattern_(nb::borrow(pattern)),
        name_(field_of<std::string>(pattern, "Pattern", "name")),
        summary_(field_of<std::string>(pattern, "Pattern", "summary")),
        anchors_(field_of<std::vector<std::string>>(pattern, "Pattern", "anchor")) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }

  bool is_anchor(const Node& node) const override {
    return std::any_of(anchors_.begin(), anchors_.end(), [&](const std::string& anchor) { return is_operator(node, anchor); });
  }

  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    const nb::gil_scoped_acquire gil;
    const auto scope = std::make_shared<Scope>(Scope{&context, &anchor});
    try {
      auto matched = call(anchor, context, scope);
      scope->close();
      return matched;
    } catch (nb::python_error& error) {
      scope->close();
      throw RaisedInPython{explained(error, anchor)};
    } catch (const std::exception& error) {  // what nanobind would turn into a Python exception at its own border
      scope->close();
      PyErr_SetString(PyExc_TypeError, error.what());
      nb::python_error raised;
      throw RaisedInPython{explained(raised, anchor)};
    }
  }

 private:
  Matched<Match> call(Node& anchor, MatchContext& context, const ScopeRef& scope) const {
    const nb::object found = pattern_.attr("match")(NodeHandle{scope, &anchor}, ContextHandle{scope});
    if (found.is_none()) return missed(std::string(kNotAttention), &anchor, "");
    const nb::module_ types = nb::module_::import_("attn_opt._description");
    if (nb::isinstance(found, types.attr("Miss"))) return tl::unexpected<Miss>(miss_of(found, anchor, scope));
    if (!nb::isinstance(found, types.attr("Sdpa"))) throw nb::type_error("match() returns an Sdpa, a Miss or None");
    return match_of(PartsReader(found, scope).read(), anchor, context);
  }

  /// ERROR as a PatternError that says where, unless it ends the program.
  std::shared_ptr<nb::python_error> explained(nb::python_error& error, const Node& anchor) const {
    if (!error.matches(PyExc_Exception)) return std::make_shared<nb::python_error>(std::move(error));
    try {
      const nb::object cause = exception_in(error);
      raise(nb::module_::import_("attn_opt._errors").attr("pattern_error")(text(name_), text(anchor.label()), cause));
    } catch (nb::python_error& raised) {
      return std::make_shared<nb::python_error>(std::move(raised));
    }
  }

  nb::object pattern_;
  std::string name_, summary_;
  std::vector<std::string> anchors_;
};

nb::list pattern_names(const std::vector<std::string>& rules, nb::handle of_python) {
  OptimizeArguments arguments;
  arguments.patterns = rules;
  arguments.more_patterns = patterns_of(of_python);
  const OptimizeOptions options = value_or_raise(to_options(arguments));
  nb::list names;
  const auto add = [&names](const Pattern& pattern) { names.append(nb::make_tuple(text(pattern.name()), text(pattern.summary()))); };
  for (const auto& pattern : patterns()) add(*pattern);
  for (const auto& pattern : options.rules) add(*pattern);
  return names;
}

}  // namespace

std::vector<std::shared_ptr<const Pattern>> patterns_of(nb::handle patterns) {
  std::vector<std::shared_ptr<const Pattern>> all;
  for (nb::handle pattern : patterns) all.push_back(std::make_shared<PythonPattern>(pattern));
  return all;
}

void bind_patterns(nb::module_& module) {
  module.def("wrong_axes", [](const std::string& axes) { return wrong_axes(axes); }, nb::arg("axes"), "What is wrong with the spelling AXES; \"\" if nothing is.");
  module.def("check_anchor", [](const std::string& op, const std::string& where) {
    if (const Status known = check_operator_name(op, where); !known)
      raise(exception_of({ErrorCode::kUsage, known.error().where, known.error().what, known.error().remedy}));
  }, nb::arg("op"), nb::arg("where"), "Raises where no version of ONNX has the operator OP. Those of other domains are not known.");
  module.def("pattern_names", pattern_names, nb::arg("rules"), nb::arg("patterns"),
             "(name, summary) of each pattern that attn-opt has, of those in the folders RULES, and of PATTERNS.");
}

}  // namespace attn_opt::python
