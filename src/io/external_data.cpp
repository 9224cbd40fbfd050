#include "src/io/external_data.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>

#include "src/io/tensor_bytes.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> refuse(const std::string& what, const std::string& remedy = {}) {
  return fail(ErrorCode::kInvalidInput, {}, what, remedy);
}

Expected<fs::path> judge_location(const std::string& text) {
  if (text.empty()) return refuse("its external data has no location");
  if (text.find('\0') != std::string::npos) return refuse("its external data location holds a NUL character");
  const fs::path location = text;
  if (location.is_absolute()) return refuse("its external data location '" + text + "' is absolute");
  if (std::ranges::find(location, fs::path("..")) != location.end()) {
    return refuse("its external data location '" + text + "' contains '..'");
  }
  return location.lexically_normal();
}

Expected<uint64_t> parse_number(const std::string& key, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > INT64_MAX) {
    return refuse("its external data " + key + " '" + text + "' is not a number of bytes");
  }
  return value;
}

bool lies_in(const fs::path& root, const fs::path& path) { return std::ranges::mismatch(root, path).in1 == root.end(); }

}  // namespace

Expected<ExternalEntry> read_external_entry(const onnx::TensorProto& tensor) {
  std::map<std::string, std::string> values;
  for (const auto& entry : tensor.external_data()) {
    if (!values.emplace(entry.key(), entry.value()).second) {
      return refuse("its external data has more than one '" + entry.key() + "'");
    }
  }
  ExternalEntry result;
  ATTN_OPT_TRY(result.location, judge_location(values["location"]));
  if (values.contains("offset")) {
    ATTN_OPT_TRY(result.offset, parse_number("offset", values["offset"]));
  }
  ATTN_OPT_TRY(result.length, raw_byte_size(tensor));
  if (values.contains("length")) {
    ATTN_OPT_TRY(const uint64_t length, parse_number("length", values["length"]));
    if (length != result.length) {
      return refuse("its external data has " + std::to_string(length) + " bytes; its dimensions and type ask for " +
                    std::to_string(result.length));
    }
  }
  return result;
}

DataFolders::DataFolders(const fs::path& model_path, const std::vector<fs::path>& allowed) {
  base_ = model_path == "-" ? fs::path(".") : model_path.parent_path();
  if (base_.empty()) base_ = ".";
  std::vector<fs::path> folders = {base_};
  std::error_code ignored;
  if (model_path != "-") folders.push_back(fs::canonical(model_path, ignored).parent_path());
  folders.insert(folders.end(), allowed.begin(), allowed.end());
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path root = fs::canonical(folder, error);
    if (!error) roots_.push_back(root);
  }
}

Expected<fs::path> DataFolders::resolve(const fs::path& location) const {
  const fs::path named = base_ / location;
  std::error_code error;
  fs::path file = fs::canonical(named, error);
  if (error) return refuse("its external data file '" + named.string() + "' cannot be opened: " + error.message());
  const bool allowed = std::ranges::any_of(roots_, [&file](const fs::path& root) { return lies_in(root, file); });
  if (!allowed) {
    return refuse("its external data file '" + named.string() + "' leads out of the model's folder to '" + file.string() + "'",
                  "if it is meant to, give --allow-data-dir " + file.parent_path().string());
  }
  return file;
}

}  // namespace attn_opt
