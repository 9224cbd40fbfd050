// One way of getting a step of the rewriting wrong, and the places of a site where it can be.
//
// A mutation changes data: the description of a site before it is written (DescriptionMutation), or the edit that was
// written for it (EditMutation). Nothing of the program is altered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn_opt/internal/emit.h"

namespace attn_opt {

template <class Subject>
using Change = std::function<void(Subject&)>;

template <class Subject>
struct Mutation {
  std::string step;    ///< what is got wrong
  std::string change;  ///< how
  /// The change at each place where SUBJECT has one. Each is applied to a copy, or to another emission of the site.
  std::function<std::vector<Change<Subject>>(const Subject&, Facts&)> places;

  std::string name() const { return step + ": " + change; }
};

using DescriptionMutation = Mutation<Sdpa>;
using EditMutation = Mutation<Emission>;

template <class Subject>
std::vector<Change<Subject>> once_if(bool applies, Change<Subject> change) {
  if (!applies) return {};
  return {std::move(change)};
}

std::vector<DescriptionMutation> operand_mutations();
std::vector<DescriptionMutation> layout_mutations();
std::vector<DescriptionMutation> score_mutations();
std::vector<DescriptionMutation> term_mutations();
std::vector<DescriptionMutation> escape_mutations();
std::vector<EditMutation> attention_mutations();
std::vector<EditMutation> layout_node_mutations();
std::vector<EditMutation> arithmetic_mutations();

}  // namespace attn_opt
