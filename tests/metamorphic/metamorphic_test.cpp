// Every positive case, spelled otherwise in one to four steps, is fused as it was.
//
// Formulas are changed too; few variants may lose a site by that, and none may be wrong.
//
// ATTN_OPT_METAMORPHIC=SEED,COUNT tries COUNT variants of each case, drawn from SEED, and prints those that fail as case
// files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/metamorphic/extent.h"
#include "tests/metamorphic/respelling.h"
#include "tests/metamorphic/variant.h"

namespace attn_opt {
namespace {

Extent extent() { return extent_of("ATTN_OPT_METAMORPHIC", 24); }

std::vector<Respelling> all_respellings() {
  std::vector<Respelling> all;
  for (const auto& family : {copy_respellings(), operand_respellings(), constant_respellings(), axis_respellings(),
                             layout_respellings(), model_respellings(), algebra_respellings()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

/// Of variants one in so many may lose a site, if a formula was changed.
constexpr int kVariantsForEachLost = 200;

struct Tally {
  int variants = 0, failed = 0;
};

class Trial {
 public:
  explicit Trial(Extent asked) : extent_(asked), respellings_(all_respellings()) {}

  /// What is drawn for a case depends on its name alone: other cases come and go.
  void run(const std::filesystem::path& path) {
    const auto parent = read_parent(path);
    ASSERT_TRUE(parent.has_value()) << parent.error().message();
    if (!*parent) return;
    ++parents_;
    const size_t own = std::hash<std::string>()((*parent)->one.name);
    Random random(extent_.seed * 1000003 + own);
    for (int i = 0; i < extent_.count; ++i)
      try_variant(**parent, random, own % respellings_.size() + static_cast<size_t>(i), i);
  }

  void print() const {
    int variants = 0, failed = 0;
    for (const auto& [name, tally] : tallies_)
      std::cout << "  " << name << ": " << tally.variants << (tally.failed ? ", failed " + std::to_string(tally.failed) : "")
                << '\n';
    for (const auto& [steps, tally] : by_steps_) {
      std::cout << "  " << tally.variants << " variants of " << steps << " steps\n";
      variants += tally.variants;
      failed += tally.failed;
    }
    std::cout << respellings_.size() << " respellings, " << parents_ << " cases: " << variants << " variants, " << failed
              << " failed, " << lost_ << " of them lose a site to algebra\n";
  }

  int lost() const { return lost_; }
  int variants() const {
    int all = 0;
    for (const auto& [steps, tally] : by_steps_) all += tally.variants;
    return all;
  }
  /// The first respelling that no variant has; empty if there is none.
  std::string unused() const {
    for (const Respelling& respelling : respellings_)
      if (!tallies_.contains(respelling.name)) return respelling.name;
    return {};
  }

 private:
  struct Variant {
    Model model;
    int sites = 1;
    std::vector<std::string> steps;
    bool has_algebra = false;
  };

  bool apply(const Respelling& respelling, const Parent& parent, Random& random, Variant& variant) const {
    const bool is_legal = (respelling.sites == 1 || parent.one.options.stop_after < 0) &&
                          (respelling.keeps_operators || !parent.is_of_a_rule) &&
                          // What calls local functions itself leaves those of the model alone.
                          (respelling.name != "inside a local function" || parent.one.options.emit.stage == Stage::kAttention);
    if (!is_legal) return false;
    const auto spelling = Spelling::of(variant.model);
    if (!spelling) return false;
    const auto places = respelling.places(*spelling, random);
    if (places.empty()) return false;
    random.pick(places)(*spelling);
    // ONNX infers other shapes than there are for some models that are right, and does not have every type everywhere.
    if (!is_valid(spelling->model())) return false;
    variant.model = spelling->model();
    variant.sites *= respelling.sites;
    variant.steps.push_back(respelling.name);
    variant.has_algebra |= respelling.is_algebra;
    return true;
  }

  /// The first step is the next respelling in turn that has a place in the case.
  void try_variant(const Parent& parent, Random& random, size_t turn, int number) {
    Variant variant{parent.model, 1, {}};
    for (size_t i = 0; i < respellings_.size(); ++i)
      if (apply(respellings_[(turn + i) % respellings_.size()], parent, random, variant)) break;
    const size_t steps = 1 + random.below(4);
    for (int tries = 0; variant.steps.size() < steps && tries < 20; ++tries)
      apply(random.pick(respellings_), parent, random, variant);
    const auto [sites, wrong] = differences(parent, variant.model, variant.sites, true);
    Failures failures = sites;
    failures.insert(failures.end(), wrong.begin(), wrong.end());
    Tally& by_steps = by_steps_[variant.steps.size()];
    ++by_steps.variants;
    by_steps.failed += failures.empty() ? 0 : 1;
    for (const std::string& step : variant.steps) {
      ++tallies_[step].variants;
      tallies_[step].failed += failures.empty() ? 0 : 1;
    }
    const bool is_lost = !sites.empty() && wrong.empty() && variant.has_algebra;
    lost_ += is_lost ? 1 : 0;
    if (!failures.empty() && (!is_lost || extent_.prints_all)) tell(parent, variant, number, failures);
  }

  void tell(const Parent& parent, const Variant& variant, int number, const Failures& failures) const {
    std::string steps, reasons;
    for (const std::string& step : variant.steps) steps += (steps.empty() ? "" : "; ") + step;
    for (const std::string& failure : failures) reasons += failure + "\n";
    ADD_FAILURE() << parent.one.name << ", variant " << number << ": " << steps << "\n"
                  << reasons << (extent_.prints_all || ++told_ <= 3 ? case_text(parent, variant.model, steps) : "");
  }

  Extent extent_;
  std::vector<Respelling> respellings_;
  std::map<std::string, Tally> tallies_;
  std::map<size_t, Tally> by_steps_;
  int parents_ = 0, lost_ = 0;
  mutable int told_ = 0;
};

TEST(Metamorphic, EverySpellingIsFusedAlike) {
  const auto cases = find_cases({ATTN_OPT_TESTDATA "/cases"});
  ASSERT_TRUE(cases.has_value());
  Trial trial(extent());
  for (const std::filesystem::path& path : *cases) trial.run(path);
  trial.print();
  if (extent().prints_all) return;
  EXPECT_GE(trial.variants(), 5000);
  EXPECT_EQ(trial.unused(), "");
  EXPECT_LE(trial.lost() * kVariantsForEachLost, trial.variants());
}

}  // namespace
}  // namespace attn_opt
