// Inputs and outputs in the layout of ONNX's test data: a folder of input_N.pb and output_N.pb, each a TensorProto,
// SequenceProto or OptionalProto.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "attn_opt/executor.h"

namespace attn_opt {

struct TestDataSet {
  std::filesystem::path folder;
  Feeds inputs;
  std::map<int, Tensor> outputs;  ///< by number
};

/// The set in FOLDER, or those in its subfolders test_data_set_*, sorted. Input N is the input of GRAPH that
/// its tensor names, else the N-th that has no initializer. Errors: kInvalidInput (no such folder, nothing in
/// it, a file that is no value of the declared type, more inputs than the graph has).
Expected<std::vector<TestDataSet>> read_test_data(const std::filesystem::path& folder, const onnx::GraphProto& graph);

}  // namespace attn_opt
