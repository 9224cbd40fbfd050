// attn-opt.toml.
#include "fuzz/fuzzing.h"
#include "src/cli/options/toml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)attn_opt::parse_toml(attn_opt::fuzzing::text_of(data, size), "attn-opt.toml");
  return 0;
}
