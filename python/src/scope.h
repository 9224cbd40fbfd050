// What lends the graph to Python while a pattern matches, and takes it back after.
//
// Everything of a graph that Python holds knows the scope that it came from. When the match is over the scope is closed, and
// whatever is done with such an object then is a Python exception.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn_opt/pattern.h"

namespace attn_opt::python {

namespace nb = nanobind;

/// A model that Python builds.
struct BuiltModel;

struct Scope {
  MatchContext* context = nullptr;  ///< null: closed
  Node* anchor = nullptr;
  std::unique_ptr<Edit> draft = nullptr;
  std::unique_ptr<GraphBuilder> build = nullptr;
  GraphBuilder* given = nullptr;  ///< what is to be used in the place of one's own: a rewrite makes nodes of the model
  bool may_build = true;          ///< false while a rewrite matches
  std::shared_ptr<BuiltModel> built = nullptr;  ///< what is kept while there are values of it; null in a match

  MatchContext& open() const {
    if (!context)
      throw nb::type_error("this belongs to a graph that is gone: nodes and values are valid while their pattern matches");
    return *context;
  }
  /// What builds unplaced nodes above the anchor.
  GraphBuilder& builder();
  /// Drafted nodes are there for the next match.
  void close();
};
using ScopeRef = std::shared_ptr<Scope>;

/// A pointer into the graph that is good as long as its scope is open.
template <class T>
struct Handle {
  ScopeRef scope;
  T* object = nullptr;

  T& get() const {
    scope->open();
    return *object;
  }
  bool operator==(const Handle& other) const { return object == other.object; }
};
using NodeHandle = Handle<Node>;
using ValueHandle = Handle<Value>;
using GraphHandle = Handle<Graph>;

/// MatchContext, Facts and GraphBuilder as Python has them.
struct ContextHandle {
  ScopeRef scope;
};
struct FactsHandle {
  ScopeRef scope;
};
struct BuilderHandle {
  ScopeRef scope;
  mutable std::optional<GraphBuilder> own = std::nullopt;  ///< of a model from nothing; otherwise the scope's is used

  GraphBuilder& builder() const { return own ? *own : scope->builder(); }
};

/// None for null.
template <class T>
nb::object handle_or_none(const ScopeRef& scope, T* object) {
  return object ? nb::cast(Handle<T>{scope, object}) : nb::none();
}

/// The value that OBJECT, a handle, stands for; null for None. NAME is what it is called in exceptions. It must be of SCOPE.
Value* value_of(nb::handle object, const ScopeRef& scope, const std::string& name);
/// The same where None is an exception.
Value& needed_value(nb::handle object, const ScopeRef& scope, const std::string& name);

/// The node that OBJECT, a handle, stands for. It must be of SCOPE.
Node& node_of(nb::handle object, const ScopeRef& scope, const std::string& name);

/// NODE, which has an output, as it is lent to Python: it can be read, and not changed.
Node& lent(const Node& node);
/// True if NODE is of OP: "Op" of ai.onnx or "domain::Op".
bool is_operator(const Node& node, std::string_view op);

/// Names in a model are bytes: what is not UTF-8 is replaced.
nb::str text(std::string_view bytes);
nb::list texts(const std::vector<std::string>& list);

}  // namespace attn_opt::python
