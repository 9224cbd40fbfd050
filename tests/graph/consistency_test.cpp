// ModelGraph::check() passes on what edits leave and tells each way in which a view can come apart.
#include <gmock/gmock.h>

#include "tests/text_model.h"

namespace attn_opt {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGraph =
    "(float[4] x, bool c) => (float[4] y) { a = Abs (x) b = Exp (a)"
    " d = If (c) <then_branch = t () => (float[4] u) { u = Neg (b) }, else_branch = e () => (float[4] w) { w = Sin (a) }> y = "
    "Add (d, b) }";

/// What check() says of kGraph after BREAK; empty if nothing.
std::string said_after(const std::function<void(Viewed&)>& change) {
  Viewed viewed(kGraph);
  change(viewed);
  const Status status = viewed.view->check();
  return status ? "" : status.error().message();
}

TEST(Consistency, OfAViewAsItWasRead) {
  EXPECT_EQ(said_after([](Viewed&) {}), "");
}

TEST(Consistency, AfterChangesByTheGraphsOwnOperations) {
  EXPECT_EQ(said_after([](Viewed& viewed) {
              Node& node = *viewed.view->new_node(viewed.view->main());
              node.proto->set_op_type("Cos");
              node.inputs = {&viewed.value("a")};
              Value* made = viewed.view->new_value(viewed.view->main(), "new");
              made->producer = &node;
              node.outputs = {made};
              viewed.view->link(node, viewed.maker("b"));
              Node& old = viewed.maker("b");
              viewed.view->take_over(viewed.value("b"), node, 0);
              viewed.view->remove_if_dead(old);
            }),
            "");
}

TEST(Consistency, ANodeIsReadAboveItsOwnPlace) {
  EXPECT_THAT(said_after([](Viewed& viewed) { viewed.view->set_input(viewed.maker("a"), 0, viewed.value("b")); }),
              HasSubstr("'b' is read and nothing above makes it"));
}

TEST(Consistency, AValueThatABodyReadsIsMadeBelowIt) {
  EXPECT_THAT(said_after([](Viewed& viewed) {
                Node& inner = *viewed.maker("d").bodies[0]->nodes()[0];
                viewed.view->set_input(inner, 0, viewed.value("y"));
              }),
              HasSubstr("'y' is read and nothing above makes it"));
}

TEST(Consistency, AProducerIsGone) {
  EXPECT_THAT(said_after([](Viewed& viewed) { viewed.maker("b").removed = true; }), HasSubstr("'b' is read and nothing above"));
}

TEST(Consistency, AnOutputIsMadeByNothing) {
  EXPECT_THAT(said_after([](Viewed& viewed) { viewed.maker("y").removed = true; }), HasSubstr("'y': is an output"));
}

TEST(Consistency, AUseIsMissing) {
  EXPECT_THAT(said_after([](Viewed& viewed) { viewed.value("a").uses.clear(); }), HasSubstr("not among the uses of 'a'"));
}

TEST(Consistency, AUseIsLeftOver) {
  EXPECT_THAT(said_after([](Viewed& viewed) { viewed.value("y").uses.push_back({&viewed.maker("a"), 0}); }),
              HasSubstr("'y': has 1 uses and 0 readers"));
}

TEST(Consistency, TwoNodesMakeAValue) {
  EXPECT_THAT(said_after([](Viewed& viewed) {
                Node& other = viewed.maker("a");
                other.outputs[0] = &viewed.value("b");
                other.proto->set_output(0, "b");
              }),
              HasSubstr("'b' takes another node for its producer"));
}

TEST(Consistency, AProtoHasAnotherName) {
  EXPECT_THAT(said_after([](Viewed& viewed) { viewed.maker("y").proto->set_input(0, "a"); }),
              HasSubstr("input 0 has another name in its proto"));
}

}  // namespace
}  // namespace attn_opt
