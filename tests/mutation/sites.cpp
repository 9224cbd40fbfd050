#include "tests/mutation/sites.h"

#include <unordered_map>

#include "attn_opt/model_io.h"
#include "src/cli/cases/case_file.h"
#include "src/optimizer/sites.h"

namespace attn_opt {
namespace {

/// What EMISSION writes and takes for given, names of new values left out: equal texts are equal edits.
std::string text_of(const Emission& emission) {
  std::unordered_map<const Value*, std::string> names;
  const auto name = [&](const Value* value) {
    if (!value) return std::string("-");
    const auto made = names.find(value);
    return made == names.end() ? value->name : made->second;
  };
  std::string text;
  for (const Node* node : emission.edit.nodes())
    for (const Value* output : node->outputs)
      if (output) names.emplace(output, "#" + std::to_string(names.size()));
  for (const Node* node : emission.edit.nodes()) {
    text += node->op();
    for (const auto& attribute : node->proto->attribute()) text += ' ' + attribute.SerializeAsString();
    for (const Value* input : node->inputs) text += ' ' + name(input);
    for (const Value* output : node->outputs) text += ' ' + name(output);
    text += '\n';
  }
  for (const auto& [existing, made] : emission.edit.takeovers()) text += existing->name + " <- " + name(made) + '\n';
  for (const Precondition& condition : emission.preconditions) text += condition.id + (condition.proven ? "!\n" : "?\n");
  return text;
}

VerifyOptions each_on_its_own() {
  VerifyOptions options;
  options.share_verdicts = false;
  return options;
}

/// Keeps nodes as they are: what a match made beside its graph is in every edit of that match, and outlives this mutant.
class KeptNodes {
 public:
  KeptNodes(const std::vector<Node*>& nodes, Facts& facts) {
    for (Node* node : nodes) {
      kept_.push_back({node, *node->proto, {node->inputs.begin(), node->inputs.end()}});
      for (Value* output : node->outputs)  // what facts hold of it is held of the node as it is
        if (output) facts.shape(*output), facts.constant(*output), facts.uniform(*output);
    }
  }
  ~KeptNodes() {
    for (Kept& kept : kept_) {
      *kept.node->proto = std::move(kept.proto);
      kept.node->inputs.assign(kept.inputs.begin(), kept.inputs.end());
    }
  }
  KeptNodes(const KeptNodes&) = delete;
  KeptNodes& operator=(const KeptNodes&) = delete;

 private:
  struct Kept {
    Node* node;
    onnx::NodeProto proto;
    std::vector<Value*> inputs;
  };
  std::vector<Kept> kept_;
};

}  // namespace

std::unique_ptr<MutatedModel> MutatedModel::load(const std::filesystem::path& path) {
  OptimizeOptions options;
  if (path.extension() == ".onnxtxt") {
    const auto one = read_case(path);
    if (!one || one->expect.fused == 0) return nullptr;
    options = one->options;
  }
  auto loaded = load_model(path);
  if (!loaded) return nullptr;
  auto model = std::make_unique<Model>(*std::move(loaded));
  auto view = ModelGraph::create(model->proto);
  if (!view) return nullptr;
  (*view)->set_edit_opset(options.opset);
  return std::unique_ptr<MutatedModel>(new MutatedModel(std::move(model), *std::move(view), options.emit));
}

MutatedModel::MutatedModel(std::unique_ptr<Model> model, std::unique_ptr<ModelGraph> view, const EmitOptions& emission)
    : model_(std::move(model)),
      view_(std::move(view)),
      facts_(*view_, *model_->tensors),
      context_{*view_, facts_},
      emission_(emission),
      verifier_(context_, *model_->tensors, each_on_its_own()) {}

std::vector<RightSite> MutatedModel::right_sites(std::vector<std::string>& failures) {
  Report report;
  std::vector<const Pattern*> all;
  for (const auto& pattern : patterns()) all.push_back(pattern.get());
  Verifier sharing(context_, *model_->tensors, {});
  std::vector<RightSite> sites;
  for (auto& found : find_sites(context_, all, report).matched) {
    const auto emission = emit(found.match);
    if (!emission) continue;
    const Verification result = sharing.verify(*emission, found.match.sdpa);
    if (result.shared) continue;
    if (result.verdict == Verdict::kVerified)
      sites.push_back({std::move(found.match), text_of(*emission)});
    else
      failures.push_back(found.match.anchor->label() + ": " + result.reason);
  }
  return sites;
}

Matched<Emission> MutatedModel::emit(const Match& match) { return emit_attention(match, context_, nothing_shared_, emission_); }

Outcome MutatedModel::judge(const std::string& right, const Emission& wrong, const Sdpa& sdpa) {
  if (text_of(wrong) == right) return {};
  const Verification result = verifier_.verify(wrong, sdpa);
  if (result.verdict == Verdict::kVerified) return {Fate::kSurvived, {}};
  if (result.verdict == Verdict::kFailed) return {Fate::kRefused, {}};
  return {Fate::kUnverified, result.reason};
}

std::vector<Change<Sdpa>> MutatedModel::places(const RightSite& site, const DescriptionMutation& mutation) {
  return mutation.places(site.match.sdpa, facts_);
}

std::vector<Change<Emission>> MutatedModel::places(const RightSite& site, const EditMutation& mutation) {
  const auto emission = emit(site.match);
  return emission ? mutation.places(*emission, facts_) : std::vector<Change<Emission>>{};
}

Outcome MutatedModel::verify_mutant(const RightSite& site, const Change<Sdpa>& change) {
  Match wrong = site.match;
  change(wrong.sdpa);
  const auto mutant = emit(wrong);
  return mutant ? judge(site.written, *mutant, wrong.sdpa) : Outcome{};
}

Outcome MutatedModel::verify_mutant(const RightSite& site, const Change<Emission>& change) {
  auto mutant = emit(site.match);
  if (!mutant) return {};
  const KeptNodes unchanged(mutant->edit.nodes(), facts_);
  change(*mutant);
  return judge(site.written, *mutant, site.match.sdpa);
}

}  // namespace attn_opt
