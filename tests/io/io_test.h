// What the tests of reading and writing share: a temporary folder, files in it, small models.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "attn_opt/model_io.h"

namespace attn_opt {

namespace fs = std::filesystem;

inline const fs::path kModels = fs::path(ATTN_OPT_TESTDATA) / "models";

std::string read_file(const fs::path& path);
void write_file(const fs::path& path, const std::string& content);
/// All files below FOLDER, relative to it.
std::set<std::string> files_in(const fs::path& folder);

/// y = x + w, with INITIALIZER as the text of w.
std::string add_model(const std::string& initializer);
/// add_model whose w[2] lies in an external file; MORE are further entries, as text.
std::string external_model(const std::string& location, const std::string& more = "");

/// Each test has an empty folder of its own, which is removed after it.
class IoTest : public testing::Test {
 protected:
  IoTest();
  ~IoTest() override;

  /// Loads the text TEXT, written to folder/model.onnxtxt.
  Expected<Model> load_text(const std::string& text, const LoadOptions& options = {});
  /// The message of an error that must be there, of CODE.
  template <class T>
  static std::string error_of(const Expected<T>& result, ErrorCode code) {
    if (result) return "no error";
    EXPECT_EQ(result.error().code, code) << result.error().message();
    EXPECT_EQ(result.error().message().find('\n'), std::string::npos);
    return result.error().message();
  }
  template <class T>
  static std::string input_error(const Expected<T>& result) {
    return error_of(result, ErrorCode::kInvalidInput);
  }

  fs::path folder_;
};

/// While it lives, the process has no rights over files that are not its own, even if it is root's.
class OrdinaryUser {
 public:
  OrdinaryUser();
  ~OrdinaryUser();
};

/// The bytes of the initializer at INDEX, through the model's store.
std::string initializer_bytes(const Model& model, int index = 0);

}  // namespace attn_opt
