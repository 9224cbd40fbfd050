#include "tests/exec/node_case.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/exec/value_proto.h"
#include "tests/exec/random_case.h"

namespace attn_opt::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double element_excess(double a, double b, double rtol, double atol) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kInfinity;
  if (a == b) return 0;
  const double allowed = atol + rtol * std::abs(b);
  return allowed > 0 ? std::abs(a - b) / allowed : kInfinity;
}

/// The reference rounds to a half type after every step inside an operator; results rounded once differ from
/// it by that.
double two_ulp(DataType type) {
  if (type == onnx::TensorProto::BFLOAT16) return 0x1p-6;
  return type == onnx::TensorProto::FLOAT16 ? 0x1p-9 : 0;
}

Expected<Tensor> read_value(const std::filesystem::path& path, const onnx::TypeProto& type) {
  const std::string bytes = read_file(path);
  ATTN_OPT_TRY(NamedValue read, parse_value(std::as_bytes(std::span(bytes)), type));
  return std::move(read.value);
}

Expected<Feeds> read_feeds(const onnx::GraphProto& graph, const std::filesystem::path& data) {
  Feeds feeds;
  for (int i = 0; i < graph.input_size(); ++i) {
    const auto& input = graph.input(i);
    ATTN_OPT_TRY(feeds[input.name()], read_value(data / ("input_" + std::to_string(i) + ".pb"), input.type()));
  }
  return feeds;
}

NodeResult of_error(const Error& error) {
  return {error.code == ErrorCode::kUnsupported ? Outcome::kUnsupported : Outcome::kWrong, error.message()};
}

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
};

/// Largest excess of a tensor's or a sequence's elements.
double value_excess(const Tensor& result, const Tensor& expected, bool f64, const Tolerance& tolerance) {
  if (expected.is_empty_optional() || result.is_empty_optional()) {
    return expected.is_empty_optional() && result.is_empty_optional() ? 0 : kInfinity;
  }
  if (!expected.is_sequence()) {
    const bool narrows = f64 && is_floating(expected.type()) && is_floating(result.type());
    const Tensor narrow = narrows ? *result.cast(expected.type()) : result;
    return excess(narrow, expected, std::max(tolerance.rtol, two_ulp(expected.type())), tolerance.atol);
  }
  if (!result.is_sequence() || result.elements().size() != expected.elements().size()) return kInfinity;
  double most = 0;
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    most = std::max(most, value_excess(result.elements()[i], expected.elements()[i], f64, tolerance));
  }
  return most;
}

NodeResult compare(const std::vector<Tensor>& results, const onnx::GraphProto& graph, const std::filesystem::path& data,
                   bool f64, const Tolerance& tolerance) {
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& type = graph.output(static_cast<int>(i)).type();
    const auto expected = read_value(data / ("output_" + std::to_string(i) + ".pb"), type);
    if (!expected) return of_error(expected.error());
    const double over = value_excess(results[i], *expected, f64, tolerance);
    if (over > 1) {
      return {Outcome::kWrong, "output " + std::to_string(i) + " is " + std::to_string(over) + " times the tolerance off"};
    }
  }
  return {};
}

Expected<NodeResult> run_data_set(const onnx::ModelProto& model, const std::filesystem::path& data,
                                  const ExecutorOptions& options, const Tolerance& tolerance) {
  ATTN_OPT_TRY(const Feeds feeds, read_feeds(model.graph(), data));
  ATTN_OPT_TRY(const auto executor, Executor::create(model, inline_tensors(), options));
  ATTN_OPT_TRY(const auto results, executor.run(feeds));
  if (!is_draw(model.graph(), feeds)) {
    return compare(results, model.graph(), data, options.compute_f64, tolerance);
  }
  const std::string why = improbable(model.graph(), feeds, results);
  return NodeResult{why.empty() ? Outcome::kPass : Outcome::kWrong, why};
}

/// What expected outputs are off by themselves. Those of an inverse transform were computed in float32: where 0 is right they
/// say 1.9e-7, more than their tolerance.
double error_of_reference(const std::string& test) { return test.starts_with("test_dft_inverse") ? 2e-7 : 0; }

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
  const auto given = nlohmann::json::parse(read_file(folder / "tolerance.json"), nullptr, false);
  const Tolerance tolerance{given.value("rtol", 1e-3),
                            std::max(given.value("atol", 1e-7), error_of_reference(folder.filename().string()))};
  for (int set = 0;; ++set) {
    const auto data = folder / ("test_data_set_" + std::to_string(set));
    if (!std::filesystem::exists(data)) return {};
    const auto result = run_data_set(model, data, options, tolerance);
    if (!result) return of_error(result.error());
    if (result->outcome != Outcome::kPass) return *result;
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
