// What a misspelt name may have been meant to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attn_opt {

/// That of KNOWN which NAME may have been meant to be.
std::optional<std::string> nearest_name(const std::string& name, const std::vector<std::string>& known);

/// What to do about NAME, which is none of KNOWN: "did you mean X?" if one is near, else all there are.
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace attn_opt
