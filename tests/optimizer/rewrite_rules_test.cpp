// Rules that are rewrites, tried at models.
#include "attn_opt/rules.h"
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::HasSubstr;

/// A rule of Conv, tried at Conv with ATTRIBUTES; what of the attributes is in the way, if anything.
std::string misfit_of_conv(const std::string& attributes, const std::string& wanted = "") {
  auto rule =
      parse_rewrite("# RULE r\n<domain: \"rule\", opset_import: [\"\" : 18]> pattern (x, w) => (y) { c = Conv " + wanted +
                        "(x, w) y = Relu (c) }\n<domain: \"rule\", opset_import: [\"\" : 24]> replacement (x, w) => (y) "
                        "{ c = Conv " +
                        wanted + "(x, w) zero = Constant <value_float: float = 0.0> () y = Max (c, zero) }\n",
                    "r.rule");
  if (!rule) return rule.error().message();
  Model model = in_memory(model_of_graph("(float[1,2,5,5] x, float[3,2,3,3] w) => (float[1,3,m,n] y) { c = Conv " + attributes +
                                         " (x, w) y = Relu (c) }"));
  std::string found;
  OptimizeOptions options;
  options.rewrites = {std::shared_ptr<const Rewrite>(*std::move(rule))};
  options.trace = [&found](std::string_view, const Node&, const Miss& miss) { found = miss.found; };
  return optimized(model, options).rewritten() == 1 ? "" : found;
}

TEST(RewriteRules, AttributesThatSayTheDefaultAreAsGoodAsNone) {
  const std::string usual = "<dilations = [1, 1], group = 1, kernel_shape = [3, 3], pads = [0, 0, 0, 0], strides = [1, 1]>";
  EXPECT_EQ(misfit_of_conv(usual), "");
  EXPECT_EQ(misfit_of_conv("", "<strides: ints = [1, 1], pads: ints = [0, 0, 0, 0]> "), "");
  EXPECT_THAT(misfit_of_conv("<strides = [2, 2]>"), HasSubstr("has an attribute 'strides'"));
  EXPECT_THAT(misfit_of_conv("<pads = [0, 1, 0, 1]>"), HasSubstr("has an attribute 'pads'"));
  EXPECT_THAT(misfit_of_conv("", "<strides: ints = [2, 2]> "), HasSubstr("has no attribute 'strides'"));
}

}  // namespace
}  // namespace attn_opt
