#include "src/trial/npy_text.h"

#include <cstdint>
#include <cstring>

namespace attn_opt {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

bool is_character(uint32_t code) { return code < 0x110000 && (code < 0xd800 || code > 0xdfff); }

void append_utf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kLead[more] | (code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
}

/// Takes a character off TEXT.
uint32_t take_character(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t more = lead < 0x80 ? 0 : lead >= 0xf0 && lead < 0xf8 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 4;
  uint32_t code = more == 0 ? lead : lead & (0x3fu >> more);
  bool valid = more < 4 && lead < 0xf8 && text.size() > more;
  for (size_t i = 1; valid && i <= more; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    valid = (next & 0xc0) == 0x80;
    code = (code << 6) | (next & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  valid = valid && is_character(code) && code >= kLeast[more];
  text.remove_prefix(valid ? more + 1 : 1);
  return valid ? code : kReplacement;
}

}  // namespace

std::string utf8_of_utf32(std::string_view cell) {
  std::string text;
  size_t zeros = 0;
  for (; cell.size() >= 4; cell.remove_prefix(4)) {
    uint32_t code = 0;
    std::memcpy(&code, cell.data(), 4);
    if (code == 0) {
      ++zeros;
      continue;
    }
    text.append(zeros, '\0');
    zeros = 0;
    append_utf8(is_character(code) ? code : kReplacement, text);
  }
  return text;
}

std::string utf32_of_utf8(std::string_view text) {
  std::string cell;
  while (!text.empty()) {
    const uint32_t code = take_character(text);
    char bytes[4];
    std::memcpy(bytes, &code, 4);
    cell.append(bytes, 4);
  }
  return cell;
}

}  // namespace attn_opt
