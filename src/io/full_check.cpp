#include "src/io/full_check.h"

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <exception>
#include <functional>

#include "src/io/one_line.h"
#include "src/io/runtime_operators.h"

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
  const auto rest = without_runtime_operators(proto);
  const onnx::ModelProto& checked = rest ? *rest : proto;
  const std::string wrong = thrown_by([&] { onnx::checker::check_model(checked, true); });
  if (wrong.empty()) return {};
  const bool is_right = thrown_by([&] {
    onnx::checker::check_model(checked, false);
    onnx::ModelProto inferred = checked;
    const onnx::ShapeInferenceOptions following_contents(true, 1, true);
    onnx::shape_inference::InferShapes(inferred, onnx::OpSchemaRegistry::Instance(), following_contents);
  }).empty();
  return is_right ? "" : wrong;
}

}  // namespace attn_opt
