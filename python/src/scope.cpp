#include "python/src/scope.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "src/graph/operator_text.h"

namespace attn_opt::python {

GraphBuilder& Scope::builder() {
  MatchContext& matching = open();
  if (given) return *given;
  if (!may_build) throw nb::type_error("match() of a rewrite makes no nodes: apply() does");
  if (!build) {
    draft = std::make_unique<Edit>(matching.view, *anchor);
    build = std::make_unique<GraphBuilder>(*draft, matching.unplaced, anchor->label());
  }
  return *build;
}

void Scope::close() {
  if (draft) draft->enter(context->unplaced);
  build.reset();
  given = nullptr;
  draft.reset();
  context = nullptr;
}

namespace {

/// What is wrong with OBJECT, called NAME, where a Value is wanted.
std::string no_value(nb::handle object, const std::string& name) {
  if (nb::isinstance<nb::str>(object))
    return name + " is the name " + nb::cast<std::string>(nb::repr(object)) + ": give the Value, not its name";
  return name + " is no Value, but " + nb::cast<std::string>(nb::repr(object));
}

}  // namespace

Value* value_of(nb::handle object, const ScopeRef& scope, const std::string& name) {
  if (object.is_none()) return nullptr;
  ValueHandle value;
  if (!nb::try_cast(object, value)) throw nb::type_error(no_value(object, name).c_str());
  if (value.scope != scope) throw nb::type_error((name + " is a Value of another graph, or of a match that is over").c_str());
  return &value.get();
}

Value& needed_value(nb::handle object, const ScopeRef& scope, const std::string& name) {
  Value* value = value_of(object, scope, name);
  if (!value) throw nb::type_error((name + " is a Value, not None").c_str());
  return *value;
}

Node& node_of(nb::handle object, const ScopeRef& scope, const std::string& name) {
  NodeHandle node;
  if (!nb::try_cast(object, node) || node.scope != scope) throw nb::type_error((name + " is no Node of this match").c_str());
  return node.get();
}

Node& lent(const Node& node) {
  const auto made = std::ranges::find_if(node.outputs, [](const Value* output) { return output != nullptr; });
  return *(*made)->producer;
}

bool is_operator(const Node& node, std::string_view op) {
  const OperatorText wanted(op);
  return node.op() == wanted.op && node.domain() == wanted.domain;
}

nb::str text(std::string_view bytes) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

nb::list texts(const std::vector<std::string>& list) {
  nb::list all;
  for (const std::string& one : list) all.append(text(one));
  return all;
}

}  // namespace attn_opt::python
