// Sizes that are one atom and nothing else.
#pragma once

#include "attn_opt/dim.h"

namespace attn_opt {

/// The atom that DIM is; null if it is a number, a sum or a product.
inline const Atom* sole_atom(const Dim& dim) {
  const auto terms = dim.terms();
  const bool is_atom = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].factors.size() == 1;
  return is_atom ? terms[0].factors[0].get() : nullptr;
}
const Atom* sole_atom(Dim&& dim) = delete;  // the atom would go with it

}  // namespace attn_opt
