// Runs a fuzz target without libFuzzer, with any compiler: every input of given files and folders, then mutations of them,
// the same in each run. An input that ends the process is left in FILE of --crash.
//
//   fuzz_TARGET [--mutations N] [--seed N] [--seconds N] [--largest BYTES] [--crash FILE] PATH...
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz/fuzzing.h"

extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<uint8_t>;

constexpr unsigned kMostSeconds = 120;  // for one input
constexpr rlim_t kMostMemory = rlim_t{6} << 30;

struct Arguments {
  int mutations = 0;
  unsigned seed = 1;
  double seconds = 0;  // 0: no end
  size_t largest = size_t{1} << 20;
  std::string crash;
  std::vector<fs::path> paths;
};

struct Input {
  std::string name;
  Bytes bytes;
};

// What is being run, for the handlers, which may not allocate.
const Bytes* running = nullptr;
char running_name[512] = "";
char crash_file[512] = "";

void leave_input() {
  if (!running) return;
  const auto say = [](const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); };
  say("fuzz: while running ");
  say(running_name);
  say("\n");
  if (crash_file[0] == '\0') return;
  const int file = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  (void)!write(file, running->data(), running->size());
  close(file);
  running = nullptr;
}

void on_signal(int number) {
  leave_input();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

/// An input that asks for more ends the process, as it would a small machine's.
void limit_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min(limit.rlim_cur, kMostMemory);
  setrlimit(RLIMIT_AS, &limit);
}

void run(const Bytes& bytes, const std::string& name) {
  running = &bytes;
  std::snprintf(running_name, sizeof running_name, "%s", name.c_str());
  alarm(kMostSeconds);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  alarm(0);
  running = nullptr;
}

Bytes bytes_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<Input> inputs_of(const Arguments& given) {
  std::vector<fs::path> files;
  for (const fs::path& path : given.paths) {
    attn_opt::fuzzing::require(fs::exists(path), path.string() + " is not there");
    if (!fs::is_directory(path))
      files.push_back(path);
    else
      for (const auto& entry : fs::recursive_directory_iterator(path))
        if (entry.is_regular_file() && entry.file_size() <= given.largest) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Input> inputs;
  inputs.reserve(files.size());
  for (const fs::path& file : files) inputs.push_back({file.string(), bytes_of(file)});
  return inputs;
}

/// A change as byte fuzzers make them: bits, pieces that go, come twice or come from another input, numbers at their bounds.
void change_bytes(Bytes& bytes, const Bytes& other, std::mt19937& random) {
  const auto below = [&random](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const size_t at = below(bytes.size()), length = 1 + below(std::min<size_t>(bytes.size() - at, 64));
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  constexpr uint8_t kBounds[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '"', '\n', '[', '{', '('};
  switch (random() % 6) {
    case 0:
      if (!bytes.empty()) bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
      break;
    case 1:
      if (!bytes.empty()) bytes[at] = kBounds[below(std::size(kBounds))];
      break;
    case 2:
      if (!bytes.empty()) bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(length, bytes.size() - at)));
      break;
    case 3: bytes.insert(begin, kBounds[below(std::size(kBounds))]); break;
    case 4: {
      const Bytes piece(begin, begin + static_cast<std::ptrdiff_t>(std::min(length, bytes.size() - at)));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)), piece.begin(), piece.end());
      break;
    }
    default: {
      const size_t from = below(other.size()), size = below(std::min<size_t>(other.size() - from, 256));
      bytes.insert(begin, other.begin() + static_cast<std::ptrdiff_t>(from),
                   other.begin() + static_cast<std::ptrdiff_t>(from + size));
    }
  }
}

void mutate(Bytes& bytes, const Bytes& other, size_t largest, std::mt19937& random) {
  if (LLVMFuzzerCustomMutator) {
    const size_t size = bytes.size();
    bytes.resize(largest);
    bytes.resize(LLVMFuzzerCustomMutator(bytes.data(), size, largest, static_cast<unsigned>(random())));
    return;
  }
  for (size_t changes = 1 + random() % 4; changes-- > 0;) change_bytes(bytes, other, random);
  bytes.resize(std::min(bytes.size(), largest));
}

Arguments arguments_of(int argc, char** argv) {
  Arguments given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      attn_opt::fuzzing::require(i + 1 < argc, word + " takes a value");
      return std::string(argv[++i]);
    };
    if (word == "--mutations")
      given.mutations = std::stoi(value());
    else if (word == "--seed")
      given.seed = static_cast<unsigned>(std::stoul(value()));
    else if (word == "--seconds")
      given.seconds = std::stod(value());
    else if (word == "--largest")
      given.largest = std::stoul(value());
    else if (word == "--crash")
      given.crash = value();
    else
      given.paths.emplace_back(word);
  }
  return given;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given = arguments_of(argc, argv);
  std::snprintf(crash_file, sizeof crash_file, "%s", given.crash.c_str());
  if (__sanitizer_set_death_callback)
    __sanitizer_set_death_callback(leave_input);
  else
    limit_memory();  // the sanitizers' shadow is larger than any limit
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) std::signal(number, on_signal);
  const auto end = Clock::now() + std::chrono::duration<double>(given.seconds);
  const std::vector<Input> inputs = inputs_of(given);
  attn_opt::fuzzing::require(!inputs.empty(), "no inputs");
  for (const Input& input : inputs) run(input.bytes, input.name);
  std::mt19937 random(given.seed);
  int done = 0;
  while (done < given.mutations && (given.seconds <= 0 || Clock::now() < end)) {
    const Input& input = inputs[random() % inputs.size()];
    Bytes bytes = input.bytes;
    mutate(bytes, inputs[random() % inputs.size()].bytes, std::max(given.largest, bytes.size()), random);
    run(bytes, input.name + ", mutation " + std::to_string(++done));
  }
  std::printf("%zu inputs, %d mutations\n", inputs.size(), done);
}
