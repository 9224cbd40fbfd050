// attn-opt: finds attention in ONNX models and rewrites it into ONNX Attention nodes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>

#ifdef ATTN_OPT_MIMALLOC
#include <mimalloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#endif

#include "src/cli/annotation.h"
#include "src/cli/color.h"
#include "src/cli/commands/dispatch.h"

namespace attn_opt {
namespace {

constexpr int kUnexpectedStatus = 3;

/// Asks the system to back the heap with pages of 2 MiB: faults on small ones cost a fifth of the CPU time on a large
/// graph. mimalloc takes memory in aligned pieces: the one that start-up has begun, then those of what is given to it here.
void prefer_large_pages() {
#ifdef ATTN_OPT_MIMALLOC
  constexpr size_t kPiece = size_t{1} << 25, kReserved = size_t{1} << 30;
  rlimit address_space{};
  if (getrlimit(RLIMIT_AS, &address_space) != 0 || address_space.rlim_cur != RLIM_INFINITY) return;
  const auto begun = std::make_unique<char>();
  madvise(begun.get() - reinterpret_cast<uintptr_t>(begun.get()) % kPiece, kPiece, MADV_HUGEPAGE);
  size_t space = kReserved + kPiece;
  void* start = mmap(nullptr, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return;
  std::align(kPiece, kReserved, start, space);
  madvise(start, kReserved, MADV_HUGEPAGE);
  mi_manage_os_memory(start, kReserved, true, false, true, -1);
#endif
}

int report_error(const Error& error) {
  // The error itself comes last: it is what a batch reads of the runs that it starts.
  std::fprintf(stderr, "%s%s%s\n", github_annotation(error.message()).c_str(), painted_error_begin().c_str(),
               error.message().c_str());
  return exit_status(error.code);
}

int run_and_report(const Arguments& arguments) {
  const Expected<int> status = run_command_line(arguments);
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!status) return report_error(status.error());
  if (written) return *status;
  return report_error({ErrorCode::kOutput, "standard output", "cannot be written", {}});
}

}  // namespace
}  // namespace attn_opt

int main(int argc, char** argv) {
  attn_opt::prefer_large_pages();
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
