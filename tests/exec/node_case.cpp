#include "tests/exec/node_case.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace attn_opt::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double element_excess(double a, double b, double rtol, double atol) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kInfinity;
  if (a == b) return 0;
  const double allowed = atol + rtol * std::abs(b);
  return allowed > 0 ? std::abs(a - b) / allowed : kInfinity;
}

/// The reference rounds to a half type after every step inside an operator; results rounded once differ from it by that.
double two_ulp(DataType type) {
  if (type == onnx::TensorProto::BFLOAT16) return 0x1p-6;
  return type == onnx::TensorProto::FLOAT16 ? 0x1p-9 : 0;
}

Expected<Tensor> read_tensor(const std::filesystem::path& path) {
  onnx::TensorProto proto;
  if (!proto.ParseFromString(read_file(path))) return fail(ErrorCode::kInvalidInput, path.string(), "not a TensorProto");
  ATTN_OPT_TRY(const Tensor view, to_tensor(proto, inline_tensors()));
  if (view.type() == onnx::TensorProto::STRING) return view;
  Tensor copy(view.type(), view.dims());
  std::ranges::copy(view.bytes(), copy.mutable_bytes().begin());
  return copy;
}

Expected<std::vector<Tensor>> run_data_set(const onnx::ModelProto& model, const std::filesystem::path& data,
                                           const ExecutorOptions& options) {
  ATTN_OPT_TRY(const auto executor, Executor::create(model, inline_tensors(), options));
  Feeds feeds;
  for (int i = 0; i < model.graph().input_size(); ++i) {
    const auto& input = model.graph().input(i);
    if (!input.type().has_tensor_type()) {
      return fail(ErrorCode::kUnsupported, input.name(), "unsupported: an input that is not a tensor");
    }
    ATTN_OPT_TRY(feeds[input.name()], read_tensor(data / ("input_" + std::to_string(i) + ".pb")));
  }
  return executor.run(feeds);
}

NodeResult of_error(const Error& error) {
  return {error.code == ErrorCode::kUnsupported ? Outcome::kUnsupported : Outcome::kWrong, error.message()};
}

NodeResult compare(const std::vector<Tensor>& results, const std::filesystem::path& data, bool f64, double rtol, double atol) {
  for (size_t i = 0; i < results.size(); ++i) {
    const auto expected = read_tensor(data / ("output_" + std::to_string(i) + ".pb"));
    if (!expected) return of_error(expected.error());
    Tensor result = results[i];
    if (f64 && is_floating(expected->type())) result = *result.cast(expected->type());
    const double over = excess(result, *expected, std::max(rtol, two_ulp(expected->type())), atol);
    if (over > 1) return {Outcome::kWrong, "output " + std::to_string(i) + " is " + std::to_string(over) + " times the tolerance off"};
  }
  return {};
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

double excess(const Tensor& result, const Tensor& expected, double rtol, double atol) {
  if (result.type() != expected.type() || result.dims() != expected.dims()) return kInfinity;
  if (result.type() == onnx::TensorProto::STRING) {
    return std::ranges::equal(result.data<std::string>(), expected.data<std::string>()) ? 0 : kInfinity;
  }
  const Tensor a = *result.cast(onnx::TensorProto::DOUBLE);
  const Tensor b = *expected.cast(onnx::TensorProto::DOUBLE);
  double most = 0;
  for (size_t i = 0; i < a.data<double>().size(); ++i) {
    most = std::max(most, element_excess(a.data<double>()[i], b.data<double>()[i], rtol, atol));
  }
  return most;
}

NodeResult run_node_case(const std::filesystem::path& folder, const ExecutorOptions& options) {
  onnx::ModelProto model;
  if (!model.ParseFromString(read_file(folder / "model.onnx"))) return {Outcome::kWrong, "not a model"};
  const auto tolerance = nlohmann::json::parse(read_file(folder / "tolerance.json"), nullptr, false);
  for (int set = 0;; ++set) {
    const auto data = folder / ("test_data_set_" + std::to_string(set));
    if (!std::filesystem::exists(data)) return {};
    const auto results = run_data_set(model, data, options);
    if (!results) return of_error(results.error());
    const NodeResult result = compare(*results, data, options.compute_f64, tolerance.value("rtol", 1e-3), tolerance.value("atol", 1e-7));
    if (result.outcome != Outcome::kPass) return result;
  }
}

std::vector<std::filesystem::path> node_cases(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    if (std::filesystem::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

}  // namespace attn_opt::testing
