// What GraphBuilder says of what cannot be built: one line each.
#include <gmock/gmock.h>

#include <functional>

#include "attn_opt/edit.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;
using Make = std::function<void(GraphBuilder& build, Value* x)>;

/// The error after MAKE, with X of float [2, 3], at opset 21.
std::string error_of(const Make& make) {
  GraphBuilder build({.opset = 21});
  make(build, build.input("x", P::FLOAT, {2, 3}));
  const auto model = build.model();
  return model ? "no error" : model.error().message();
}

struct Case {
  const char* name;
  Make make;
  const char* message;
};

class BuilderErrors : public testing::TestWithParam<Case> {};

TEST_P(BuilderErrors, AreOneLine) { EXPECT_EQ(error_of(GetParam().make), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(
    All, BuilderErrors,
    testing::Values(
        Case{"UnknownOperator", [](GraphBuilder& build, Value* x) { build.node("Sofmax", {x}); },
             "node 'Sofmax' of graph 'main': there is no operator 'Sofmax' in opset 21; did you mean 'Softmax'?"},
        Case{"OperatorOfALaterOpset", [](GraphBuilder& build, Value* x) { build.node("Attention", {x, x, x}); },
             "node 'Attention' of graph 'main': there is no operator 'Attention' in opset 21; it came with opset 23"},
        Case{"TooFewInputs", [](GraphBuilder& build, Value* x) { build.node("Add", {x}); },
             "node 'Add' of graph 'main': Add is given 1 input; it takes: A, B"},
        Case{"TooManyOutputs", [](GraphBuilder& build, Value* x) { build.new_node("Add", {x, x}, {true, true}); },
             "node 'Add' of graph 'main': Add is asked for 2 outputs; it makes one: C"},
        Case{"UnknownAttribute", [](GraphBuilder& build, Value* x) { build.node("Softmax", {x}, {{"axes", 1}}); },
             "node 'Softmax' of graph 'main': Softmax has no attribute 'axes'; did you mean 'axis'?"},
        Case{"MissingAttribute", [](GraphBuilder& build, Value* x) { build.node("Cast", {x}); },
             "node 'Cast' of graph 'main': Cast needs the attribute 'to'; it is INT"},
        Case{"AttributeOfAnotherType", [](GraphBuilder& build, Value* x) { build.node("Softmax", {x}, {{"axis", 1.5}}); },
             "node 'Softmax' of graph 'main': the attribute 'axis' of Softmax is given as FLOAT; it is INT"},
        Case{"TypesThatDoNotFit", [](GraphBuilder& build, Value* x) { build.node("Add", {x, build.ints({1})}); },
             "node 'Add' of graph 'main': B has inconsistent type tensor(int64); its inputs are x float32[2, 3], "
             "Constant_output int64[1]"},
        Case{"ShapesThatDoNotFit", [](GraphBuilder& build, Value* x) { build.node("MatMul", {x, x}); },
             "node 'MatMul' of graph 'main': [ShapeInferenceError] Incompatible dimensions for matrix multiplication; its "
             "inputs are x float32[2, 3], x float32[2, 3]"},
        Case{"AxisThatThereIsNot", [](GraphBuilder& build, Value* x) { build.node("GatherND", {x, x}, {{"batch_dims", -10}}); },
             "node 'GatherND' of graph 'main': batch_dims is -10, which is no axis; its inputs are x float32[2, 3], x "
             "float32[2, 3]"},
        Case{"DomainThatIsNotImported", [](GraphBuilder& build, Value* x) { build.node("acme::Fast", {x}); },
             "node 'Fast' of graph 'main': the model does not import the domain 'acme'; import_opset() says of which version "
             "its operators are"},
        Case{"NameTwice", [](GraphBuilder& build, Value*) { build.input("x", P::FLOAT, {}); },
             "input 'x' of graph 'main': the model has that name already; give it another"},
        Case{"OutputWithoutAType",
             [](GraphBuilder& build, Value* x) {
               build.import_opset("acme", 1);
               build.output("y", build.node("acme::Fast", {x}));
             },
             "output 'y' of graph 'main': its type is not known; declare() says it"},
        Case{"InputOfUnknownRank", [](GraphBuilder& build, Value*) { build.input("z", tensor_type(P::FLOAT)); },
             "input 'z' of graph 'main': the number of its axes is not known; give its type and sizes, of which any may be "
             "open"},
        Case{"InputWithoutAType", [](GraphBuilder& build, Value*) { build.input("z"); },
             "input 'z' of graph 'main': its type is not known; give its type and sizes, of which any may be open"},
        Case{"DeclarationThatContradicts",
             [](GraphBuilder& build, Value* x) { build.declare(build.node("Neg", {x}), tensor_type(P::INT64, {2, 3})); },
             "declaration of 'Neg_output': [TypeInferenceError] Inferred elem type differs from existing elem type: (FLOAT) vs "
             "(INT64); it is float32[2, 3]"},
        Case{"ValueOfABody",
             [](GraphBuilder& build, Value* x) {
               GraphBuilder body = build.body();
               build.node("Neg", {body.node("Abs", {x})});
             },
             "node 'Neg' of graph 'main': 'Abs_output' is a value of graph 'body'; bodies and functions hand out their outputs "
             "only"},
        Case{"ValueOfAnotherModel",
             [](GraphBuilder& build, Value*) {
               GraphBuilder other;
               build.node("Neg", {other.input("other", P::FLOAT, {})});
             },
             "node 'Neg' of graph 'main': 'other' is a value of another model; take one of this model"},
        Case{"FinishedBody",
             [](GraphBuilder& build, Value* x) {
               GraphBuilder body = build.body();
               body.output("y", body.node("Abs", {x}));
               build.node("If", {build.input("b", P::BOOL, {})}, {{"then_branch", body}, {"else_branch", body}});
               body.node("Neg", {x});
             },
             "node 'Neg' of graph 'body': it was finished when a node took it; add all of it before that"},
        Case{"InitializerOfAFunction",
             [](GraphBuilder& build, Value*) { build.function("acme", "F").initializer("w", Tensor::scalar(1.0F)); },
             "initializer 'w' of function 'F': functions have none; constant() makes a node that is one"},
        Case{"FunctionTwice",
             [](GraphBuilder& build, Value*) {
               build.function("acme", "F");
               build.function("acme", "F");
             },
             "function 'acme::F': the model has that function already; give it another name"},
        Case{"CallOfItself",
             [](GraphBuilder& build, Value*) {
               GraphBuilder function = build.function("acme", "F");
               function.node("acme::F", {function.input("x")});
             },
             "node 'F' of function 'F': a function calls itself; write a Loop"},
        Case{"CallWithTooManyInputs",
             [](GraphBuilder& build, Value* x) {
               GraphBuilder function = build.function("acme", "F");
               function.output("y", function.node("Neg", {function.input("x")}));
               build.node("acme::F", {x, x});
             },
             "node 'F' of graph 'main': acme::F is given 2 inputs; it takes one: x"},
        Case{"CallWithAnUnknownAttribute",
             [](GraphBuilder& build, Value* x) {
               GraphBuilder function = build.function("acme", "F", {{"alpha", 1.0F}});
               function.output("y", function.node("Neg", {function.input("x")}));
               build.node("acme::F", {x}, {{"alhpa", 2.0F}});
             },
             "node 'F' of graph 'main': acme::F has no attribute 'alhpa'; did you mean 'alpha'?"},
        Case{"CallWithoutAnAttribute",
             [](GraphBuilder& build, Value* x) {
               GraphBuilder function = build.function("acme", "F");
               const auto to = Attribute::reference("to", "type", onnx::AttributeProto::INT);
               function.output("y", function.node("Cast", {function.input("x")}, {to}));
               build.node("acme::F", {x});
             },
             "node 'F' of graph 'main': acme::F needs the attribute 'type'; give it, or the function a default"},
        Case{"FirstErrorIsKept",
             [](GraphBuilder& build, Value* x) { build.output("y", build.node("Sin", {build.node("Sinn", {x})}, {{"a", 1}})); },
             "node 'Sinn' of graph 'main': there is no operator 'Sinn' in opset 21; did you mean 'Sign'?"}),
    [](const auto& one) { return one.param.name; });

TEST(BuilderErrorsTaken, AreNotInTheModel) {
  GraphBuilder build;
  Value* x = build.input("x", P::FLOAT, {2});
  build.node("Cast", {x});
  EXPECT_FALSE(build.take_status().has_value());
  EXPECT_TRUE(build.status().has_value());
  build.node("Cast", {x});  // it is no node that was made before
  EXPECT_FALSE(build.take_status().has_value());
  build.output("y", build.node("Neg", {x}));
  const auto model = build.model();
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_EQ(model->proto.graph().node_size(), 1);
}

}  // namespace
}  // namespace attn_opt
