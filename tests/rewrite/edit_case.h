// A model and edits of it.
#pragma once

#include "attn_opt/edit.h"
#include "tests/text_model.h"

namespace attn_opt {

struct EditCase : Viewed {
  using Viewed::Viewed;

  /// An edit before the original node that makes NAME.
  Edit edit(const std::string& name) { return Edit(*view, *original(name)); }

  /// Commits: NAME is made by OP of Abs(x).
  void replace(const std::string& name, const std::string& op) {
    Edit change = edit(name);
    GraphBuilder build(change, shared, "site");
    change.take_over(value(name), *build.node(op, {build.node("Abs", {&value("x")})}));
    change.commit(shared);
  }

  std::string compacted() {
    view->compact();
    return nodes();
  }

  SharedNodes shared;

 private:
  /// The listed node that makes or, before it was taken over, made NAME.
  Node* original(const std::string& name) {
    for (Node* node : view->main().nodes())
      for (const Value* output : node->outputs)
        if (output && (output->name == name || output->name == name + "_unfused")) return node;
    return nullptr;
  }
};

}  // namespace attn_opt
