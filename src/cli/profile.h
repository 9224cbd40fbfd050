// How long each node of a run took, in the format of Chrome's tracing (Trace Event Format, complete events; chrome://tracing
// and Perfetto show it).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attn_opt/executor.h"

namespace attn_opt {

class Profile {
 public:
  void add(const NodeRun& run);
  /// Error: kOutput.
  Status write(const std::filesystem::path& path) const;

 private:
  struct Event {
    std::string op_type, node, inputs, outputs;
    std::chrono::steady_clock::time_point start, end;
  };

  std::vector<Event> events_;
};

}  // namespace attn_opt
