#include "src/cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

struct Child {
  size_t job = 0;
  Clock::time_point begin = Clock::now();
  std::unique_ptr<std::FILE, CloseFile> errors;  ///< its standard error
  bool is_too_late = false;
};

/// In the new process, where nothing but plain system calls is safe.
[[noreturn]] void become(char* const* arguments, int errors, const ChildLimits& limits, const sigset_t& signals) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (limits.memory > 0) {
    const rlimit most = {limits.memory, limits.memory};
    setrlimit(RLIMIT_AS, &most);
  }
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

constexpr std::string_view kErrorBegin = "attn-opt: ";

/// The last line of errors, without what all begin with.
std::string last_error(std::FILE* errors) {
  constexpr long kMost = 8192;
  std::fseek(errors, 0, SEEK_END);
  const long size = std::ftell(errors);
  std::fseek(errors, std::max(0L, size - kMost), SEEK_SET);
  std::string text(static_cast<size_t>(std::min(size, kMost)), '\0');
  text.resize(std::fread(text.data(), 1, text.size(), errors));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');
  if (line != std::string::npos) text.erase(0, line + 1);
  return text.starts_with(kErrorBegin) ? text.substr(kErrorBegin.size()) : text;
}

ChildResult result_of(const Child& child, int waited, const ChildLimits& limits) {
  ChildResult result;
  result.seconds = seconds_since(child.begin);
  const std::string said = last_error(child.errors.get());
  const int killed = exit_status(ErrorCode::kLimit);
  if (child.is_too_late) {
    result = {killed, fmt::format("took longer than {:g} s (--timeout)", limits.time.count()), result.seconds};
  } else if (WIFSIGNALED(waited)) {
    result.status = killed;
    result.message = std::string("was ended by a signal: ") + strsignal(WTERMSIG(waited)) + (said.empty() ? "" : "; " + said);
  } else {
    constexpr int kHighestStatus = 5;
    const int status = WEXITSTATUS(waited);
    result.status = status > kHighestStatus ? killed : status;
    if (status != 0) result.message = said.empty() ? "ended with status " + std::to_string(status) : said;
  }
  return result;
}

class Children {
 public:
  explicit Children(const ChildLimits& limits) : limits_(limits) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before_);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const auto& [process, child] : running_) kill(process, SIGKILL);
    for (const auto& [process, child] : running_) waitpid(process, nullptr, 0);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  size_t running() const { return running_.size(); }

  Status start(size_t job, std::vector<std::string> arguments) {
    Child child;
    child.job = job;
    child.errors.reset(std::tmpfile());
    if (!child.errors) return cannot_start();
    arguments.insert(arguments.begin(), "attn-opt");
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process == 0) become(words.data(), fileno(child.errors.get()), limits_, before_);
    if (process < 0) return cannot_start();
    running_.emplace(process, std::move(child));
    return {};
  }

  /// Waits until some have ended.
  Status wait(const std::function<Status(size_t, const ChildResult&)>& finished) {
    while (true) {
      bool any = false;
      for (auto child = running_.begin(); child != running_.end();) {
        int waited = 0;
        if (waitpid(child->first, &waited, WNOHANG) != child->first) {
          ++child;
          continue;
        }
        any = true;
        const size_t job = child->second.job;
        const ChildResult result = result_of(child->second, waited, limits_);
        child = running_.erase(child);
        ATTN_OPT_CHECK(finished(job, result));
      }
      if (any) return {};
      sleep_until_one_ends();
      end_late_ones();
    }
  }

 private:
  static Status cannot_start() {
    return fail(ErrorCode::kLimit, "batch", std::string("cannot start a process: ") + std::strerror(errno));
  }

  void sleep_until_one_ends() const {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const timespec most = {0, std::chrono::nanoseconds(20ms).count()};
    sigtimedwait(&child, nullptr, &most);
  }

  void end_late_ones() {
    if (limits_.time.count() <= 0) return;
    for (auto& [process, child] : running_) {
      if (child.is_too_late || Clock::now() - child.begin < limits_.time) continue;
      child.is_too_late = true;
      kill(process, SIGKILL);
    }
  }

  const ChildLimits& limits_;
  sigset_t before_{};
  std::map<pid_t, Child> running_;
};

}  // namespace

Status run_children(size_t count, size_t at_once, const ChildLimits& limits,
                    const std::function<std::vector<std::string>(size_t)>& arguments_of,
                    const std::function<Status(size_t, const ChildResult&)>& finished) {
  Children children(limits);
  for (size_t next = 0; next < count || children.running() > 0;) {
    if (next < count && children.running() < at_once) {
      ATTN_OPT_CHECK(children.start(next, arguments_of(next)));
      ++next;
    } else {
      ATTN_OPT_CHECK(children.wait(finished));
    }
  }
  return {};
}

}  // namespace attn_opt
