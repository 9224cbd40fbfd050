#include "src/cli/text_file.h"

#include "src/io/file.h"

namespace attn_opt {

Expected<std::string> read_text(const std::filesystem::path& path, const std::string& remedy) {
  const Expected<FileBytes> file = FileBytes::open(path);
  std::error_code none;
  if (!file)
    return fail(file.error().code, file.error().where, file.error().what, std::filesystem::exists(path, none) ? "" : remedy);
  const auto bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace attn_opt
