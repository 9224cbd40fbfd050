#include "src/verify/site_run.h"

#include <algorithm>

#include "src/verify/portable_form.h"

namespace attn_opt {
namespace {

/// The coarsest type that the scores or OUTPUT are held in.
DataType coarsest(const Sdpa& sdpa, const Tensor& output) {
  DataType coarse = output.type();
  for (const DataType type : {sdpa.type, sdpa.softmax_precision, sdpa.narrowest_scores})
    if (is_floating(type) && type_epsilon(type) > type_epsilon(coarse)) coarse = type;
  return coarse;
}

/// The finest type that SITE's nodes cast to. None if some are a runtime's own: how those round inside is for it to say.
std::optional<DataType> finest_cast(const CutSite& site) {
  std::optional<DataType> finest;
  for (const Node* node : site.before.nodes) {
    if (!node->domain().empty()) return std::nullopt;
    const auto to = static_cast<DataType>(node->is("Cast") ? node->int_attribute("to", 0) : 0);
    if (is_floating(to) && (!finest || type_epsilon(to) < type_epsilon(*finest))) finest = to;
  }
  return finest;
}

/// The largest relative error of SITE's constants. Double does not undo it: 1 / sqrt(2) in half precision is another number.
double rounding_of_constants(const CutSite& site) {
  double rounding = 0;
  for (const SiteInput& input : site.inputs)
    if (input.source != SiteInput::Source::kDrawn && is_floating(input.type))
      rounding = std::max(rounding, type_epsilon(input.type));
  return rounding;
}

/// True if functions of MODEL cast: what they cast constants to is rounded in the model and where it was read, and not in
/// double.
bool casts_in_functions(const onnx::ModelProto& model) {
  const auto casts = [](const onnx::NodeProto& node) { return node.op_type() == "Cast" || node.op_type() == "CastLike"; };
  return std::ranges::any_of(model.functions(),
                             [&](const onnx::FunctionProto& function) { return std::ranges::any_of(function.node(), casts); });
}

}  // namespace

tl::expected<SiteRunner::Sides, SiteRunner::Failure> SiteRunner::sides(const onnx::ModelProto& before,
                                                                       const onnx::ModelProto& after,
                                                                       const TensorStore& tensors,
                                                                       const ExecutorOptions& options) {
  auto of_before = Executor::create(before, tensors, options);
  if (!of_before) return tl::unexpected<Failure>(Failure{std::move(of_before.error()), false});
  auto of_after = Executor::create(after, tensors, options);
  if (!of_after) return tl::unexpected<Failure>(Failure{std::move(of_after.error()), true});
  return Sides{*std::move(of_before), *std::move(of_after)};
}

tl::expected<SiteRunner, SiteRunner::Failure> SiteRunner::create(const CutSite& site, const SiteModels& models,
                                                                 const TensorStore& tensors, const RunLimits& limits) {
  ExecutorOptions typed;
  typed.schema_bodies = SchemaBodies::kAttention;
  typed.memory_limit = limits.memory;
  typed.cpu_deadline = limits.cpu_deadline;
  ExecutorOptions exact = typed;
  exact.compute_f64 = true;
  auto in_double = sides(models.before, models.after_exact, tensors, exact);
  if (!in_double) return tl::unexpected<Failure>(std::move(in_double.error()));
  auto as_written = sides(models.before, models.after, tensors, typed);
  if (!as_written) return tl::unexpected<Failure>(std::move(as_written.error()));
  AttributeMoves moves;
  if (site.attention_inputs.empty()) {
    auto created = AttributeMoves::create(models.after_exact, tensors, exact);
    if (!created) return tl::unexpected<Failure>(Failure{std::move(created.error()), true});
    moves = *std::move(created);
  }
  return SiteRunner(site, *std::move(in_double), *std::move(as_written), std::move(moves), casts_in_functions(models.before));
}

SiteRunner::SiteRunner(const CutSite& site, Sides exact, Sides typed, AttributeMoves moves, bool casts_in_functions)
    : site_(&site),
      exact_(std::move(exact)),
      typed_(std::move(typed)),
      moves_(std::move(moves)),
      finest_cast_(finest_cast(site)),
      constant_rounding_(rounding_of_constants(site)),
      casts_in_functions_(casts_in_functions) {}

/// AFTER: the outputs of the side after, of which the inputs of the Attention node are the last.
std::string SiteRunner::unportable_input(const Feeds& feeds, const std::vector<Tensor>& after) const {
  std::vector<const Tensor*> inputs;
  size_t made = site_->written.size() + site_->probes_after.size();
  for (const Value* value : site_->attention_inputs) {
    if (!value)
      inputs.push_back(nullptr);
    else if (site_->is_made_after(*value))
      inputs.push_back(&after[made++]);
    else
      inputs.push_back(&feeds.at(value->name));
  }
  return unportable(inputs, *site_->target);
}

SiteRunner::Result SiteRunner::run(const Feeds& feeds, const Sdpa& sdpa, const SizeAssignment& sizes,
                                   const Assumed& assumed) const {
  RunResult result;
  Exact exact;
  auto algebra = run_mode(Mode::kExact, feeds, sdpa, sizes, assumed, exact);
  if (!algebra) return tl::unexpected<Failure>(std::move(algebra.error()));
  result.algebra = *std::move(algebra);
  if (!result.algebra.failure.empty()) return result;
  auto in_type = run_mode(Mode::kTyped, feeds, sdpa, sizes, assumed, exact);
  if (!in_type) return tl::unexpected<Failure>(std::move(in_type.error()));
  result.in_type = *std::move(in_type);
  return result;
}

tl::expected<Judgement, SiteRunner::Failure> SiteRunner::run_mode(Mode mode, const Feeds& feeds, const Sdpa& sdpa,
                                                                  const SizeAssignment& sizes, const Assumed& assumed,
                                                                  Exact& exact) const {
  const Sides& sides = mode == Mode::kExact ? exact_ : typed_;
  auto before = sides.before.run(feeds);
  if (!before) return tl::unexpected<Failure>(Failure{std::move(before.error()), false});
  std::unordered_map<const Value*, const Tensor*> contents;
  for (const auto& input : site_->inputs)
    if (input.source != SiteInput::Source::kShapeOnly) contents[input.value] = &feeds.at(input.value->name);
  for (const auto& constant : site_->constants) contents[constant.value] = &constant.fixed;
  const size_t outputs = site_->replaced.size();
  for (size_t i = 0; i < site_->probes.size(); ++i) contents[site_->probes[i]] = &(*before)[outputs + i];

  Feeds feeds_after = feeds;
  for (const Value* value : site_->handed_over) feeds_after[value->name] = *contents.at(value);
  auto after = sides.after.run(feeds_after);
  if (!after) return tl::unexpected<Failure>(Failure{std::move(after.error()), true});
  for (size_t i = 0; i < site_->probes_after.size(); ++i)
    contents[site_->probes_after[i]] = &(*after)[site_->written.size() + i];

  auto find = [&](const Value* value) {
    auto found = contents.find(value);
    return found == contents.end() ? nullptr : found->second;
  };
  const DataType coarse = coarsest(sdpa, before->front());
  const bool is_value = !is_attention(sdpa);
  const DataType type = mode == Mode::kExact ? DataType(onnx::TensorProto::DOUBLE) : coarse;
  const ScoreRows rows = score_rows({sdpa, sizes, find, type, coarse});
  // A model that computes part of it in a wider type than it holds the rest in is nearer to the exact result than that type
  // tells.
  const bool is_finer = mode == Mode::kTyped && finest_cast_ && type_epsilon(*finest_cast_) < type_epsilon(coarse);
  if (mode == Mode::kExact) exact.moves = moves_.of(feeds_after, *after);
  Judgement judgement;
  for (size_t i = 0; i < outputs; ++i) {
    const JudgedOutput output = judged_output(*site_->replaced[i], sdpa);
    const Tensor* in_double = mode == Mode::kTyped ? &exact.before[i] : nullptr;
    // A float in the place of a double is no rounding that a model of doubles may be given.
    const bool may_move = mode == Mode::kExact || (*before)[i].type() != onnx::TensorProto::DOUBLE;
    const Tensor* moves = may_move && exact.moves[i].has_value() ? &exact.moves[i] : nullptr;
    const double of_constants = is_value ? constant_rounding_ : casts_in_functions_ ? type_epsilon(coarse) : 0;
    const double limit = std::max(kAlgebraLimit, of_constants);
    const Compared compared{output, (*before)[i], (*after)[i], in_double, rows, sizes, assumed, limit, is_finer, moves};
    Judgement of_output =
        mode == Mode::kExact ? judge_algebra(compared) : judge_in_type(compared, is_value ? (*before)[i].type() : type);
    if (!of_output.failure.empty()) of_output.failure = output.name + " " + of_output.failure;
    judgement.merge(of_output);
  }
  if (mode == Mode::kExact)
    exact.before = *std::move(before);
  else if (judgement.failure.empty())
    if (const std::string what = unportable_input(feeds_after, *after); !what.empty())
      judgement.failure = "the node is given " + what;
  return judgement;
}

}  // namespace attn_opt
