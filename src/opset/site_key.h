// Which nodes are raised alike.
#pragma once

#include <string>

#include "src/opset/raise_site.h"

namespace attn_opt {

/// Equal for nodes of one operator, with the same attributes, the same inputs given and the same outputs
/// given and read, of whose inputs the same is known: types, sizes, contents of constants, which symbolic
/// sizes are equal.
std::string site_key(const RaiseSite& site);

}  // namespace attn_opt
