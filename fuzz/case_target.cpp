// Regression cases (docs/cases.md): the header, and models in ONNX's textual syntax, which are written and read again.
#include "fuzz/fuzzing.h"
#include "src/cli/cases/case_file.h"
#include "src/io/text_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attn_opt;
  const std::string_view text = fuzzing::text_of(data, size);
  const fuzzing::MemoryFile file(text);
  (void)read_case(file.path());
  (void)operator_lines(text);
  (void)parse_functions(text, "fuzz");
  const auto model = parse_text(text, "fuzz");
  if (!model) return 0;
  if (const auto printed = print_text(*model, "fuzz")) (void)parse_text(*printed, "fuzz");
  return 0;
}
