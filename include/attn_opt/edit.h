// A change to a graph as data: new nodes, and which existing values they make from now on.
//
// GraphBuilder fills an Edit; nothing of the model changes until commit(). A dropped Edit leaves the model as it was.
// What an Edit makes can be shared by later ones (a mask expanded for one layer serves the next): the builder looks a
// node up in the SharedNodes before it makes it, and commit() enters the edit's own nodes there.
//
//   Edit edit(view, *anchor);              // new nodes will stand before ANCHOR
//   GraphBuilder build(edit, shared);
//   Value* sum = build.node("Add", {a, b});
//   edit.take_over(*y, *sum);              // y is made by that Add from now on
//   ... verify edit ...
//   edit.commit(shared);
//
// A pattern makes values that the model does not have, such as Q with a bias that an operator adds inside, in an edit
// that is never committed. Who reads such a value adopts the nodes behind it.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/graph_builder.h"

namespace attn_opt {

/// Nodes that edits have put into the model, by what they compute.
/// Or into no model yet: what a pattern makes for its description (MatchContext::unplaced).
class SharedNodes {
 public:
  /// The value that KEY's node makes, if that node stands above READER in the same graph; null otherwise.
  Value* find(const Node& reader, const std::string& key) const;

 private:
  friend class Edit;
  std::unordered_map<const Graph*, std::unordered_map<std::string, Value*>> made_;
};

/// New nodes that stand before an anchor, and the values they take over.
class Edit {
 public:
  Edit(ModelGraph& model, Node& anchor) : model_(model), anchor_(anchor) {}

  /// EXISTING is made by MADE's producer from commit() on.
  struct Takeover {
    Value* existing;
    Value* made;
  };

  Graph& graph() const { return *anchor_.graph; }
  ModelGraph& model() const { return model_; }
  Node& anchor() const { return anchor_; }
  const std::vector<Node*>& nodes() const { return nodes_; }
  const std::vector<Takeover>& takeovers() const { return takeovers_; }

  /// EXISTING, a value of this graph, is to be made by the node that makes MADE, a value of this edit.
  void take_over(Value& existing, Value& made) { takeovers_.push_back({&existing, &made}); }
  /// NODES, of the file and in its order, are to stand right before the anchor: the edit reads what they make.
  void raise(std::vector<Node*> nodes) { raised_ = std::move(nodes); }
  /// TYPE is to be recorded in value_info for VALUE, which this edit makes.
  void declare(Value& value, onnx::TypeProto type) { declared_.emplace_back(&value, std::move(type)); }

  /// FUNCTION, which new nodes call, is to be one of the model's.
  void add_function(onnx::FunctionProto function) { functions_.push_back(std::move(function)); }
  const std::vector<onnx::FunctionProto>& functions() const { return functions_; }
  /// Takes in the unplaced nodes, of whichever edit, that its own nodes read.
  void adopt_unplaced();
  /// What it made can be shared from now on: by edits of the same matches, if it is never committed itself.
  void enter(SharedNodes& shared) const;

  /// The existing nodes that this edit would leave dead, the anchor's cone upward. Linear in their number.
  std::vector<Node*> would_remove() const;
  /// True if every reader of a taken-over value that is not in REMOVED, what would_remove() gives, stands behind the
  /// anchor, so that the edit makes no cycle. Otherwise FIRST_READER is one that does not.
  bool keeps_order(const std::vector<Node*>& removed, const Node** first_reader = nullptr) const;

  /// Puts the edit into the model. It must keep order.
  void commit(SharedNodes& shared);

 private:
  friend class EditBackend;
  ModelGraph& model_;
  Node& anchor_;
  std::vector<Node*> nodes_;
  std::vector<Takeover> takeovers_;
  std::vector<Node*> raised_;
  std::vector<std::pair<Value*, onnx::TypeProto>> declared_;
  std::vector<onnx::FunctionProto> functions_;
  std::unordered_map<std::string, Value*> made_;
};

/// Adds FUNCTION to MODEL unless it has one of its name, and the import of its domain.
void enter_function(const onnx::FunctionProto& function, onnx::ModelProto& model);

/// Imports DOMAIN, whose operators nodes of MODEL are, at version 1 unless MODEL imports it.
void import_domain(const std::string& domain, onnx::ModelProto& model);

}  // namespace attn_opt
