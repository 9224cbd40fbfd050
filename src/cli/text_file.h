// Files of text that the command line names.
#pragma once

#include <filesystem>
#include <string>

#include "attn_opt/status.h"

namespace attn_opt {

/// All of the file at PATH. REMEDY: what to do if there is none.
Expected<std::string> read_text(const std::filesystem::path& path, const std::string& remedy = "");

}  // namespace attn_opt
