// What the commands share, for files that do without the headers of CLI11: they take longer to read than most files.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace attn_opt {

using Arguments = std::vector<std::string>;

struct Verbosity {
  int verbose = 0;
  bool quiet = false;
};

/// -v and -q.
void declare_verbosity(CLI::App& app, Verbosity& verbosity);
/// Log lines go to standard error.
void set_up_log(const Verbosity& verbosity);

}  // namespace attn_opt
