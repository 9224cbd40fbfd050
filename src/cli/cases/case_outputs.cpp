// Runs a case's model before and after on the inputs that the case draws.
#include <fmt/format.h>

#include "attn_opt/executor.h"
#include "src/cli/cases/case_checks.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// What outputs of small models, with values about 1, may differ by.
Tolerance case_tolerance(const OutputCheck& check, DataType type) {
  Tolerance tolerance;
  if (type == P::DOUBLE)
    tolerance = {1e-9, 1e-10};
  else if (type == P::FLOAT)
    tolerance = {1e-5, 2e-6};
  else if (type == P::FLOAT16)
    tolerance = {2e-3, 2e-3};
  else if (type == P::BFLOAT16)
    tolerance = {2e-2, 2e-2};
  return {check.rtol.value_or(tolerance.relative), check.atol.value_or(tolerance.absolute)};
}

Expected<std::vector<Tensor>> run(const Model& model, const DrawnInputs& inputs, const OutputCheck& check) {
  ExecutorOptions options;
  options.compute_f64 = check.compute_f64;
  options.schema_bodies = SchemaBodies::kAttention;
  ATTN_OPT_TRY(const Executor executor, Executor::create(model.proto, *model.tensors, options));
  return run_on(executor, inputs);
}

Status compare(const Case& one, const Model& before, const Model& after, Failures& failures) {
  const OutputCheck& check = *one.verify;
  ATTN_OPT_TRY(const DrawnInputs inputs, draw_inputs(before.proto.graph(), one.draw));
  ATTN_OPT_TRY(const auto expected, run(before, inputs, check));
  ATTN_OPT_TRY(const auto actual, run(after, inputs, check));
  bool type_seen = check.type == onnx::TensorProto::UNDEFINED;
  for (size_t i = 0; i < expected.size() && i < actual.size(); ++i) {
    const std::string output = "output " + before.proto.graph().output(static_cast<int>(i)).name();
    const TensorDifference found = difference(expected[i], actual[i], case_tolerance(check, element_type(expected[i])));
    if (!found.agrees()) failures.push_back(output + ": " + to_string(found));
    if (check.forbid_nan && found.nans_expected + found.nans_actual > 0) {
      failures.push_back(
          fmt::format("{}: {} NaN before, {} after, nan=forbid", output, found.nans_expected, found.nans_actual));
    }
    type_seen = type_seen || element_type(expected[i]) == check.type;
  }
  if (!type_seen) failures.push_back("VERIFY: no output is of type " + type_name(check.type));
  return {};
}

}  // namespace

void check_outputs(const Case& one, const Model& before, const Model& after, Failures& failures) {
  if (const Status compared = compare(one, before, after, failures); !compared) {
    failures.push_back("VERIFY: " + compared.error().message());
  }
}

}  // namespace attn_opt
