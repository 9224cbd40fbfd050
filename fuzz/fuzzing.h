// What the fuzz targets share. A target is a file NAME_target.cpp with LLVMFuzzerTestOneInput(), which libFuzzer or
// replay.cpp calls. It fails by ending the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
/// Where a target mutates inputs by what they mean. Returns the new size.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);

namespace attn_opt::fuzzing {

inline std::string_view text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

/// Ends the process where HOLDS is false.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

/// A file without a name in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  std::filesystem::path path() const;

 private:
  int descriptor_ = -1;
};

}  // namespace attn_opt::fuzzing
