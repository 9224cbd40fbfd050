// Verification alone refuses every mutant: each step of describing and writing a site is got wrong in turn.
//
// The models are those of testdata, the cases of softmax_attention, producers and attention_node, and those of windows and
// lengths. ATTN_OPT_MUTATION_MODELS=FOLDER takes every FOLDER/*/model.onnx instead, and lists what survives.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "tests/mutation/equivalent_sites.h"
#include "tests/mutation/equivalents.h"
#include "tests/mutation/sites.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

const char* other_models() { return std::getenv("ATTN_OPT_MUTATION_MODELS"); }

std::vector<fs::path> model_paths() {
  std::vector<fs::path> paths;
  const fs::path testdata = ATTN_OPT_TESTDATA;
  const auto add_all = [&](const fs::path& folder, auto&& wanted) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && wanted(entry.path())) paths.push_back(entry.path());
  };
  if (const char* folder = other_models()) {
    add_all(folder, [](const fs::path& path) { return path.filename() == "model.onnx"; });
  } else {
    add_all(testdata / "models", [](const fs::path& path) { return path.extension() == ".onnx"; });
    const auto is_fused_case = [](const fs::path& path) {
      const std::string name = path.filename().string();
      return name.ends_with(".onnxtxt") && !name.ends_with(".after.onnxtxt") && !name.starts_with("miss_");
    };
    for (const char* cases : {"attention_node", "producers", "softmax_attention"})
      add_all(testdata / "cases" / cases, is_fused_case);
    add_all(testdata / "cases" / "onnx_attention", [&](const fs::path& path) {
      return is_fused_case(path) && (path.filename().string().starts_with("window") || path.stem() == "lengths");
    });
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string name_of(const fs::path& path) {
  return path.filename() == "model.onnx" ? path.parent_path().filename().string() : path.stem().string();
}

struct Tally {
  int mutants = 0, refused = 0, unverified = 0;
  std::set<std::string> tried;                 ///< models with mutants
  std::map<std::string, int> survivors;        ///< by model
  std::map<std::string, std::string> not_run;  ///< why, by model
};

/// Tries mutations at every site and counts what becomes of the mutants.
template <class Subject>
class Trial {
 public:
  explicit Trial(std::vector<Mutation<Subject>> mutations) : mutations_(std::move(mutations)) {}

  void run() {
    for (const fs::path& path : model_paths()) {
      const auto model = MutatedModel::load(path);
      if (!model) continue;
      std::vector<std::string> failures;
      const auto sites = model->right_sites(failures);
      if (!other_models()) {
        EXPECT_THAT(failures, testing::IsEmpty()) << path;
      }
      for (const RightSite& site : sites) try_all(*model, site, name_of(path));
      sites_ += sites.size();
    }
    print();
    check();
  }

 private:
  void try_all(MutatedModel& model, const RightSite& site, const std::string& name) {
    for (const auto& mutation : mutations_) {
      Tally& tally = tallies_[mutation.name()];
      for (const auto& change : model.places(site, mutation)) {
        const Outcome outcome = model.verify_mutant(site, change);
        if (outcome.fate == Fate::kNone) continue;
        ++tally.mutants;
        tally.tried.insert(name);
        tally.refused += outcome.fate == Fate::kRefused;
        tally.unverified += outcome.fate == Fate::kUnverified;
        if (outcome.fate == Fate::kUnverified) tally.not_run[name] = outcome.reason;
        if (outcome.fate != Fate::kSurvived || is_equivalent_at(mutation.name(), site.match.sdpa)) continue;
        ++tally.survivors[name];
      }
    }
  }

  void print() const {
    int mutants = 0, refused = 0, unverified = 0;
    for (const auto& [name, tally] : tallies_) {
      mutants += tally.mutants;
      refused += tally.refused;
      unverified += tally.unverified;
      std::cout << "  " << name << ": " << tally.mutants << " mutants, " << tally.refused << " refused";
      if (tally.unverified) std::cout << ", " << tally.unverified << " not run";
      for (const auto& [model, count] : tally.survivors) std::cout << "\n      survives in " << model << " (" << count << ")";
      for (const auto& [model, reason] : tally.not_run) std::cout << "\n      not run in " << model << ": " << reason;
      std::cout << '\n';
    }
    std::cout << tallies_.size() << " mutations at " << sites_ << " sites: " << mutants << " mutants, " << refused
              << " refused, " << unverified << " not run, " << mutants - refused - unverified << " equivalent\n";
  }

  static bool is_equivalent_at(const std::string& mutation, const Sdpa& sdpa) {
    return has_one_key(sdpa) || leaves_keys_hidden(mutation, sdpa) || changes_rows_beyond_exp(mutation, sdpa) ||
           assumes_scores_in_range(mutation, sdpa);
  }

  static bool is_equivalent(const std::string& mutation, const std::string& model) {
    return std::any_of(equivalents().begin(), equivalents().end(),
                       [&](const Equivalent& known) { return known.mutation == mutation && known.is_for(model); });
  }

  void check() const {
    if (other_models()) return;
    for (const auto& [name, tally] : tallies_) {
      EXPECT_GT(tally.mutants, 0) << name << ": no site has it";
      for (const auto& [model, count] : tally.survivors)
        EXPECT_TRUE(is_equivalent(name, model)) << name << " survives in " << model;
      for (const auto& [model, reason] : tally.not_run) ADD_FAILURE() << name << " is not run in " << model << ": " << reason;
    }
    for (const Equivalent& known : equivalents()) {
      const auto tally = tallies_.find(known.mutation);
      if (tally == tallies_.end()) continue;
      EXPECT_EQ(tally->second.tried.count(known.model), tally->second.survivors.count(known.model))
          << known.mutation << " is refused in " << known.model;
    }
  }

  std::vector<Mutation<Subject>> mutations_;
  std::map<std::string, Tally> tallies_;
  size_t sites_ = 0;
};

template <class Subject>
void expect_refused(const std::vector<std::vector<Mutation<Subject>>>& families) {
  std::vector<Mutation<Subject>> all;
  for (const auto& family : families) all.insert(all.end(), family.begin(), family.end());
  Trial<Subject>(std::move(all)).run();
}

TEST(Mutants, OfOperandsAndLayouts) { expect_refused<Sdpa>({operand_mutations(), layout_mutations()}); }
TEST(Mutants, OfScoresAndTerms) { expect_refused<Sdpa>({score_mutations(), term_mutations()}); }
TEST(Mutants, OfWhatIsReadOfTheProbabilities) { expect_refused<Sdpa>({escape_mutations()}); }
TEST(Mutants, OfTheAttentionNode) { expect_refused<Emission>({attention_mutations()}); }
TEST(Mutants, OfTheNodesAround) { expect_refused<Emission>({layout_node_mutations(), arithmetic_mutations()}); }

/// An entry for a mutation that there is not would never be looked at.
TEST(Mutants, EquivalentsNameMutations) {
  std::set<std::string> names;
  for (const auto& family : {operand_mutations(), layout_mutations(), score_mutations(), term_mutations(), escape_mutations()})
    for (const auto& mutation : family) EXPECT_TRUE(names.insert(mutation.name()).second) << mutation.name();
  for (const auto& family : {attention_mutations(), layout_node_mutations(), arithmetic_mutations()})
    for (const auto& mutation : family) EXPECT_TRUE(names.insert(mutation.name()).second) << mutation.name();
  for (const Equivalent& known : equivalents()) EXPECT_EQ(names.count(known.mutation), 1u) << known.mutation;
}

}  // namespace
}  // namespace attn_opt
