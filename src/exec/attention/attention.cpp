// Attention. Work is divided by the problem's sizes alone, so that results do not depend on who does it: first into
// blocks of queries of one key head, then, where those are few, each over runs of keys that are merged in order.
#include <mutex>

#include "src/exec/attention/attention_core.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

constexpr int64_t kTasksWanted = 16;
constexpr int64_t kFewestRows = 32;
constexpr int64_t kFewestKeys = 512;

int64_t parts(int64_t count, int64_t each) { return (count + each - 1) / std::max<int64_t>(each, 1); }

struct Division {
  int64_t queries = 1, query_blocks = 0;  ///< queries of a block
  int64_t keys = 1, key_runs = 1;         ///< keys of a run

  Division(const AttentionProblem& p, int64_t rows) {
    const int64_t heads = p.batch * p.kv_heads;
    if (heads == 0 || p.queries == 0) return;
    const int64_t spread = heads * p.queries * p.group() / kTasksWanted;
    const int64_t most = std::max<int64_t>(1, std::clamp(spread, std::min(kFewestRows, rows), rows) / p.group());
    queries = parts(p.queries, parts(p.queries, most));
    if (p.group() == 1 && queries % kMostLanes != 0) queries += kMostLanes - queries % kMostLanes;
    query_blocks = parts(p.queries, queries);
    keys = std::max<int64_t>(1, p.keys);
    const int64_t tasks = heads * query_blocks;
    if (tasks >= kTasksWanted || p.wanted != ScoreStage::kNone) return;
    keys = std::max(kFewestKeys, parts(p.keys, parts(kTasksWanted, tasks)));
    key_runs = std::max<int64_t>(1, parts(p.keys, keys));
  }
};

template <class C>
class AttentionRun {
 public:
  AttentionRun(const KernelContext& context, const AttentionProblem& problem, const AttentionBias<C>& bias, Tensor& y,
               Tensor* scores)
      : context_(context),
        problem_(problem),
        core_(problem, bias, y, scores),
        division_(problem, AttentionCore<C>::rows_at_once(problem)) {}

  Status run() {
    ATTN_OPT_CHECK(context_.within_budget(AttentionCore<C>::scratch_bytes(problem_), 1));
    const int64_t blocks = problem_.batch * problem_.kv_heads * division_.query_blocks;
    const int64_t runs = division_.key_runs;
    if (runs == 1) {
      context_.threads.parallel_for(blocks, [&](int64_t i) {
        with_workspace([&](Workspace<C>& work) {
          core_.sum(block(i, 0), work, work.partial);
          core_.finish(block(i, 0), work.partial, work);
        });
      });
      return {};
    }
    std::vector<Partial<C>> sums(static_cast<size_t>(blocks * runs));
    context_.threads.parallel_for(blocks * runs, [&](int64_t i) {
      with_workspace([&](Workspace<C>& work) { core_.sum(block(i / runs, i % runs), work, sums[static_cast<size_t>(i)]); });
    });
    context_.threads.parallel_for(blocks, [&](int64_t i) {
      Partial<C>& whole = sums[static_cast<size_t>(i * runs)];
      for (int64_t run = 1; run < runs; ++run) core_.merge(whole, sums[static_cast<size_t>(i * runs + run)]);
      with_workspace([&](Workspace<C>& work) { core_.finish(block(i, 0), whole, work); });
    });
    return {};
  }

 private:
  /// Calls USE with a workspace that no other thread has meanwhile; there are as many as threads ask at once.
  template <class Use>
  void with_workspace(const Use& use) {
    std::unique_ptr<Workspace<C>> work;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        work = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (work == nullptr) work = std::make_unique<Workspace<C>>();
    use(*work);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(work));
  }

  /// Block I against its run of keys RUN; blocks of the last queries, which see most keys, come first.
  QueryBlock block(int64_t i, int64_t run) const {
    const int64_t heads = problem_.batch * problem_.kv_heads;
    const int64_t head = i % heads;
    const int64_t first = (division_.query_blocks - 1 - i / heads) * division_.queries;
    const int64_t key = run * division_.keys;
    return {head / problem_.kv_heads,
            head % problem_.kv_heads,
            first,
            std::min(division_.queries, problem_.queries - first),
            {key, std::min(key + division_.keys, problem_.keys)}};
  }

  const KernelContext& context_;
  const AttentionProblem& problem_;
  AttentionCore<C> core_;
  Division division_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace<C>>> idle_;
};

template <class C>
Status compute(const KernelContext& context, const AttentionProblem& problem, Tensor& y, Tensor* scores) {
  ATTN_OPT_TRY(const auto bias, AttentionBias<C>::create(context, problem));
  return AttentionRun<C>(context, problem, bias, y, scores).run();
}

Outputs attention(const KernelContext& context) {
  ATTN_OPT_TRY(AttentionProblem problem, read_attention(context));
  std::vector<Tensor> outputs(4);
  ATTN_OPT_TRY(outputs[0], context.allocate(problem.type, problem.y_dims));
  if (context.wants(1)) {
    ATTN_OPT_TRY(outputs[1], joined(context, problem, context.input(1), problem.key_parts, problem.head_size));
  }
  if (context.wants(2)) {
    ATTN_OPT_TRY(outputs[2], joined(context, problem, context.input(2), problem.value_parts, problem.v_head_size));
  }
  if (problem.wanted != ScoreStage::kNone) {
    ATTN_OPT_TRY(outputs[3], context.allocate(problem.type, problem.score_dims()));
  }
  if (outputs[1].has_value() && outputs[2].has_value()) {
    problem.key_parts[1] = rows_of_heads(outputs[1]);
    problem.value_parts[1] = rows_of_heads(outputs[2]);
    problem.seam = 0;
  }
  Tensor* scores = outputs[3].has_value() ? &outputs[3] : nullptr;
  const bool in_double = problem.type == onnx::TensorProto::DOUBLE;
  ATTN_OPT_CHECK(in_double ? compute<double>(context, problem, outputs[0], scores)
                           : compute<float>(context, problem, outputs[0], scores));
  return outputs;
}

}  // namespace

void register_attention(KernelRegistry& registry) { registry.add("Attention", 23, 25, attention); }

}  // namespace attn_opt
