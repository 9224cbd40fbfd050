// NumPy's archives of arrays: a zip file of NAME.npy members (numpy.lib.format, versions 1 to 3).
//
// NumPy has no bfloat16, float8 or smaller types: Python's ml_dtypes saves them as void of their size, and so is read and
// written here; a void array becomes what the model declares.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// By name. Void arrays get the element type that DECLARED gives for their name.
/// Errors: kInvalidInput (no such file, no archive, an array that is cut short), kUnsupported (objects, structures, complex
/// numbers, big-endian numbers), kLimit (an array of more than MEMORY_LIMIT bytes).
Expected<std::map<std::string, Tensor>> read_npz(const std::filesystem::path& path,
                                                 const std::map<std::string, DataType>& declared, size_t memory_limit);

/// Error: kOutput, also for a tensor that numpy cannot hold (sequences, empty optionals). PATH appears whole or not at all.
Status write_npz(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace attn_opt
