// What mutations of edits are made of.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/edit.h"
#include "tests/mutation/mutation.h"

namespace attn_opt {

using EditChanges = std::vector<Change<Emission>>;

/// APPLY(emission, node) at each new node that FITS.
template <class Fits, class Apply>
EditChanges at_nodes(const Emission& emission, Fits fits, Apply apply) {
  EditChanges changes;
  const std::vector<Node*>& nodes = emission.edit.nodes();
  for (size_t i = 0; i < nodes.size(); ++i)
    if (fits(*nodes[i])) changes.push_back([=](Emission& changed) { apply(changed, *changed.edit.nodes()[i]); });
  return changes;
}

template <class Fits, class Apply>
EditMutation at_each(std::string step, std::string change, Fits fits, Apply apply) {
  return {std::move(step), std::move(change),
          [=](const Emission& emission, Facts&) { return at_nodes(emission, fits, apply); }};
}

inline auto is_op(std::string op) {
  return [op = std::move(op)](const Node& node) { return node.is(op); };
}

onnx::AttributeProto* attribute_of(Node& node, const std::string& name);
void remove_attribute(Node& node, const std::string& name);
void set_attribute(Node& node, onnx::AttributeProto attribute);

/// Makes NODE a mere copy of its input number INPUT.
void bypass(Node& node, int input = 0);

/// Puts OP of input INPUT of NODE and FURTHER in front of that input.
void insert_before(Emission& emission, Node& node, int input, const std::string& op,
                   const GraphBuilder::Attributes& attributes = {}, const std::vector<Value*>& further = {});

/// A builder of further nodes of EMISSION's edit.
GraphBuilder builder_of(Emission& emission);

}  // namespace attn_opt
