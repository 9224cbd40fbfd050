// Attention drawn from a description and spelled at random is fused, and stays what it was.
//
// ATTN_OPT_STRUCTURED=SEED,COUNT draws COUNT models from SEED and prints those that are not fused as case files.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>

#include "src/cli/cases/case_checks.h"
#include "src/io/text_format.h"
#include "src/report/names.h"
#include "tests/metamorphic/drawn_attention.h"
#include "tests/metamorphic/extent.h"
#include "tests/metamorphic/variant.h"

namespace attn_opt {
namespace {

Extent extent() { return extent_of("ATTN_OPT_STRUCTURED", 2000); }

constexpr int kComparedEach = 4;  ///< of so many models one is run as a whole

class Trial {
 public:
  explicit Trial(Extent asked) : extent_(asked) {}

  void run() {
    for (int i = 0; i < extent_.count; ++i) {
      Random random(extent_.seed * 1000003 + static_cast<uint64_t>(i));
      const DrawnModel drawn = spelled(drawn_description(random), random);
      judge(i, drawn);
    }
  }

  double fused_part() const { return static_cast<double>(fused_) / extent_.count; }

  void print() const {
    std::cout << extent_.count << " models: " << fused_ << " fused and verified, " << compared_ << " of them run as a whole\n";
    for (const auto& [miss, count] : misses_) std::cout << "  " << count << " " << miss << '\n';
  }

 private:
  void judge(int number, const DrawnModel& drawn) {
    auto proto = parse_text(drawn.text, "drawn");
    ASSERT_TRUE(proto.has_value()) << proto.error().message() << "\n" << drawn.text;
    const Model model{*std::move(proto), "drawn", {&inline_tensors(), [](const TensorStore*) {}}};
    ASSERT_TRUE(is_valid(model)) << drawn.text;
    Model after = model;
    const auto report = optimize(after, OptimizeOptions{});
    ASSERT_TRUE(report.has_value()) << report.error().message() << "\n" << drawn.text;
    if (report->fused() != 1 || report->sites.size() != 1) return tell(number, drawn, *report);
    const auto& verification = report->sites[0].verification;
    EXPECT_TRUE(verification && verification->verdict == Verdict::kVerified) << explain(report->sites[0]) << drawn.text;
    ++fused_;
    if (number % kComparedEach == 0) compare(model, after, drawn);
  }

  void compare(const Model& model, const Model& after, const DrawnModel& drawn) {
    Case one;
    one.draw = drawn.draw;
    one.verify->compute_f64 = true;
    // What a float holds of a scale is what the model means by it.
    one.verify->rtol = 1e-5;
    one.verify->atol = 1e-6;
    Failures failures;
    check_outputs(one, model, after, failures);
    for (const std::string& failure : failures) ADD_FAILURE() << failure << "\n" << drawn.text;
    ++compared_;
  }

  void tell(int number, const DrawnModel& drawn, const Report& report) {
    std::string reasons;
    for (const SiteReport& site : report.sites) {
      const bool differs = site.verification && site.verification->verdict == Verdict::kFailed;
      EXPECT_FALSE(differs) << explain(site) << drawn.text;
      EXPECT_TRUE(differs || site.outcome == SiteReport::Outcome::kFused || !site.miss_id.empty()) << drawn.text;
      reasons += "# " + site.miss_id + ": " + site.found + "\n";
      ++misses_[site.miss_id.empty() ? std::string(name_of(site.verification->verdict)) : site.miss_id];
    }
    if (report.sites.empty()) ++misses_["no site"];
    if (extent_.prints_all || ++told_ <= 3)
      std::cout << "# CASE   drawn_" << number << "\n# EXPECT fused=1\n" << reasons << drawn.text << '\n';
  }

  Extent extent_;
  int fused_ = 0, compared_ = 0, told_ = 0;
  std::map<std::string, int> misses_;
};

TEST(Structured, DrawnAttentionIsFused) {
  Trial trial(extent());
  trial.run();
  trial.print();
  EXPECT_GE(trial.fused_part(), 0.99);
}

}  // namespace
}  // namespace attn_opt
