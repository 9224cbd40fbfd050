#include "src/report/xml.h"

namespace attn_opt {

std::string xml_escaped(std::string text) {
  for (const char* none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    for (size_t at = text.find(none); at != std::string::npos; at = text.find(none)) text.replace(at, 3, "?");
  std::string xml;
  for (const char c : text) {
    switch (c) {
      case '&': xml += "&amp;"; break;
      case '<': xml += "&lt;"; break;
      case '>': xml += "&gt;"; break;
      case '"': xml += "&quot;"; break;
      case '\t':
      case '\n': xml += ' '; break;
      default: xml += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return xml;
}

}  // namespace attn_opt
