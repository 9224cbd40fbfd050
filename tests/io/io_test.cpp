#include "tests/io/io_test.h"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace attn_opt {

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void write_file(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files.insert(entry.path().lexically_relative(folder).string());
  }
  return files;
}

std::string add_model(const std::string& initializer) {
  return R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y) <)" +
         initializer + R"(> { y = Add (x, w) })";
}

std::string external_model(const std::string& location, const std::string& more) {
  return add_model("float[2] w = [\"location\": \"" + location + "\"" + more + "]");
}

IoTest::IoTest() {
  std::string name = (fs::temp_directory_path() / "attn-opt-io-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

IoTest::~IoTest() { fs::remove_all(folder_); }

Expected<Model> IoTest::load_text(const std::string& text, const LoadOptions& options) {
  write_file(folder_ / "model.onnxtxt", text);
  return load_model(folder_ / "model.onnxtxt", options);
}

OrdinaryUser::OrdinaryUser() {
  constexpr uid_t kNobody = 65534;
  if (getuid() == 0) {
    EXPECT_EQ(seteuid(kNobody), 0);
  }
}

OrdinaryUser::~OrdinaryUser() {
  if (getuid() == 0) {
    EXPECT_EQ(seteuid(0), 0);
  }
}

std::string initializer_bytes(const Model& model, int index) {
  const auto bytes = model.tensors->bytes(model.proto.graph().initializer(index));
  if (!bytes) return bytes.error().message();
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace attn_opt
