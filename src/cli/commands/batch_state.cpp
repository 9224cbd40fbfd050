#include "src/cli/commands/batch_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <vector>

#include "attn_opt/internal/model_walk.h"
#include "src/io/external_data.h"
#include "src/io/file.h"
#include "src/io/model_format.h"
#include "src/io/output_file.h"
#include "src/io/wire/strip_weights.h"

namespace attn_opt {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string stamp_of_file(const fs::path& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  const auto modified = fs::last_write_time(path, none).time_since_epoch().count();
  return fmt::format("{}:{}", size, modified);
}

json read_state(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  json document = file ? json::parse(file, nullptr, false) : json();
  return document.is_object() ? document : json();
}

/// The files that hold weights of the model at PATH, beside it; none of what is no model.
std::set<fs::path> data_files_of(const fs::path& path) {
  constexpr uint64_t kWeightBytes = 256;  // larger ones are not read
  if (is_text(path)) return {};
  const auto file = FileBytes::open(path, FileBytes::Kind::kRegular);
  if (!file) return {};
  const auto model = parse_stripped(*file, kWeightBytes, path.string());
  if (!model) return {};
  std::set<fs::path> files;
  for_each_tensor(model->proto, [&](const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    if (const auto entry = read_external_entry(tensor)) files.insert(path.parent_path() / entry->location);
  });
  return files;
}

std::string text_at(const json& state, const char* key) {
  const json value = state.is_null() ? json() : state.value(key, json());
  return value.is_string() ? value.get<std::string>() : "";
}

/// The report at PATH; null if there is none that a batch can sum up.
json read_report(const fs::path& path) {
  json report = read_state(path);
  const json summary = report.is_null() ? json() : report.value("summary", json());
  const bool has_counts = summary.is_object() &&
                          std::ranges::all_of(std::array{"sites", "fused", "refused", "missed"},
                                              [&](const char* key) { return summary.value(key, json()).is_number_integer(); });
  return has_counts && report.value("sites", json()).is_array() ? report : json();
}

constexpr int kUnknownStatus = 3;

int status_of(const json& state) {
  const json status = state.is_null() ? json() : state.value("status", json());
  return status.is_number_integer() ? status.get<int>() : kUnknownStatus;
}

}  // namespace

std::string stamp_of(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return stamp_of_file(path);
  std::vector<std::string> stamps;
  for (const auto& entry : fs::directory_iterator(path, none))
    stamps.push_back(entry.path().filename().string() + "=" + stamp_of_file(entry.path()));
  std::ranges::sort(stamps);
  return fmt::format("{}", fmt::join(stamps, ","));
}

std::string stamp_of_model(const fs::path& path) {
  std::string stamp = stamp_of_file(path);
  for (const fs::path& file : data_files_of(path)) stamp += "," + file.filename().string() + "=" + stamp_of_file(file);
  return stamp;
}

fs::path BatchState::path_of(const BatchInput& input, const char* kind) const {
  fs::path path = folder_ / input.below_root;
  path += kind;
  return path;
}

fs::path BatchState::report_path(const BatchInput& input) const { return path_of(input, ".report.json"); }

bool BatchState::is_finished(const BatchInput& input, const fs::path& output) const {
  constexpr int kUnmet = 1, kMismatch = 4;
  const json state = read_state(path_of(input, ".state.json"));
  const int status = status_of(state);
  if (state.is_null() || (status != 0 && status != kUnmet && status != kMismatch)) return false;
  if (text_at(state, "fingerprint") != fingerprint_ || text_at(state, "model") != stamp_of_model(input.path)) return false;
  const std::string written = text_at(state, "written");
  return !read_report(report_path(input)).is_null() && (written.empty() || written == stamp_of_model(output));
}

Status BatchState::begin(const BatchInput& input) const {
  ATTN_OPT_CHECK(make_folder(report_path(input).parent_path()));
  std::error_code error;
  fs::remove(path_of(input, ".state.json"), error);
  fs::remove(report_path(input), error);
  return {};
}

Status BatchState::enter(const BatchInput& input, const std::string& stamp, const fs::path& output,
                         const ModelOutcome& outcome) const {
  json state = {{"fingerprint", fingerprint_}, {"model", stamp},
                {"status", outcome.status},    {"message", outcome.message},
                {"seconds", outcome.seconds},  {"output", outcome.output}};
  if (!outcome.output.empty()) state["written"] = stamp_of_model(output);
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(path_of(input, ".state.json")));
  ATTN_OPT_CHECK(file.append(state.dump(2, ' ', false, json::error_handler_t::replace) + "\n"));
  return file.replace_target();
}

ModelOutcome BatchState::outcome(const BatchInput& input) const {
  const json state = read_state(path_of(input, ".state.json"));
  ModelOutcome outcome;
  outcome.input = valid_utf8(input.path.string());
  outcome.output = text_at(state, "output");
  outcome.status = status_of(state);
  outcome.message = text_at(state, "message");
  const json seconds = state.is_null() ? json() : state.value("seconds", json());
  outcome.seconds = seconds.is_number() ? seconds.get<double>() : 0;
  outcome.report = read_report(report_path(input));
  return outcome;
}

}  // namespace attn_opt
