#include "src/cli/model_argument.h"

#include "attn_opt/model_io.h"

namespace attn_opt {

void declare_model(CLI::App& app, const std::string& name, ModelArgument& model) {
  app.add_option(name, model.path, "Model: .onnx, .onnxtxt, or - for standard input")->required();
}

void declare_data_folders(CLI::App& app, std::vector<std::string>& folders) {
  declare_list(app, "--allow-data-dir", folders,
               "Folder that links to external data may lead to (repeatable)");
}

Expected<Model> load_valid(const ModelArgument& argument) {
  LoadOptions options;
  options.allowed_data_dirs.assign(argument.data_folders.begin(), argument.data_folders.end());
  ATTN_OPT_TRY(Model model, load_model(argument.path, options));
  ATTN_OPT_CHECK(check_model(model));
  return model;
}

}  // namespace attn_opt
