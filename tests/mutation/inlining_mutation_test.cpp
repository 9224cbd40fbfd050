// Verification refuses sites that an inliner got wrong: each attribute and each input of a node that a call brought in, in
// turn.
#include <gmock/gmock.h>

#include <filesystem>
#include <iostream>

#include "attn_opt/internal/verifier.h"
#include "attn_opt/model_io.h"
#include "src/cli/cases/case_file.h"
#include "src/optimizer/sites.h"
#include "src/rewrite/function_inliner.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

/// A change of an inlined node; false if the node has no such place.
using Fault = std::function<bool(onnx::NodeProto&)>;

/// A model with all functions inlined, and a fault in the node that makes a value.
class FaultyInlining {
 public:
  FaultyInlining(const Model& model, const std::string& made, const Fault& fault)
      : model_(model), inlined_(inline_functions(model.proto, all_functions(model.proto))) {
    for (auto& node : *inlined_.proto.mutable_graph()->mutable_node())
      if (node.output_size() && node.output(0) == made) is_there_ = fault(node);
    if (auto view = ModelGraph::create(inlined_.proto)) view_ = *std::move(view);
  }

  /// The fault is in a node, and the model holds together with it.
  bool is_mutant() const { return is_there_ && view_; }

  struct Site {
    std::vector<std::string> covers;  ///< first outputs of the nodes of functions that it replaces
    Verification result;
  };

  /// The sites that are written, as verified.
  std::vector<Site> sites() {
    Facts facts(*view_, *model_.tensors);
    MatchContext context{*view_, facts};
    VerifyOptions options;
    options.calls = &inlined_.calls;
    Verifier verifier(context, *model_.tensors, options);
    std::vector<const Pattern*> all;
    for (const auto& pattern : patterns()) all.push_back(pattern.get());
    Report report;
    std::vector<Site> sites;
    for (const MatchedSite& found : find_sites(context, all, report).matched) {
      const auto emission = emit_attention(found.match, context, {}, {});
      if (!emission) continue;
      Site site;
      for (const Node* node : emission->removed)
        if (inlined_.calls.origin(*node->proto)) site.covers.push_back(node->outputs[0]->name);
      site.result = verifier.verify(*emission, found.match.sdpa);
      sites.push_back(std::move(site));
    }
    return sites;
  }

 private:
  static std::set<FunctionName> all_functions(const onnx::ModelProto& model) {
    std::set<FunctionName> names;
    for (const auto& function : model.functions()) names.emplace(function.domain(), function.name());
    return names;
  }

  const Model& model_;
  InlinedModel inlined_;
  std::unique_ptr<ModelGraph> view_;
  bool is_there_ = false;
};

bool drop(onnx::NodeProto& node, int attribute) {
  if (attribute >= node.attribute_size()) return false;
  // The last of four axes is the one that Softmax takes anyway.
  const bool is_default =
      node.op_type() == "Softmax" && (node.attribute(attribute).i() == -1 || node.attribute(attribute).i() == 3);
  node.mutable_attribute()->DeleteSubrange(attribute, 1);
  return !is_default;
}

bool alter(onnx::NodeProto& node, int attribute) {
  if (attribute >= node.attribute_size()) return false;
  auto& altered = *node.mutable_attribute(attribute);
  if (altered.type() == onnx::AttributeProto::FLOAT)
    altered.set_f(altered.f() * 2);
  else if (altered.type() == onnx::AttributeProto::INT)
    altered.set_i(altered.i() - 1);
  else
    return false;
  return true;
}

bool exchange(onnx::NodeProto& node, int input) {
  const bool commutes = node.op_type() == "Add" || node.op_type() == "Mul";
  if (input + 1 >= node.input_size() || commutes || node.input(input) == node.input(input + 1)) return false;
  node.mutable_input()->SwapElements(input, input + 1);
  return true;
}

struct Tally {
  int mutants = 0, refused = 0;
};

/// Tries CHANGE at each number of a place in the nodes that sites of PATH cover.
void try_all(const fs::path& path, const std::string& name, bool (*change)(onnx::NodeProto&, int), Tally& tally) {
  const auto model = load_model(path);
  ASSERT_TRUE(model) << path;
  FaultyInlining right(*model, "", [](onnx::NodeProto&) { return false; });
  for (const auto& site : right.sites()) {
    ASSERT_EQ(site.result.verdict, Verdict::kVerified) << path << ": " << site.result.reason;
    for (const std::string& made : site.covers)
      for (int place = 0; place < 4; ++place) {
        FaultyInlining wrong(*model, made, [&](onnx::NodeProto& node) { return change(node, place); });
        if (!wrong.is_mutant()) continue;
        for (const auto& mutant : wrong.sites()) {
          if (!testing::Value(mutant.covers, testing::Contains(made))) continue;
          ++tally.mutants;
          tally.refused += mutant.result.verdict == Verdict::kFailed;
          EXPECT_EQ(mutant.result.verdict, Verdict::kFailed)
              << path.stem() << ": " << name << ' ' << place << " of the node that makes '" << made
              << "': " << mutant.result.reason;
        }
      }
  }
}

void expect_refused(const std::string& name, bool (*change)(onnx::NodeProto&, int)) {
  Tally tally;
  for (const auto& entry : fs::directory_iterator(fs::path(ATTN_OPT_TESTDATA) / "cases/local_functions")) {
    const auto one = read_case(entry.path());
    if (one && one->expect.fused > 0) try_all(entry.path(), name, change, tally);
  }
  std::cout << "  inlining: " << name << ": " << tally.mutants << " mutants, " << tally.refused << " refused\n";
  EXPECT_GT(tally.mutants, 0);
}

TEST(MutantsOfInlining, AttributeLeftOut) { expect_refused("attribute left out", drop); }
TEST(MutantsOfInlining, AttributeAltered) { expect_refused("attribute altered", alter); }
TEST(MutantsOfInlining, InputsExchanged) { expect_refused("inputs exchanged", exchange); }

}  // namespace
}  // namespace attn_opt
