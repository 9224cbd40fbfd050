#pragma once

#include <string>
#include <vector>

namespace attn_opt {

/// What to do about NAME, which is none of KNOWN: "did you mean X?" if one is near, else all there are.
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace attn_opt
