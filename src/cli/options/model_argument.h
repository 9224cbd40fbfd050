// A model named on the command line.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/model.h"
#include "src/cli/options/arguments.h"

namespace attn_opt {

struct ModelArgument {
  std::string path;
  std::vector<std::string> data_folders;
};

/// The positional NAME.
void declare_model(CLI::App& app, const std::string& name, ModelArgument& model);
/// --allow-data-dir.
void declare_data_folders(CLI::App& app, std::vector<std::string>& folders);

/// The model, if it is valid ONNX.
Expected<Model> load_valid(const ModelArgument& model);

}  // namespace attn_opt
