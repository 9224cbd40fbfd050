#include "src/cli/options/model_argument.h"

#include <spdlog/spdlog.h>

#include "attn_opt/model_io.h"
#include "src/cli/options/command_line.h"
#include "src/io/file.h"
#include "src/io/model_file.h"

namespace attn_opt {
namespace {

/// Only commands have a log; a library says nothing.
void warn_of_repairs(const Model& model) {
  const auto log = spdlog::get("attn-opt");
  const auto* file = dynamic_cast<const ModelFile*>(model.tensors.get());
  if (!log || !file || file->repairs().empty()) return;
  const size_t others = file->repairs().size() - 1;
  log->warn("{}: {}{}", input_name(model.path), file->repairs().front(),
            others ? fmt::format(" ({} more of the kind)", others) : "");
}

}  // namespace

void declare_model(CLI::App& app, const std::string& name, ModelArgument& model) {
  app.add_option(name, model.path, "Model: .onnx, .onnxtxt, or - for standard input")->required();
}

void declare_data_folders(CLI::App& app, std::vector<std::string>& folders) {
  declare_list(app, "--allow-data-dir", folders, "Folder that links to external data may lead to (repeatable)");
}

Expected<Model> load_valid(const ModelArgument& argument) {
  LoadOptions options;
  options.allowed_data_dirs.assign(argument.data_folders.begin(), argument.data_folders.end());
  ATTN_OPT_TRY(Model model, load_model(argument.path, options));
  ATTN_OPT_CHECK(check_model(model));
  warn_of_repairs(model);
  return model;
}

}  // namespace attn_opt
