#include "src/trial/test_data.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "src/exec/value_proto.h"
#include "src/io/file.h"
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

/// The value that FILE holds, of the type of the input or output that DECLARED is.
Expected<NamedValue> read_value(const fs::path& file, const onnx::ValueInfoProto& declared) {
  ATTN_OPT_TRY(const FileBytes opened, FileBytes::open(file, FileBytes::Kind::kRegular));
  auto value = parse_value(opened.bytes(), declared.type());
  if (!value) return fail(value.error().code, file.string(), value.error().what);
  return value;
}

tl::unexpected<Error> one_too_many(const fs::path& file, size_t there_are, const std::string& what) {
  return fail(ErrorCode::kInvalidInput, file.string(), "the model has " + std::to_string(there_are) + " " + what);
}

/// Input NUMBER is what its value's name says, else the one at that place.
Status add_input(const fs::path& file, int number, const onnx::GraphProto& graph, TestDataSet& set) {
  const auto required = required_inputs(graph);
  const auto at = static_cast<size_t>(number);
  const onnx::ValueInfoProto* place = at < required.size() ? required[at] : nullptr;
  if (graph.input().empty()) return one_too_many(file, 0, "inputs");
  ATTN_OPT_TRY(NamedValue read, read_value(file, place != nullptr ? *place : graph.input(0)));
  for (const auto& input : graph.input()) {
    if (!read.name.empty() && input.name() == read.name) place = &input;
  }
  if (place == nullptr) return one_too_many(file, required.size(), "inputs and none called '" + read.name + "'");
  set.inputs.emplace(place->name(), std::move(read.value));
  return {};
}

Status add_file(const fs::path& file, const onnx::GraphProto& graph, TestDataSet& set) {
  if (const auto input = number_of(file, "input")) return add_input(file, *input, graph, set);
  const auto output = number_of(file, "output");
  if (!output) return {};
  if (*output >= graph.output_size()) return one_too_many(file, static_cast<size_t>(graph.output_size()), "outputs");
  ATTN_OPT_TRY(NamedValue read, read_value(file, graph.output(*output)));
  set.outputs.emplace(*output, std::move(read.value));
  return {};
}

Expected<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) return fail(ErrorCode::kInvalidInput, folder.string(), "cannot be read: " + error.message());
  std::ranges::sort(entries);
  return entries;
}

Expected<TestDataSet> read_set(const fs::path& folder, const onnx::GraphProto& graph) {
  TestDataSet set{folder, {}, {}};
  ATTN_OPT_TRY(const auto entries, entries_of(folder));
  for (const fs::path& file : entries) ATTN_OPT_CHECK(add_file(file, graph, set));
  return set;
}

}  // namespace

Expected<std::vector<TestDataSet>> read_test_data(const std::filesystem::path& folder, const onnx::GraphProto& graph) {
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
    return fail(ErrorCode::kInvalidInput, folder.string(), "holds neither input_N.pb nor test_data_set_N folders");
  }
  sets.push_back(std::move(set));
  return sets;
}

}  // namespace attn_opt
