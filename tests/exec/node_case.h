// One of ONNX's backend node tests: a folder with model.onnx, test_data_set_N/{input,output}_M.pb and
// tolerance.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attn_opt/executor.h"

namespace attn_opt::testing {

/// Largest difference between RESULT and EXPECTED as a multiple of what ATOL and RTOL allow; infinity where
/// type, shape, or the places of NaN and infinities differ.
double excess(const Tensor& result, const Tensor& expected, double rtol, double atol);

enum class Outcome { kPass, kWrong, kUnsupported };

struct NodeResult {
  Outcome outcome = Outcome::kPass;
  std::string detail;
};

/// Runs all data sets of FOLDER; results are compared after casting to the expected type when options compute
/// in f64.
NodeResult run_node_case(const std::filesystem::path& folder, const ExecutorOptions& options = {});

/// The folders in ROOT that hold a model.onnx, sorted.
std::vector<std::filesystem::path> node_cases(const std::filesystem::path& root);

/// The whole file; empty if it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace attn_opt::testing
