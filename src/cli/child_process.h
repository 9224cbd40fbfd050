// Runs of this program as processes of their own: what one does to itself does not reach the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

struct ChildLimits {
  uint64_t memory = 0;                    ///< bytes of address space; 0: as many as there are
  std::chrono::duration<double> time{0};  ///< 0: any
};

struct ChildResult {
  int status = 0;       ///< exit status; that of kLimit if it was ended by a signal or took too long
  std::string message;  ///< the last error that it wrote, or how it was ended; empty after status 0
  double seconds = 0;
};

/// Runs jobs 0 to COUNT - 1, at most AT_ONCE together: each this program with ARGUMENTS_OF(job). FINISHED is told of each as
/// it ends. Children do not outlive this process. Error: kLimit if no process can be started.
Status run_children(size_t count, size_t at_once, const ChildLimits& limits,
                    const std::function<std::vector<std::string>(size_t job)>& arguments_of,
                    const std::function<Status(size_t job, const ChildResult& result)>& finished);

}  // namespace attn_opt
