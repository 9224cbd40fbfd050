#include "src/optimizer/cache_trial.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/exec/layout/random_numbers.h"
#include "src/optimizer/model_verification.h"
#include "src/trial/drawn_run.h"
#include "src/trial/fill.h"
#include "src/trial/tensor_difference.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

constexpr size_t kTrialAxis = 2;   ///< axis of (B, Hkv, P, D)
constexpr int64_t kEmptyRows = 3;  ///< of a buffer whose length is a symbol, behind all keys
constexpr int64_t kSeveralRows = 3;

/// How much a run's caches hold before it, and how many rows it adds.
struct CacheStep {
  int64_t past, rows;
};
constexpr CacheStep kCacheSteps[] = {{4, kSeveralRows}, {0, kSeveralRows}, {6, 1}};

/// Bytes of rows [BEGIN, END) of each of the blocks along the rows of a cache.
struct RowBlocks {
  explicit RowBlocks(const Tensor& cache)
      : blocks(cache.dims()[0] * cache.dims()[1]),
        row(static_cast<size_t>(cache.dims()[3]) * element_size(cache.type())),
        rows(cache.dims()[kTrialAxis]) {}
  size_t offset(int64_t block, int64_t of_row) const { return static_cast<size_t>(block * rows + of_row) * row; }

  int64_t blocks;
  size_t row;
  int64_t rows;
};

/// Copies COUNT rows of each block of FROM, from row BEGIN on, to those of TO, from row AT on.
void copy_rows(const Tensor& from, int64_t begin, int64_t count, Tensor& to, int64_t at) {
  const RowBlocks source(from), target(to);
  if (count == 0 || source.row == 0) return;
  for (int64_t block = 0; block < source.blocks; ++block)
    std::memcpy(to.mutable_bytes().data() + target.offset(block, at), from.bytes().data() + source.offset(block, begin),
                static_cast<size_t>(count) * source.row);
}

Tensor rows_of(const Tensor& cache, int64_t begin, int64_t end) {
  Dims dims = cache.dims();
  dims[kTrialAxis] = end - begin;
  Tensor rows(cache.type(), dims);
  copy_rows(cache, begin, end - begin, rows, 0);
  return rows;
}

/// A buffer of LENGTH rows: those of PAST, and whatever behind them.
Expected<Tensor> buffer_of(const Tensor& past, int64_t length, RandomNumbers& random) {
  Dims dims = past.dims();
  dims[kTrialAxis] = length;
  ATTN_OPT_TRY(Tensor buffer, filled(past.type(), dims, default_fill(past.type()), random));
  copy_rows(past, 0, past.dims()[kTrialAxis], buffer, 0);
  return buffer;
}

bool is_cache(const Tensor& tensor, int64_t rows) { return tensor.rank() == 4 && tensor.dims()[kTrialAxis] >= rows; }

class CacheRuns {
 public:
  CacheRuns(const CacheTrial& trial, const ModelTrial& limits, const Executor& growing, const Executor& fixed)
      : trial_(trial), limits_(limits), growing_(growing), fixed_(fixed) {}

  /// False: the model does not run with an empty past as it is.
  Expected<bool> run(const CacheStep& step, uint64_t seed) {
    const int64_t longest = trial_.buffers.length;
    const int64_t past = longest > 0 ? std::min(step.past, std::max<int64_t>(longest - step.rows, 0)) : step.past;
    DrawOptions options;
    options.sizes = limits_.sizes;
    options.sizes.try_emplace(trial_.past, past);
    if (!trial_.queries.empty()) options.sizes.try_emplace(trial_.queries, step.rows);
    options.seed = seed;
    options.memory_limit = limits_.memory_limit;
    auto grown = run_on_drawn(growing_, trial_.growing.graph(), options);
    if (!grown && options.sizes[trial_.past] == 0) return false;
    if (!grown) return tl::unexpected<Error>(grown.error());
    return compare(*grown, seed);
  }

  std::string difference;  ///< the first that is beyond the tolerance

 private:
  Expected<bool> compare(const DrawnRun& grown, uint64_t seed) {
    const int64_t past = grown.inputs.sizes.at(trial_.past);
    ATTN_OPT_TRY(const int64_t total, total_of(grown));
    const int64_t length = trial_.buffers.length > 0 ? trial_.buffers.length : total + kEmptyRows;
    if (total > length)
      return fail(ErrorCode::kLimit, "--kv-cache",
                  "buffers of " + std::to_string(length) + " rows are too short for a run with " + std::to_string(total));
    DrawnInputs inputs = grown.inputs;
    RandomNumbers random(seed);
    for (const auto& [name, present] : trial_.caches) {
      ATTN_OPT_TRY(inputs.feeds[name], buffer_of(grown.inputs.feeds.at(name), length, random));
    }
    inputs.feeds[trial_.buffers.length_input] = Tensor::of<int64_t>({1}, {past});
    ATTN_OPT_TRY(const auto outputs, run_on(fixed_, inputs));
    const auto& graph = trial_.growing.graph();
    for (int i = 0; i < graph.output_size() && difference.empty(); ++i)
      ATTN_OPT_CHECK(compare_output(graph.output(i).name(), grown.outputs[static_cast<size_t>(i)],
                                    outputs[static_cast<size_t>(i)], inputs.feeds));
    return true;
  }

  Expected<int64_t> total_of(const DrawnRun& grown) const {
    const auto& graph = trial_.growing.graph();
    for (int i = 0; i < graph.output_size(); ++i) {
      const Tensor& output = grown.outputs[static_cast<size_t>(i)];
      if (graph.output(i).name() == trial_.caches.front().second && is_cache(output, 0)) return output.dims()[kTrialAxis];
    }
    return fail(ErrorCode::kUnsupported, trial_.caches.front().second, "is no cache");
  }

  Status compare_output(const std::string& name, const Tensor& expected, const Tensor& actual, const Feeds& feeds) {
    const auto cache =
        std::ranges::find(trial_.caches, name, [](const auto& names) -> const std::string& { return names.second; });
    if (cache == trial_.caches.end()) return note(name, expected, actual);
    const int64_t rows = expected.rank() == 4 ? expected.dims()[kTrialAxis] : 0;
    if (!is_cache(actual, rows)) return note(name, expected, actual);
    ATTN_OPT_CHECK(note(name, expected, rows_of(actual, 0, rows)));
    if (!trial_.keeps_rows) return {};
    const int64_t length = actual.dims()[kTrialAxis];
    return note(name + " behind its keys", rows_of(feeds.at(cache->first), rows, length), rows_of(actual, rows, length));
  }

  Status note(const std::string& name, const Tensor& expected, Tensor actual) {
    if (trial_.may_lack_keys) {
      ATTN_OPT_TRY(actual, with_nans_of(expected, actual));
    }
    const auto tolerance = with_given(model_tolerance(element_type(actual)), limits_.relative, limits_.absolute);
    const TensorDifference found = attn_opt::difference(expected, actual, tolerance);
    if (!found.agrees() && difference.empty()) difference = name + ": " + to_string(found);
    return {};
  }

  const CacheTrial& trial_;
  const ModelTrial& limits_;
  const Executor& growing_;
  const Executor& fixed_;
};

/// Counts the draws and keeps what differs in RESULT.
Status run_steps(const CacheTrial& trial, const ModelTrial& limits, Verification& result) {
  ExecutorOptions options;
  options.schema_bodies = SchemaBodies::kAttention;
  options.threads = limits.threads;
  options.memory_limit = limits.memory_limit;
  ATTN_OPT_TRY(const auto growing, Executor::create(trial.growing, trial.tensors, options));
  ATTN_OPT_TRY(const auto fixed, Executor::create(trial.fixed, trial.tensors, options));
  CacheRuns runs(trial, limits, growing, fixed);
  uint64_t seed = 0;
  for (const CacheStep& step : kCacheSteps) {
    ATTN_OPT_TRY(const bool ran, runs.run(step, seed++));
    result.draws += ran ? 1 : 0;
    if (!runs.difference.empty()) break;
  }
  result.reason = runs.difference;
  return {};
}

}  // namespace

Verification try_static_caches(const CacheTrial& trial, const ModelTrial& limits) {
  const auto begin = std::chrono::steady_clock::now();
  Verification result;
  const Status ran = run_steps(trial, limits, result);
  if (!ran)
    result.reason = ran.error().message();
  else
    result.verdict = result.reason.empty() ? Verdict::kVerified : Verdict::kFailed;
  result.seconds = seconds_since(begin);
  return result;
}

}  // namespace attn_opt
