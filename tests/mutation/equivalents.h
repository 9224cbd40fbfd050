// Mutants that verification rightly lets pass.
#pragma once

#include <string>
#include <vector>

namespace attn_opt {

struct Equivalent {
  std::string mutation;  ///< Mutation::name()
  std::string model;     ///< stem of the model's file; behind a "*" a part of it
  std::string reason;    ///< why its numbers are those of the right rewrite

  bool is_for(const std::string& other_model) const;
};

/// Of what a site is described as, of the nodes that are written, of the numbers among these, and all.
const std::vector<Equivalent>& equivalent_descriptions();
const std::vector<Equivalent>& equivalent_preconditions();
const std::vector<Equivalent>& equivalent_nodes();
const std::vector<Equivalent>& equivalent_numbers();
const std::vector<Equivalent>& equivalents();

}  // namespace attn_opt
