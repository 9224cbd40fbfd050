// The whole run over one model: check, match, write, verify, raise, check again. Inputs are models, mutated by what they
// mean (model_mutations.h).
#include <algorithm>
#include <random>

#include "attn_opt/model_io.h"
#include "attn_opt/optimizer.h"
#include "attn_opt/target.h"
#include "fuzz/fuzzing.h"
#include "fuzz/model_mutations.h"
#include "src/io/text_format.h"

namespace attn_opt::fuzzing {
namespace {

constexpr size_t kMostMemory = size_t{64} << 20;
constexpr std::chrono::milliseconds kMostTime{300};

std::optional<onnx::ModelProto> model_in(std::string_view bytes) {
  onnx::ModelProto proto;
  if (proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && proto.has_graph()) return proto;
  auto text = parse_text(bytes, "fuzz");
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

/// Options that follow from the input, so that it shows the same each time.
OptimizeOptions options_for(std::string_view bytes) {
  std::minstd_rand random(static_cast<unsigned>(std::hash<std::string_view>()(bytes)));
  OptimizeOptions options;
  options.opset = 23 + static_cast<int>(random() % 3);
  options.strict = random() % 8 == 0;
  options.verify = random() % 8 == 0 ? VerifyMode::kOff : VerifyMode::kSites;
  if (random() % 8 == 0) options.emit.stage = Stage::kFunctions;
  if (random() % 4 == 0) options.emit.form = random() % 2 == 0 ? Form::k3d : Form::k4d;
  options.verification.memory_limit = kMostMemory;
  options.verification.time_limit = kMostTime;
  return options;
}

void check(const Report& report, const Model& model) {
  for (const SiteReport& site : report.sites) require(site.miss_id != "internal.defect", site.name + ": " + site.found);
  if (!report.changed) return;
  const Status valid = check_model(model);
  require(valid.has_value(), "the result is not valid: " + (valid ? "" : valid.error().message()));
}

}  // namespace
}  // namespace attn_opt::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attn_opt;
  const std::string_view bytes = fuzzing::text_of(data, size);
  const auto proto = fuzzing::model_in(bytes);
  if (!proto) return 0;
  Model model{*proto, "-", {&inline_tensors(), [](const TensorStore*) {}}};
  if (!check_model(model)) return 0;
  const auto report = optimize(model, fuzzing::options_for(bytes));
  if (report) fuzzing::check(*report, model);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace attn_opt::fuzzing;
  auto model = model_in(text_of(data, size));
  if (!model) return size;
  mutate(*model, seed);
  const std::string bytes = model->SerializeAsString();
  if (bytes.empty() || bytes.size() > max_size) return size;
  std::ranges::copy(bytes, reinterpret_cast<char*>(data));
  return bytes.size();
}
