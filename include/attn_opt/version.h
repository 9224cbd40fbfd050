// The version of the library.
#pragma once

#include <string_view>

namespace attn_opt {

/// "MAJOR.MINOR.PATCH", as Semantic Versioning has it.
std::string_view version();

}  // namespace attn_opt
