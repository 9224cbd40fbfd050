// The keyword arguments of the Python functions as the command's arguments.
#pragma once

#include "python/src/scope.h"
#include "src/cli/optimize_job.h"

namespace attn_opt::python {

/// What a model is given as: a path, or bytes whose external data lies in the folder PATH.
struct ModelSource {
  std::string path;
  std::optional<std::string> bytes = std::nullopt;
  std::vector<std::string> data_folders = {};

  bool in_memory() const { return bytes.has_value(); }
  /// The model, if it is valid ONNX. Takes the bytes.
  Expected<Model> load();
};

ModelSource source_of(nb::handle model);

/// Keys are fields of what the result is made of; those that are missing keep their defaults.
OptimizeJob job_of(const nb::dict& options);
TrialArguments trial_of(const nb::dict& options);

}  // namespace attn_opt::python
