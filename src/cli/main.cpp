// attn-opt: finds attention in ONNX models and rewrites it into ONNX Attention nodes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "src/cli/commands.h"

namespace attn_opt {
namespace {

constexpr int kUnexpectedStatus = 3;

int report_error(const Error& error) {
  std::fprintf(stderr, "attn-opt: %s\n", error.message().c_str());
  return exit_status(error.code);
}

Expected<int> run(Arguments arguments) {
  const auto known = commands();
  const auto command = std::find_if(known.begin(), known.end(), [&](const Command& one) {
    return !arguments.empty() && one.name == arguments.front();
  });
  if (command == known.end()) return optimize_command(arguments);
  arguments.erase(arguments.begin());
  return command->run(arguments);
}

int run_and_report(const Arguments& arguments) {
  const Expected<int> status = run(arguments);
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!status) return report_error(status.error());
  if (written) return *status;
  return report_error({ErrorCode::kOutput, "standard output", "cannot be written", {}});
}

}  // namespace
}  // namespace attn_opt

int main(int argc, char** argv) {
  try {
    const int status = attn_opt::run_and_report({argv + std::min(argc, 1), argv + argc});
    std::fflush(nullptr);
    std::_Exit(status);  // nothing that the process still holds is worth taking apart
  } catch (const std::bad_alloc&) {
    std::fputs("attn-opt: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attn-opt: unexpected: %s\n", error.what());
  }
  return attn_opt::kUnexpectedStatus;
}
