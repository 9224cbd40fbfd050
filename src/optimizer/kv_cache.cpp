#include "src/optimizer/kv_cache.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "src/optimizer/cache_trial.h"
#include "src/optimizer/model_verification.h"
#include "src/optimizer/sites.h"

namespace attn_opt {
namespace {

constexpr const char* kLengthInput = "past_sequence_length";
constexpr const char* kBufferLength = "max_sequence_length";

std::vector<std::string> sizes_of(const onnx::ValueInfoProto& value) {
  std::vector<std::string> sizes;
  for (const auto& dim : value.type().tensor_type().shape().dim())
    sizes.push_back(dim.has_dim_value() ? std::to_string(dim.dim_value()) : dim.dim_param().empty() ? "?" : dim.dim_param());
  return sizes;
}

KvCacheReport::Tensor described(const onnx::ValueInfoProto& value) {
  return {value.name(), type_name(static_cast<DataType>(value.type().tensor_type().elem_type())), {}, sizes_of(value)};
}

template <class Values>
std::vector<KvCacheReport::Tensor> changed(const Values& before, const Values& after) {
  std::vector<KvCacheReport::Tensor> all;
  for (const auto& value : after) {
    const auto was = std::ranges::find_if(before, [&](const auto& other) { return other.name() == value.name(); });
    KvCacheReport::Tensor now = described(value);
    if (was != before.end()) now.before = sizes_of(*was);
    if (now.before != now.after) all.push_back(std::move(now));
  }
  return all;
}

/// NAME, or NAME with a number where a size of GRAPH's inputs or outputs is called so.
std::string free_symbol(const std::string& name, const onnx::GraphProto& graph) {
  const auto is_taken = [&graph](const std::string& symbol) {
    const auto has_it = [&symbol](const auto& value) {
      const auto sizes = sizes_of(value);
      return std::ranges::find(sizes, symbol) != sizes.end();
    };
    return std::ranges::any_of(graph.input(), has_it) || std::ranges::any_of(graph.output(), has_it);
  };
  std::string symbol = name;
  for (int i = 1; is_taken(symbol); ++i) symbol = name + "_" + std::to_string(i);
  return symbol;
}

void add_length_input(const std::string& name, onnx::GraphProto& graph) {
  auto* input = graph.add_input();
  input->set_name(name);
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::INT64);
  type->mutable_shape()->add_dim()->set_dim_value(1);
}

/// A model whose caches are becoming buffers.
class StaticCaches {
 public:
  StaticCaches(Model& model, const onnx::ModelProto& original, const OptimizeOptions& options, Report& report)
      : model_(model), original_(original), options_(options), report_(report), line_(report.kv_cache.emplace()) {
    line_.name = line_.pattern = "kv-cache";
    line_.graph = "main";
  }

  Status make() {
    const onnx::ModelProto growing = model_.proto;
    ATTN_OPT_TRY(const Matched<void> made, rewrite());
    if (made && (options_.verify == VerifyMode::kOff || is_verified(growing))) {
      enter(growing);
      return {};
    }
    if (!made) enter_miss(made.error(), PlaceReport::Outcome::kMissed, line_);
    model_.proto = growing;
    return {};
  }

 private:
  Expected<Matched<void>> rewrite() {
    {
      ATTN_OPT_TRY(const auto names, ModelGraph::create(model_.proto));
      buffers_.length_input = names->fresh_name(kLengthInput);
    }
    buffers_.length = options_.kv_cache.length;
    buffers_.symbol = free_symbol(kBufferLength, model_.proto.graph());
    add_length_input(buffers_.length_input, *model_.proto.mutable_graph());
    ATTN_OPT_TRY(view_, ModelGraph::create(model_.proto));
    view_->set_edit_opset(kOwnOpset);
    Facts facts(*view_, *model_.tensors);
    auto plan = plan_static_caches(*view_, facts);
    if (!plan) return Matched<void>(tl::unexpected<Miss>(std::move(plan.error())));
    plan_ = *std::move(plan);
    for (const CacheSite& site : plan_.sites)
      for (const GrowingCache& cache : site.caches) caches_.emplace_back(cache.past->name, cache.present->name);
    write_static_caches(plan_, buffers_, rules_of(options_.emit.target), *view_, facts);
    view_->compact();
    declare_buffers(caches_, buffers_, *model_.proto.mutable_graph());
    return Matched<void>();
  }

  bool is_verified(const onnx::ModelProto& growing) {
    const bool scatters = std::ranges::none_of(plan_.sites, &CacheSite::takes_buffers);
    const CacheTrial trial{original_, model_.proto, *model_.tensors,
                           caches_,   plan_.past,   plan_.queries,
                           buffers_,  scatters,     assumes_rows_keep_a_key(report_)};
    line_.verification = try_static_caches(trial, options_.trial);
    report_.seconds_verify += line_.verification->seconds;
    const Verdict verdict = line_.verification->verdict;
    const bool allowed = options_.allow_unverified && !options_.strict && !options_.exact;
    if (verdict == Verdict::kVerified || (verdict == Verdict::kUnverified && allowed)) return true;
    const std::string id = verdict == Verdict::kFailed ? "cache.differs" : "cache.unverified";
    enter_miss({id, nullptr, line_.verification->reason, {}}, PlaceReport::Outcome::kRefused, line_);
    return false;
  }

  void enter(const onnx::ModelProto& growing) {
    line_.outcome = PlaceReport::Outcome::kFused;
    line_.sites = static_cast<int>(plan_.sites.size());
    line_.length = buffers_.length > 0 ? std::to_string(buffers_.length) : buffers_.symbol;
    line_.length_input = buffers_.length_input;
    line_.inputs = changed(growing.graph().input(), model_.proto.graph().input());
    line_.outputs = changed(growing.graph().output(), model_.proto.graph().output());
    report_.changed = true;
  }

  Model& model_;
  const onnx::ModelProto& original_;
  const OptimizeOptions& options_;
  Report& report_;
  KvCacheReport& line_;
  std::unique_ptr<ModelGraph> view_;
  CachePlan plan_;
  CacheBuffers buffers_;
  std::vector<std::pair<std::string, std::string>> caches_;
};

}  // namespace

Status check_kv_cache(const OptimizeOptions& options) {
  if (!options.kv_cache.is_static) return {};
  const TargetRules& target = rules_of(options.emit.target);
  const auto refused = [](const std::string& what, const std::string& remedy) {
    return fail(ErrorCode::kUsage, "--kv-cache", what, remedy);
  };
  if (!target.takes_static_caches)
    return refused("static, and --target " + std::string(target.name) + " is not known to run it",
                   "take --target ort, spec or ort-contrib");
  if (options.emit.stage != Stage::kAttention) return refused("static, which --stage functions cannot write", "");
  if (target.family == OperatorFamily::kOnnx && options.opset < kEditOpset)
    return refused("static, and TensorScatter came with opset 24", "leave out --opset, or take 24");
  return {};
}

Status make_caches_static(Model& model, const onnx::ModelProto& original, const OptimizeOptions& options, Report& report) {
  return StaticCaches(model, original, options, report).make();
}

}  // namespace attn_opt
