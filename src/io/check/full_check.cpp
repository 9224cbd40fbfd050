#include "src/io/check/full_check.h"

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <exception>
#include <functional>
#include <optional>

#include "src/io/check/onnx_schemas.h"
#include "src/io/check/runtime_operators.h"
#include "src/io/check/undefined_name.h"
#include "src/io/left_out.h"
#include "src/io/one_line.h"

namespace attn_opt {
namespace {

/// What CHECK throws, in one line; empty if it throws nothing.
std::string thrown_by(const std::function<void()>& check) {
  try {
    check();
    return {};
  } catch (const std::exception& error) {
    return one_line(error.what());
  }
}

}  // namespace

std::string full_check(const onnx::ModelProto& proto) {
  std::optional<onnx::ModelProto> rest;
  const std::string wrong = thrown_by([&] {
    rest = without_runtime_operators(proto);
    onnx::checker::check_model(rest ? *rest : proto, true);
  });
  if (wrong.empty()) return {};
  const bool is_right = thrown_by([&] {
                          onnx::ModelProto inferred = rest ? *rest : proto, completed = inferred;
                          complete_imports(inferred);
                          complete(completed);
                          onnx::checker::check_model(completed, false);
                          const onnx::ShapeInferenceOptions following_contents(true, 1, true);
                          onnx::shape_inference::InferShapes(inferred, &onnx_schemas(), following_contents);
                        }).empty();
  return is_right ? "" : naming_undefined(wrong, proto);
}

}  // namespace attn_opt
