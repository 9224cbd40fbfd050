// Completions of shells, made from the options as they are declared.
#pragma once

#include <string>

namespace attn_opt {

std::string bash_completions();
std::string zsh_completions();
std::string fish_completions();

}  // namespace attn_opt
