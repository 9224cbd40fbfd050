#include "tests/mutation/equivalents.h"

namespace attn_opt {

const std::vector<Equivalent>& equivalents() {
  static const std::vector<Equivalent> all = {
  };
  return all;
}

}  // namespace attn_opt
