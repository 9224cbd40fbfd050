// Questions about guarded products: what reads the guard for as long as attention is looked for.
#include "src/rewrite/guarded_reads.h"

#include <gtest/gtest.h>

#include "tests/text_model.h"

namespace attn_opt {
namespace {

/// What the first input of the node that makes NAME is called once questions were redirected, in a model whose guard puts
/// NUMBER in the place of NaN and asks ASKED.
std::string read_by_question(const std::string& number, const std::string& asked, const std::string& type = "float") {
  Viewed c("(float[2,3] a, float[3,2] b) => (float[2,2] y, bool[2,2] q) <" + type + " c = {" + number +
           "}, float two = {2}> { x = MatMul (a, b) n = IsNaN (x) y = Where (n, c, x) q = " + asked + " }");
  Redirections redirections;
  read_guarded(*c.view, inline_tensors(), redirections);
  const Node& question = *c.value("q").producer;
  const std::string read = question.inputs[question.input(1) && question.inputs[0]->name == "two" ? 1 : 0]->name;
  redirections.restore();
  return read;
}

TEST(GuardedReads, QuestionsThatAreFalseOfNanAndOfTheGuardsNumberReadTheGuard) {
  EXPECT_EQ(read_by_question("0", "IsInf (x)"), "y");
  EXPECT_EQ(read_by_question("3", "Less (x, two)"), "y");
  EXPECT_EQ(read_by_question("0", "Less (two, x)"), "y");
  EXPECT_EQ(read_by_question("0", "Greater (x, two)"), "y");
  EXPECT_EQ(read_by_question("3", "Greater (two, x)"), "y");
}

TEST(GuardedReads, OthersReadTheProduct) {
  EXPECT_EQ(read_by_question("0", "Less (x, two)"), "x");
  EXPECT_EQ(read_by_question("3", "Less (two, x)"), "x");
  EXPECT_EQ(read_by_question("3", "Greater (x, two)"), "x");
  EXPECT_EQ(read_by_question("0", "Greater (two, x)"), "x");
  EXPECT_EQ(read_by_question("inf", "IsInf (x)"), "x");
  EXPECT_EQ(read_by_question("0", "IsNaN (x)"), "x");
  EXPECT_EQ(read_by_question("0", "IsInf (x)", "float[1,1,1]"), "x") << "the guard has an axis more";
}

}  // namespace
}  // namespace attn_opt
