// Errors as GitHub's runners show them: above the log of a job, and on its summary.
#pragma once

#include <string>

namespace attn_opt {

/// "::error title=attn-opt::MESSAGE" with a line end; empty unless GITHUB_ACTIONS is "true".
std::string github_annotation(const std::string& message);

}  // namespace attn_opt
