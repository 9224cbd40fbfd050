// What no tool that reads and writes a model can avoid: read INPUT, protobuf's parse and serialize, write OUTPUT.
//
//   parse_serialize INPUT.onnx OUTPUT.onnx     prints the CPU time of parse and serialize alone, in milliseconds
#include <onnx/onnx_pb.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace {

double cpu_milliseconds() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool read(const std::filesystem::path& path, std::string& bytes) {
  std::error_code error;
  bytes.resize(std::filesystem::file_size(path, error));
  std::ifstream file(path, std::ios::binary);
  return !error && file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  std::string bytes, written;
  if (argc != 3 || !read(argv[1], bytes)) {
    std::cerr << "usage: parse_serialize INPUT.onnx OUTPUT.onnx\n";
    return 2;
  }
  const double start = cpu_milliseconds();
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || !model.SerializeToString(&written)) return 1;
  std::cout << cpu_milliseconds() - start << '\n' << std::flush;
  std::ofstream(argv[2], std::ios::binary).write(written.data(), static_cast<std::streamsize>(written.size()));
  std::_Exit(0);
}
