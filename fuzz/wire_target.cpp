// Files as they are read: the outline of the wire format that leaves weights in the file, protobuf, ONNX's checker, and
// writing again.
#include "attn_opt/model_bytes.h"
#include "fuzz/fuzzing.h"

namespace attn_opt::fuzzing {
namespace {

constexpr uint64_t kSmallestLeftInFile = 16;

/// What was read can be written, and what was written means the same.
void check_round_trip(const Model& model) {
  const auto bytes = serialize_model(model);
  if (!bytes) return;  // external data that is not there
  const auto again = parse_model(*bytes);
  require(again.has_value(), "what was written cannot be read: " + (again ? "" : again.error().message()));
  const auto twice = serialize_model(*again);
  require(twice.has_value() && *twice == *bytes, "what was written and read is written otherwise");
}

}  // namespace
}  // namespace attn_opt::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attn_opt;
  const fuzzing::MemoryFile file(fuzzing::text_of(data, size));
  LoadOptions options;
  options.min_stripped_bytes = fuzzing::kSmallestLeftInFile;
  const auto stripped = load_model(file.path(), options);
  const auto whole = parse_model(std::string(fuzzing::text_of(data, size)));
  fuzzing::require(stripped.has_value() == whole.has_value(), "a reader takes what the other refuses");
  if (!stripped) return 0;
  const bool is_valid = check_model(*stripped).has_value();
  fuzzing::require(is_valid == check_model(*whole).has_value(), "the checker's answer hangs on where the weights are");
  if (is_valid) fuzzing::check_round_trip(*whole);
  return 0;
}
