// Rule files (docs/rules.md), and what a rule that is one finds in a small model.
#include "attn_opt/model.h"
#include "attn_opt/optimizer.h"
#include "attn_opt/rules.h"
#include "fuzz/fuzzing.h"
#include "src/io/text_format.h"

namespace {

constexpr std::string_view kAttention = R"(<ir_version: 8, opset_import: ["" : 17]>
attention (float[b,2,s,4] q, float[b,2,s,4] k, float[b,2,s,4] v, float[b,1,s,s] mask) => (float[b,2,s,4] y) <float half = {0.5}> {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  scaled = Mul (product, half)
  scores = Add (scaled, mask)
  probabilities = Softmax <axis = -1> (scores)
  y = MatMul (probabilities, v)
}
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attn_opt;
  auto rule = parse_rule(fuzzing::text_of(data, size), "fuzz.rule");
  if (!rule) return 0;
  static const onnx::ModelProto attention = parse_text(kAttention, "fuzz").value();
  Model model{attention, "-", {&inline_tensors(), [](const TensorStore*) {}}};
  OptimizeOptions options;
  options.rules.push_back(*std::move(rule));
  const auto report = optimize(model, options);
  fuzzing::require(report.has_value(), "a rule costs a model its run");
  for (const SiteReport& site : report->sites) fuzzing::require(site.miss_id != "internal.defect", site.found);
  return 0;
}
