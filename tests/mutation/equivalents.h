// Mutants that verification rightly lets pass.
#pragma once

#include <string>
#include <vector>

namespace attn_opt {

struct Equivalent {
  std::string mutation;  ///< Mutation::name()
  std::string model;     ///< stem of the model's file; empty: any
  std::string reason;    ///< why its numbers are those of the right rewrite
};

const std::vector<Equivalent>& equivalents();

}  // namespace attn_opt
