// Text in XML and HTML.
#pragma once

#include <string>

namespace attn_opt {

/// TEXT, which is UTF-8, in an attribute or between tags. Control characters, U+FFFE and U+FFFF have no form in XML 1.0.
std::string xml_escaped(std::string text);

}  // namespace attn_opt
