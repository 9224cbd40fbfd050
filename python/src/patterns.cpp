#include "python/src/patterns.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "attn_opt/attention_parts.h"
#include "python/src/bindings.h"
#include "python/src/calls.h"
#include "python/src/errors.h"
#include "python/src/tensors.h"
#include "src/cli/options/optimize_arguments.h"
#include "src/rewrite/operator_check.h"

namespace attn_opt::python {
namespace {

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
    for (const auto& [name, given] : {std::pair("nonpad_kv_seqlen", &parts.nonpad_kv_seqlen),
                                      {"past_key", &parts.past_key},
                                      {"past_value", &parts.past_value},
                                      {"present_key", &parts.present_key},
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
    return std::ranges::any_of(anchors_, [&](const std::string& anchor) { return is_operator(node, anchor); });
  }

  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    const nb::gil_scoped_acquire gil;
    const auto scope = std::make_shared<Scope>(Scope{&context, &anchor});
    return called("pattern '" + name_ + "'", anchor, scope, [&] { return call(anchor, context, scope); });
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

  nb::object pattern_;
  std::string name_, summary_;
  std::vector<std::string> anchors_;
};

nb::list pattern_names(const std::vector<std::string>& rules, nb::handle of_python, nb::handle rewrites_of_python) {
  OptimizeArguments arguments;
  arguments.patterns = rules;
  arguments.more_patterns = patterns_of(of_python);
  arguments.more_rewrites = rewrites_of(rewrites_of_python);
  const OptimizeOptions options = value_or_raise(to_options(arguments));
  nb::list names;
  const auto add = [&names](const auto& pattern) {
    names.append(nb::make_tuple(text(pattern.name()), text(pattern.summary())));
  };
  for (const auto& pattern : patterns()) add(*pattern);
  for (const auto& rewrite : rewrites()) add(*rewrite);
  for (const auto& pattern : options.rules) add(*pattern);
  for (const auto& rewrite : options.rewrites) add(*rewrite);
  return names;
}

}  // namespace

std::vector<std::shared_ptr<const Pattern>> patterns_of(nb::handle patterns) {
  std::vector<std::shared_ptr<const Pattern>> all;
  for (nb::handle pattern : patterns) all.push_back(std::make_shared<PythonPattern>(pattern));
  return all;
}

void bind_patterns(nb::module_& module) {
  module.def(
      "wrong_axes", [](const std::string& axes) { return wrong_axes(axes); }, nb::arg("axes"),
      "What is wrong with the spelling AXES; \"\" if nothing is.");
  module.def(
      "check_anchor",
      [](const std::string& op, const std::string& where) {
        if (const Status known = check_operator_name(op, where); !known)
          raise(exception_of({ErrorCode::kUsage, known.error().where, known.error().what, known.error().remedy}));
      },
      nb::arg("op"), nb::arg("where"),
      "Raises where no version of ONNX has the operator OP. Those of other domains are not known.");
  module.def("pattern_names", pattern_names, nb::arg("rules"), nb::arg("patterns"), nb::arg("rewrites"),
             "(name, summary) of each pattern and rewrite that attn-opt has, of those in the folders RULES, of PATTERNS and "
             "REWRITES.");
}

}  // namespace attn_opt::python
