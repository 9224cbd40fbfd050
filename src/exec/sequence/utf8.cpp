#include "src/exec/sequence/utf8.h"

#include <clocale>
#include <cstdint>
#include <cwctype>

namespace attn_opt {
namespace {

/// The C library's tables of Unicode; the global locale knows ASCII where there are none.
locale_t unicode_locale() {
  static const locale_t locale = [] {
    const locale_t found = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return found != nullptr ? found : newlocale(LC_CTYPE_MASK, "C", nullptr);
  }();
  return locale;
}

template <class Map>
std::optional<std::string> mapped(std::string_view text, Map&& map) {
  std::string result;
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point) return std::nullopt;
    append_utf8(result, static_cast<char32_t>(map(static_cast<wint_t>(point->value))));
    text.remove_prefix(point->bytes);
  }
  return result;
}

}  // namespace

std::optional<CodePoint> first_code_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : (lead >= 0xe0 ? 3 : 2);
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return std::nullopt;
  char32_t value = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return std::nullopt;
    value = value << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kLeast[bytes] || value > 0x10ffff || surrogate) return std::nullopt;
  return CodePoint{value, bytes};
}

void append_utf8(std::string& text, char32_t value) {
  const auto rest = [&](int shift) { text += static_cast<char>(0x80 | (value >> shift & 0x3f)); };
  if (value < 0x80) {
    text += static_cast<char>(value);
  } else if (value < 0x800) {
    text += static_cast<char>(0xc0 | value >> 6);
    rest(0);
  } else if (value < 0x10000) {
    text += static_cast<char>(0xe0 | value >> 12);
    rest(6);
    rest(0);
  } else {
    text += static_cast<char>(0xf0 | value >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

bool is_white_space(char32_t value) {
  return (value >= 0x09 && value <= 0x0d) || (value >= 0x1c && value <= 0x20) || value == 0x85 || value == 0xa0 ||
         value == 0x1680 || (value >= 0x2000 && value <= 0x200a) || value == 0x2028 || value == 0x2029 || value == 0x202f ||
         value == 0x205f || value == 0x3000;
}

std::optional<std::string> upper_case(std::string_view text) {
  return mapped(text, [](wint_t value) { return towupper_l(value, unicode_locale()); });
}

std::optional<std::string> lower_case(std::string_view text) {
  return mapped(text, [](wint_t value) { return towlower_l(value, unicode_locale()); });
}

}  // namespace attn_opt
