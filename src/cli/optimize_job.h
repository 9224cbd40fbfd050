// The main job: one model in, one model out, and a report.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/model_io.h"
#include "src/cli/options/model_argument.h"
#include "src/cli/options/optimize_arguments.h"
#include "src/cli/options/requirements.h"
#include "src/cli/options/trial_arguments.h"
#include "src/cli/progress.h"

namespace attn_opt {

struct OptimizeJob {
  ModelArgument input;
  std::string output;  ///< empty: dry run
  OptimizeArguments optimize;
  TrialArguments trial;   ///< of the whole model
  std::string test_data;  ///< folder; empty: inputs are drawn
  Verbosity verbosity;
  std::vector<std::string> reports;
  std::string dump_matches;  ///< folder for a case of each match; empty: none
  Requirements requirements;
  std::string baseline_to_update;  ///< file; empty: none
  Progress::Mode progress = Progress::Mode::kAuto;
  SaveOptions save;
};

/// Errors: of every kind but kUnsupported. The report is given out also when a requirement is not met.
Status run_job(const OptimizeJob& job);

}  // namespace attn_opt
