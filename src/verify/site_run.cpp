#include "src/verify/site_run.h"

namespace attn_opt {
namespace {

/// The coarsest type that the scores or OUTPUT are held in.
DataType coarsest(const Sdpa& sdpa, const Tensor& output) {
  DataType coarse = output.type();
  for (const DataType type : {sdpa.type, sdpa.softmax_precision})
    if (is_floating(type) && type_epsilon(type) > type_epsilon(coarse)) coarse = type;
  return coarse;
}

}  // namespace

Expected<SiteRunner> SiteRunner::create(const CutSite& site, const SiteModels& models, const TensorStore& tensors,
                                        const RunLimits& limits) {
  ExecutorOptions typed;
  typed.memory_limit = limits.memory;
  typed.deadline = limits.deadline;
  ExecutorOptions exact = typed;
  exact.compute_f64 = true;
  ATTN_OPT_TRY(Executor exact_before, Executor::create(models.before, tensors, exact));
  ATTN_OPT_TRY(Executor exact_after, Executor::create(models.after_exact, tensors, exact));
  ATTN_OPT_TRY(Executor typed_before, Executor::create(models.before, tensors, typed));
  ATTN_OPT_TRY(Executor typed_after, Executor::create(models.after, tensors, typed));
  return SiteRunner(site, {std::move(exact_before), std::move(exact_after)},
                    {std::move(typed_before), std::move(typed_after)});
}

SiteRunner::Result SiteRunner::run(const Feeds& feeds, const Sdpa& sdpa, const SizeAssignment& sizes,
                                   const Assumed& assumed) const {
  RunResult result;
  auto algebra = run_mode(Mode::kExact, feeds, sdpa, sizes, assumed);
  if (!algebra) return tl::unexpected<Failure>(std::move(algebra.error()));
  result.algebra = *std::move(algebra);
  if (!result.algebra.failure.empty()) return result;
  auto in_type = run_mode(Mode::kTyped, feeds, sdpa, sizes, assumed);
  if (!in_type) return tl::unexpected<Failure>(std::move(in_type.error()));
  result.in_type = *std::move(in_type);
  return result;
}

tl::expected<Judgement, SiteRunner::Failure> SiteRunner::run_mode(Mode mode, const Feeds& feeds, const Sdpa& sdpa,
                                                                  const SizeAssignment& sizes,
                                                                  const Assumed& assumed) const {
  const Sides& sides = mode == Mode::kExact ? exact_ : typed_;
  auto before = sides.before.run(feeds);
  if (!before) return tl::unexpected<Failure>(Failure{std::move(before.error()), false});
  std::unordered_map<const Value*, const Tensor*> contents;
  for (const auto& input : site_->inputs)
    if (input.source != SiteInput::Source::kShapeOnly) contents[input.value] = &feeds.at(input.value->name);
  const size_t outputs = site_->replaced.size();
  for (size_t i = 0; i < site_->probes.size(); ++i) contents[site_->probes[i]] = &(*before)[outputs + i];

  Feeds feeds_after = feeds;
  for (const Value* value : site_->handed_over) feeds_after[value->name] = *contents.at(value);
  auto after = sides.after.run(feeds_after);
  if (!after) return tl::unexpected<Failure>(Failure{std::move(after.error()), true});

  auto find = [&](const Value* value) {
    auto found = contents.find(value);
    return found == contents.end() ? nullptr : found->second;
  };
  const DataType type = mode == Mode::kExact ? DataType(onnx::TensorProto::DOUBLE) : coarsest(sdpa, before->front());
  const ScoreRows rows = score_rows({sdpa, sizes, find, type});
  Judgement judgement;
  for (size_t i = 0; i < outputs; ++i) {
    const JudgedOutput output = judged_output(*site_->replaced[i], sdpa);
    const Compared compared{output, (*before)[i], (*after)[i], rows, sizes, assumed};
    Judgement of_output = mode == Mode::kExact ? judge_algebra(compared) : judge_in_type(compared, type);
    if (!of_output.failure.empty()) of_output.failure = output.name + " " + of_output.failure;
    judgement.merge(of_output);
  }
  return judgement;
}

}  // namespace attn_opt
