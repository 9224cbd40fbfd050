// One array in NumPy's .npy format (numpy.lib.format, versions 1 to 3).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// Fills all of BYTES with what comes next; false: there is less.
using ReadBytes = std::function<bool(std::span<std::byte> bytes)>;
using WriteBytes = std::function<Status(std::string_view bytes)>;

/// The array that READ gives. A void array becomes one of DECLARED, whose elements must have its size. `where` of errors is
/// NAME. Errors: kInvalidInput (no array, one that is cut short), kUnsupported (objects, structures, complex numbers,
/// big-endian numbers), kLimit (more than MEMORY_LIMIT bytes).
Expected<Tensor> read_npy(const std::string& name, const ReadBytes& read, DataType declared, size_t memory_limit);

/// Element types that numpy lacks become void of their size. Error: kOutput for what is no tensor.
Status write_npy(const std::string& name, const Tensor& tensor, const WriteBytes& write);

}  // namespace attn_opt
