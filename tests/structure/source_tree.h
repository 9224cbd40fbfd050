// The source files of the project, as the tests of its structure read them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace attn_opt {

namespace fs = std::filesystem;

inline std::string text_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Path below the project's folder and text of every source file in FOLDERS.
inline std::map<std::string, std::string> sources(const std::vector<std::string>& folders) {
  const fs::path root = ATTN_OPT_SOURCE_DIR;
  std::map<std::string, std::string> found;
  for (const std::string& folder : folders) {
    EXPECT_TRUE(fs::is_directory(root / folder)) << folder;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (const auto kind = entry.path().extension(); kind == ".cpp" || kind == ".h" || kind == ".py")
        found[fs::relative(entry.path(), root).string()] = text_of(entry.path());
  }
  return found;
}

inline std::vector<std::string> groups(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> all;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) all.push_back((*match)[1]);
  return all;
}

}  // namespace attn_opt
