#include "src/trial/test_data.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <system_error>

#include "src/trial/draw_inputs.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

/// N if FILE is called PREFIX_N.pb.
std::optional<int> number_of(const fs::path& file, const std::string& prefix) {
  const std::string stem = file.stem().string();
  if (file.extension() != ".pb" || !stem.starts_with(prefix + "_")) return std::nullopt;
  int number = 0;
  const char *begin = stem.data() + prefix.size() + 1, *end = stem.data() + stem.size();
  const auto [parsed, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || parsed != end || number < 0) return std::nullopt;
  return number;
}

Expected<onnx::TensorProto> read_tensor(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  onnx::TensorProto tensor;
  if (!stream || !tensor.ParseFromIstream(&stream) || tensor.data_type() == onnx::TensorProto::UNDEFINED) {
    return fail(ErrorCode::kInvalidInput, file.string(), "is not a TensorProto");
  }
  return tensor;
}

Expected<std::string> input_name(const onnx::TensorProto& tensor, int number, const onnx::GraphProto& graph,
                                 const fs::path& file) {
  for (const auto& input : graph.input()) {
    if (!tensor.name().empty() && input.name() == tensor.name()) return tensor.name();
  }
  const auto required = required_inputs(graph);
  if (static_cast<size_t>(number) < required.size()) return required[static_cast<size_t>(number)]->name();
  return fail(
      ErrorCode::kInvalidInput, file.string(),
      "the model has " + std::to_string(required.size()) + " inputs and none called '" + tensor.name() + "'");
}

Status add_file(const fs::path& file, const onnx::GraphProto& graph, TestDataSet& set) {
  const auto input = number_of(file, "input"), output = number_of(file, "output");
  if (!input && !output) return {};
  ATTN_OPT_TRY(onnx::TensorProto read, read_tensor(file));
  const onnx::TensorProto& proto = set.protos.emplace_back(std::move(read));
  auto tensor = to_tensor(proto, inline_tensors());
  if (!tensor) return fail(tensor.error().code, file.string(), tensor.error().what);
  if (output) {
    set.outputs.emplace(*output, *std::move(tensor));
    return {};
  }
  ATTN_OPT_TRY(std::string name, input_name(proto, *input, graph, file));
  set.inputs.emplace(std::move(name), *std::move(tensor));
  return {};
}

Expected<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) return fail(ErrorCode::kInvalidInput, folder.string(), "cannot be read: " + error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

Expected<TestDataSet> read_set(const fs::path& folder, const onnx::GraphProto& graph) {
  TestDataSet set{folder, {}, {}, {}};
  ATTN_OPT_TRY(const auto entries, entries_of(folder));
  for (const fs::path& file : entries) ATTN_OPT_CHECK(add_file(file, graph, set));
  return set;
}

}  // namespace

Expected<std::vector<TestDataSet>> read_test_data(const std::filesystem::path& folder,
                                                  const onnx::GraphProto& graph) {
  std::vector<TestDataSet> sets;
  ATTN_OPT_TRY(const auto entries, entries_of(folder));
  for (const fs::path& entry : entries) {
    std::error_code none;
    if (!entry.filename().string().starts_with("test_data_set_") || !fs::is_directory(entry, none)) continue;
    ATTN_OPT_TRY(TestDataSet set, read_set(entry, graph));
    sets.push_back(std::move(set));
  }
  if (!sets.empty()) return sets;
  ATTN_OPT_TRY(TestDataSet set, read_set(folder, graph));
  if (set.inputs.empty() && set.outputs.empty()) {
    return fail(ErrorCode::kInvalidInput, folder.string(),
                "holds neither input_N.pb nor test_data_set_N folders");
  }
  sets.push_back(std::move(set));
  return sets;
}

}  // namespace attn_opt
