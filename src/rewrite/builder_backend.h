// Where the nodes of a GraphBuilder go.
#pragma once

#include <string>

#include "attn_opt/graph.h"

namespace attn_opt {

class Edit;
class GraphDraft;

class BuilderBackend {
 public:
  virtual ~BuilderBackend() = default;
  virtual ModelGraph& view() const = 0;
  virtual Graph& graph() const = 0;
  /// The value that the node of KEY makes and that the graph can read; null if there is none.
  virtual Value* made(const std::string& key) const = 0;
  virtual void keep(const std::string& key, Value& value) = 0;
  /// Takes in NODE, whose inputs and outputs are set; false if it is no valid node, or something was not before.
  virtual bool place(Node& node) = 0;
  virtual Edit* edit() const { return nullptr; }
  virtual GraphDraft* draft() { return nullptr; }
};

}  // namespace attn_opt
