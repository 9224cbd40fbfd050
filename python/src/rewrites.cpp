// Rewrites whose match() and apply() are Python functions.
#include <algorithm>
#include <utility>

#include "python/src/calls.h"
#include "python/src/patterns.h"

namespace attn_opt::python {
namespace {

/// What match() gave, and the graph that it was lent: apply() may still use it.
struct Found {
  Found(MatchContext of_match, Node& at) : context(std::move(of_match)), scope(std::make_shared<Scope>(Scope{&context, &at})) {
    scope->may_build = false;
  }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  ~Found() {
    const nb::gil_scoped_acquire gil;
    scope->close();
    object.reset();
  }

  MatchContext context;
  ScopeRef scope;
  nb::object object;
};

/// What the attn_opt.RewriteMatch that FOUND holds says beside what apply() gets, which is kept.
RewriteMatch taken(Found& found) {
  const nb::object given = std::exchange(found.object, nb::object(found.object.attr("found")));
  RewriteMatch match;
  for (nb::handle value : nb::object(given.attr("computed")))
    match.computed.push_back(&needed_value(value, found.scope, "RewriteMatch.computed"));
  match.peeled = field_of<std::vector<std::string>>(given, "RewriteMatch", "peeled");
  if (const nb::object node = given.attr("insert_before"); !node.is_none())
    match.insert_before = &node_of(node, found.scope, "RewriteMatch.insert_before");
  return match;
}

class PythonRewrite : public Rewrite {
 public:
  explicit PythonRewrite(nb::handle rewrite)
      : rewrite_(nb::borrow(rewrite)),
        name_(field_of<std::string>(rewrite, "Rewrite", "name")),
        called_("rewrite '" + name_ + "'"),
        summary_(field_of<std::string>(rewrite, "Rewrite", "summary")),
        anchors_(field_of<std::vector<std::string>>(rewrite, "Rewrite", "anchor")),
        priority_(field_of<int>(rewrite, "Rewrite", "priority")) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  int priority() const override { return priority_; }

  bool is_anchor(const Node& node) const override {
    return std::ranges::any_of(anchors_, [&](const std::string& anchor) { return is_operator(node, anchor); });
  }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    const nb::gil_scoped_acquire gil;
    Node& anchor = lent(node);  // engines try no node without outputs
    const auto found = std::make_shared<Found>(MatchContext{node.graph->model(), context.facts}, anchor);
    return called(
        called_, node, found->scope,
        [&]() -> Matched<RewriteMatch> {
          found->object = rewrite_.attr("match")(NodeHandle{found->scope, &anchor}, ContextHandle{found->scope});
          if (found->object.is_none()) return missed(std::string(kNoMatch), &node, "");
          const nb::module_ types = nb::module_::import_("attn_opt._description");
          if (nb::isinstance(found->object, types.attr("Miss")))
            return tl::unexpected<Miss>(miss_of(found->object, anchor, found->scope));
          RewriteMatch match;
          if (nb::isinstance(found->object, types.attr("RewriteMatch"))) match = taken(*found);
          match.more = found;
          return match;
        },
        true);
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    const nb::gil_scoped_acquire gil;
    const auto found = std::any_cast<std::shared_ptr<Found>>(match.more);
    found->scope->given = &build;
    // The engine may ask again, for nodes at another place: the match is kept until it is done with it.
    const auto replacements = called(
        called_, *found->scope->anchor, found->scope,
        [&]() -> Matched<std::vector<Replacement>> {
          const nb::object made = rewrite_.attr("apply")(found->object, BuilderHandle{found->scope});
          if (nb::isinstance(made, nb::module_::import_("attn_opt._description").attr("Miss")))
            return tl::unexpected<Miss>(miss_of(made, *found->scope->anchor, found->scope));
          return replacements_of(made, found->scope);
        },
        true);
    found->scope->given = nullptr;
    return replacements;
  }

 private:
  static std::vector<Replacement> replacements_of(nb::handle made, const ScopeRef& scope) {
    if (!nb::isinstance<nb::dict>(made))
      throw nb::type_error("apply() returns a dict: {value of the model: what it is from now on}, or a Miss");
    std::vector<Replacement> replacements;
    for (const auto& [existing, value] : nb::borrow<nb::dict>(made))
      replacements.push_back(
          {value_of(existing, scope, "what apply() replaces"), value_of(value, scope, "what apply() makes")});
    return replacements;
  }

  nb::object rewrite_;
  std::string name_;
  std::string called_;  ///< in exceptions
  std::string summary_;
  std::vector<std::string> anchors_;
  int priority_;
};

}  // namespace

std::vector<std::shared_ptr<const Rewrite>> rewrites_of(nb::handle rewrites) {
  std::vector<std::shared_ptr<const Rewrite>> all;
  for (nb::handle rewrite : rewrites) all.push_back(std::make_shared<PythonRewrite>(rewrite));
  return all;
}

}  // namespace attn_opt::python
