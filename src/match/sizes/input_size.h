// Sizes that graph inputs declare.
#pragma once

#include "src/match/sizes/sole_atom.h"

namespace attn_opt {

/// The size that an input declares as DIM_PARAM: the expression that exporters write. What only spells another name anew
/// ("batch*1", "(batch)") none of them writes; it is a name of its own, by which another size may be called.
inline Dim input_size(const std::string& dim_param) {
  Dim dim = Dim::parse(dim_param);
  const Atom* const name = sole_atom(dim);
  return name && is_own_size(*name) && name->name != dim_param ? Dim::symbol(dim_param) : dim;
}

}  // namespace attn_opt
