// Numbers in messages.
#pragma once

#include <cstdio>
#include <string>

namespace attn_opt {

/// NUMBER in as many digits as tell any two floats apart: "-65504", "-3.40282347e+38".
inline std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

}  // namespace attn_opt
