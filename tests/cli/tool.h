// Runs the built attn-opt in a folder of the test's own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace attn_opt {

struct ToolResult {
  int status = -1;
  std::string out, err;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class ToolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "attn-opt-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Runs attn-opt with ARGUMENTS (of a shell's command line) in folder().
  ToolResult run(const std::string& arguments) {
    const std::string command = "cd '" + folder_.string() + "' && '" ATTN_OPT_BINARY "' " + arguments +
                                " >stdout.txt 2>stderr.txt" + (arguments.find('<') == std::string::npos ? " </dev/null" : "");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "stdout.txt"), read_file(folder_ / "stderr.txt")};
  }

  std::filesystem::path file(const std::string& name) const { return folder_ / name; }
  bool exists(const std::string& name) const { return std::filesystem::exists(file(name)); }

 private:
  std::filesystem::path folder_;
};

/// One line that begins as all errors do.
MATCHER(IsOneErrorLine, "") { return arg.starts_with("attn-opt: ") && arg.find('\n') == arg.size() - 1; }

/// softmax(q k^T) v, SOFTMAX being the operator with its attributes.
inline std::string attention_model(const std::string& softmax = "Softmax <axis = -1>") {
  return "<ir_version: 8, opset_import: [\"\" : 18]>\n"
         "g (float[2,2,5,8] q, float[2,2,5,8] k, float[2,2,5,8] v) => (float[2,2,5,8] y) {\n"
         "  kt = Transpose <perm = [0, 1, 3, 2]> (k)\n"
         "  s = MatMul (q, kt)\n"
         "  p = " +
         softmax +
         " (s)\n"
         "  y = MatMul (p, v)\n"
         "}\n";
}

/// No attention: the softmax runs over the queries.
inline std::string other_model() { return attention_model("Softmax <axis = -2>"); }

}  // namespace attn_opt
