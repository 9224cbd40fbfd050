// The texts of patterns/rules, compiled in.
#pragma once

#include <string_view>
#include <vector>

namespace attn_opt {

const std::vector<std::string_view>& shipped_rules();

}  // namespace attn_opt
