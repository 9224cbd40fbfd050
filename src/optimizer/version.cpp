#include "attn_opt/version.h"

namespace attn_opt {

std::string_view version() { return ATTN_OPT_VERSION; }

}  // namespace attn_opt
