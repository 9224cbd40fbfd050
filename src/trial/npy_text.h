// NumPy holds strings in UTF-32, ONNX in UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace attn_opt {

/// CELL's little-endian UTF-32 without the zeros at its end. What is no character becomes U+FFFD.
std::string utf8_of_utf32(std::string_view cell);
/// Little-endian UTF-32. Bytes that are no UTF-8 become U+FFFD, one each.
std::string utf32_of_utf8(std::string_view text);

}  // namespace attn_opt
