#include <nlohmann/json.hpp>

#include "attn_opt/model_io.h"
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BaselineOption : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    std::filesystem::create_directory(file("models"));
    write_file(file("models/a.onnxtxt"), attention_model());
    ASSERT_EQ(run("models/a.onnxtxt --baseline attn.json --update-baseline -q").status, 0);
  }

  /// The model with its softmax's output called NAME.
  static std::string renamed(const std::string& name) {
    std::string text = attention_model();
    text.replace(text.find("  p = "), 6, "  " + name + " = ");
    return text.replace(text.find("(p, v)"), 6, "(" + name + ", v)");
  }
};

TEST_F(BaselineOption, ModelsAreNamedFromItsFolder) {
  const auto baseline = nlohmann::json::parse(read_file(file("attn.json")));
  ASSERT_TRUE(baseline["models"].contains("models/a.onnxtxt")) << baseline;
  EXPECT_EQ(baseline["models"]["models/a.onnxtxt"]["fused"].size(), 1u);
  const std::string whole = file("models/a.onnxtxt").string();
  EXPECT_EQ(run("'" + whole + "' --baseline attn.json").status, 0);
  EXPECT_THAT(run("'" + whole + "' --baseline attn.json").err, IsEmpty());
}

TEST_F(BaselineOption, ALostFusionGivesOneAndNamesTheSite) {
  write_file(file("models/a.onnxtxt"), other_model());
  const ToolResult result = run("models/a.onnxtxt --baseline attn.json -o out.onnx --report r.xml");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(
      result.err,
      AllOf(IsOneErrorLine(), HasSubstr("models/a.onnxtxt: attention p is no longer fused: axis "), HasSubstr("[softmax.axis]"),
            HasSubstr("; run: attn-opt explain models/a.onnxtxt --node p; --update-baseline accepts that")));
  EXPECT_FALSE(exists("out.onnx"));
  EXPECT_THAT(read_file(file("r.xml")), HasSubstr("<failure type=\"status 1\""));
  EXPECT_EQ(run("models/a.onnxtxt --baseline attn.json --update-baseline").status, 0);
  EXPECT_EQ(run("models/a.onnxtxt --baseline attn.json").status, 0);
}

TEST_F(BaselineOption, WhatAnUpdateAcceptsIsListed) {
  const auto store = [this](const std::string& name, const std::string& text) {
    write_file(file("text.onnxtxt"), text);
    const auto model = load_model(file("text.onnxtxt"));
    ASSERT_TRUE(model && save_model(*model, file(name)));
  };
  store("models/a.onnx", attention_model());
  store("models/b.onnx", attention_model());
  const std::string batch_update = "batch models --baseline many.json --update-baseline",
                    one_update = "models/a.onnx --baseline one.json --update-baseline";
  EXPECT_EQ(run(batch_update).err + run(one_update).err, "") << "nothing is lost";
  store("models/a.onnx", other_model());
  std::filesystem::remove(file("models/b.onnx"));
  const std::string batch = run(batch_update).err, one = run(one_update).err;
  for (const std::string& said : {batch, one})
    EXPECT_THAT(said, AllOf(HasSubstr("models/a.onnx: attention p is no longer fused: axis "), HasSubstr("accepts that now")));
  EXPECT_THAT(batch, HasSubstr("models/b.onnx is no longer there; many.json drops it"));
  EXPECT_EQ(run(one_update).err, "") << "it is accepted already";
}

TEST_F(BaselineOption, ASiteThatIsGoneIsLostUnlessAnotherCameInstead) {
  write_file(file("models/a.onnxtxt"), renamed("other"));
  EXPECT_EQ(run("models/a.onnxtxt --baseline attn.json").status, 0) << "exporters rename nodes";
  write_file(file("models/a.onnxtxt"),
             "<ir_version: 8, opset_import: [\"\" : 18]>\ng (float[2] x) => (float[2] y) { y = Identity (x) }\n");
  const ToolResult result = run("models/a.onnxtxt --baseline attn.json");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("attention p is no longer there"));
}

/// Two attentions in the modules "b.0" and "b.1", whose nodes are called NAMES, the second by keys if SECOND_IS_FUSED, else by
/// queries.
class BaselineOfModules : public BaselineOption {
 protected:
  void write(const std::array<std::string, 2>& names, bool second_is_fused) {
    const std::string axis = second_is_fused ? "-1" : "-2";
    write_file(file("two.onnxtxt"), R"(<ir_version: 10, opset_import: ["" : 18]>
g (float[2,2,5,8] q, float[2,2,5,8] k, float[2,2,5,8] v) => (float[2,2,5,8] y, float[2,2,5,8] z) {
  kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt) t = Add (s, s) p = Softmax <axis = -1> (s) y = MatMul (p, v)
  r = Softmax <axis = )" + axis + "> (t) z = MatMul (r, v) }");
    auto model = load_model(file("two.onnxtxt"));
    ASSERT_TRUE(model.has_value());
    size_t softmaxes = 0;
    for (auto& node : *model->proto.mutable_graph()->mutable_node()) {
      if (node.op_type() != "Softmax") continue;
      auto* scopes = node.add_metadata_props();
      scopes->set_key("pkg.torch.onnx.name_scopes");
      scopes->set_value("['', 'b." + std::to_string(softmaxes) + "', 'softmax']");
      node.set_name(names[softmaxes++]);
    }
    ASSERT_TRUE(save_model(*model, file("two.onnx")).has_value());
  }
};

TEST_F(BaselineOfModules, ModulesTellSitesAndNotNumberedNames) {
  write({"node_softmax", "node_softmax_1"}, true);
  ASSERT_EQ(run("two.onnx --baseline two.json --update-baseline -q").status, 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(file("two.json")))["models"]["two.onnx"]["fused"][1]["module"], "b.1");
  write({"node_softmax_1", "node_softmax_2"}, true);
  EXPECT_EQ(run("two.onnx --baseline two.json").status, 0);
  write({"node_softmax_1", "node_softmax_2"}, false);
  const ToolResult lost = run("two.onnx --baseline two.json");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.err, AllOf(HasSubstr("attention b.1 is no longer fused: "), Not(HasSubstr("b.0"))));
}

TEST_F(BaselineOfModules, OneOfBeforeModulesWereKnownGoesByNames) {
  write({"first", "second"}, true);
  write_file(file("two.json"),
             R"({"schema_version": 1, "models": {"two.onnx": {"fused": [{"graph": "main", "name": "second"}]}}})");
  EXPECT_EQ(run("two.onnx --baseline two.json").status, 0);
  write({"first", "second"}, false);
  EXPECT_EQ(run("two.onnx --baseline two.json").status, 1);
}

/// Attentions without modules, by their softmaxes; those that begin with "no" run over the queries and are not fused.
std::string model_of(const std::vector<std::string>& softmaxes) {
  std::string text, outputs;
  for (const std::string& name : softmaxes) {
    const std::string axis = name.starts_with("no") ? "-2" : "-1";
    text += "  " + name + "_t = Transpose <perm = [0, 1, 3, 2]> (k) " + name + "_s = MatMul (q, " + name + "_t) " + name +
            " = Softmax <axis = " + axis + "> (" + name + "_s) " + name + "_y = MatMul (" + name + ", v)\n";
    outputs += (outputs.empty() ? "" : ", ") + ("float[2,2,5,8] " + name + "_y");
  }
  return "<ir_version: 10, opset_import: [\"\" : 18]>\ng (float[2,2,5,8] q, float[2,2,5,8] k, float[2,2,5,8] v) => (" +
         outputs + ") {\n" + text + "}\n";
}

TEST_F(BaselineOption, ALossBehindANewNameIsSeenBesideANewFusion) {
  write_file(file("two.onnxtxt"), model_of({"a", "b", "no"}));
  ASSERT_EQ(run("two.onnxtxt --baseline two.json --update-baseline -q").status, 0);
  const auto written = nlohmann::json::parse(read_file(file("two.json")))["models"]["two.onnxtxt"];
  EXPECT_EQ(written["missed"], nlohmann::json::parse(R"([{"graph": "main", "name": "no"}])"));
  write_file(file("two.onnxtxt"), model_of({"a", "c", "no_2"}));
  EXPECT_EQ(run("two.onnxtxt --baseline two.json").err, "") << "exporters rename what is missed too";
  write_file(file("two.onnxtxt"), model_of({"a", "no_b", "c", "no"}));
  const ToolResult lost = run("two.onnxtxt --baseline two.json --report r.json");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.err,
              AllOf(IsOneErrorLine(), HasSubstr("attention b is no longer there, and no_b, which is new, is not fused: "),
                    HasSubstr("explain two.onnxtxt --node no_b;")));
  EXPECT_EQ(nlohmann::json::parse(read_file(file("r.json")))["sites"][1]["lost"], true);
}

TEST_F(BaselineOption, NewAttentionThatIsNotFusedIsNamed) {
  write_file(file("two.onnxtxt"), model_of({"a"}));
  ASSERT_EQ(run("two.onnxtxt --baseline two.json --update-baseline -q").status, 0);
  write_file(file("two.onnxtxt"), model_of({"a", "no_b"}));
  for (const std::string command : {"", "batch "}) {
    const ToolResult result = run(command + "two.onnxtxt --baseline two.json");
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, AllOf(HasSubstr("two.onnxtxt: attention no_b is not fused and not in two.json: "),
                                  HasSubstr("[softmax.axis]; --update-baseline enters it")))
        << command;
  }
}

TEST_F(BaselineOption, OneOfBeforeMissesWereKnownSaysThatItCannotTell) {
  write_file(file("two.json"),
             R"({"schema_version": 1, "models": {"two.onnxtxt": {"fused": [{"graph": "main", "name": "a"}]}}})");
  write_file(file("two.onnxtxt"), model_of({"a", "no"}));
  EXPECT_EQ(run("two.onnxtxt --baseline two.json").err, "");
  write_file(file("two.onnxtxt"), model_of({"b", "no_a"}));
  const ToolResult result = run("two.onnxtxt --baseline two.json");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("attention no_a is not fused, and two.json does not say whether it was: "));
}

TEST_F(BaselineOption, AModelThatIsNotInItFailsUnlessItMayBeNew) {
  write_file(file("models/b.onnxtxt"), attention_model());
  for (const std::string fails : {"", " --baseline-new fail"}) {
    const ToolResult result = run("models/b.onnxtxt --baseline attn.json" + fails);
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err,
                AllOf(IsOneErrorLine(), HasSubstr("models/b.onnxtxt: is not in attn.json"), HasSubstr("--baseline-new")));
  }
  const ToolResult warned = run("models/b.onnxtxt --baseline attn.json --baseline-new warn");
  EXPECT_EQ(warned.status, 0);
  EXPECT_THAT(warned.err, HasSubstr("models/b.onnxtxt is not in attn.json"));
  const ToolResult accepted = run("models/b.onnxtxt --baseline attn.json --baseline-new accept");
  EXPECT_EQ(accepted.status, 0);
  EXPECT_THAT(accepted.err, IsEmpty());
  EXPECT_EQ(run("models/b.onnxtxt --baseline-new accept").status, 2) << "there is no baseline";
  ASSERT_EQ(run("models/b.onnxtxt --baseline attn.json --update-baseline").status, 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(file("attn.json")))["models"].size(), 2u) << "the other one stays";
}

/// As the report's issue has it: an operator that is none of attention's, in a module of the user's program.
TEST_F(BaselineOfModules, TheErrorSaysWhatWasFoundAndWhatToRun) {
  write({"node_softmax", "node_softmax_5"}, true);
  ASSERT_EQ(run("two.onnx --baseline two.json --update-baseline -q").status, 0);
  auto model = load_model(file("two.onnx"));
  ASSERT_TRUE(model.has_value());
  for (auto& node : *model->proto.mutable_graph()->mutable_node()) {
    if (node.op_type() == "Add") node.set_op_type("Elu"), node.mutable_input()->DeleteSubrange(1, 1);
    if (node.name() != "node_softmax_5") continue;
    auto* trace = node.add_metadata_props();
    trace->set_key("pkg.torch.onnx.stack_trace");
    trace->set_value("File \"model.py\", line 10, in forward");
  }
  ASSERT_TRUE(save_model(*model, file("two.onnx")).has_value());
  const ToolResult lost = run("two.onnx --baseline two.json --report r.sarif --report r.json");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(
      lost.err,
      AllOf(HasSubstr(
                "attention b.1 (model.py:10) is no longer fused: Elu at 't' between Q·Kᵀ and the softmax [scores.operator]; "),
            HasSubstr("run: attn-opt explain two.onnx --node node_softmax_5;")));
  const auto result = nlohmann::json::parse(read_file(file("r.sarif")))["runs"][0]["results"][0];
  EXPECT_EQ(result["level"], "error") << "a lost fusion is no warning";
  EXPECT_THAT(result["message"]["text"].get<std::string>(),
              testing::StartsWith("Attention b.1 (model.py:10) is no longer fused: Elu "));
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 10);
  const auto report = nlohmann::json::parse(read_file(file("r.json")));
  EXPECT_EQ(report["sites"][0]["lost"], false);
  EXPECT_EQ(report["sites"][1]["lost"], true);
}

TEST_F(BaselineOption, GitHubShowsTheErrorOfAJob) {
  write_file(file("models/a.onnxtxt"), other_model());
  setenv("GITHUB_ACTIONS", "true", 1);
  const ToolResult result = run("models/a.onnxtxt --baseline attn.json"),
                   batch = run("batch models/a.onnxtxt --baseline attn.json");
  setenv("GITHUB_ACTIONS", "false", 1);
  const ToolResult elsewhere = run("models/a.onnxtxt --baseline attn.json");
  unsetenv("GITHUB_ACTIONS");
  EXPECT_THAT(result.err, testing::StartsWith("::error title=attn-opt::models/a.onnxtxt: attention p is no longer fused"));
  EXPECT_THAT(result.err, HasSubstr("\nattn-opt: models/a.onnxtxt: attention p"));
  EXPECT_THAT(batch.err, testing::StartsWith("::error title=attn-opt::models/a.onnxtxt: attention p is no longer fused"));
  EXPECT_THAT(elsewhere.err, IsOneErrorLine());
}

TEST_F(BaselineOption, AReportServesAsOne) {
  ASSERT_EQ(run("models/a.onnxtxt --report report.json").status, 0);
  EXPECT_EQ(run("models/a.onnxtxt --baseline report.json").status, 0);
  write_file(file("models/a.onnxtxt"), other_model());
  EXPECT_EQ(run("models/a.onnxtxt --baseline report.json").status, 1);
}

TEST_F(BaselineOption, RewritesAreKeptByHowOftenTheyAreApplied) {
  const auto gelus = [](int count) {
    std::string text =
        "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[4,n] x0) => (float[4,n] y)\n"
        "<float root = {1.4142135623730951}, float one = {1}, float half = {0.5}> {\n";
    for (int i = 0; i < count; ++i) {
      const std::string n = std::to_string(i), next = std::to_string(i + 1);
      text += "d" + n + " = Div (x" + n + ", root)\ne" + n + " = Erf (d" + n + ")\ns" + n + " = Add (e" + n + ", one)\n" + "m" +
              n + " = Mul (x" + n + ", s" + n + ")\nx" + next + " = Mul (m" + n + ", half)\n";
    }
    return text + "y = Identity (x" + std::to_string(count) + ")\n}\n";
  };
  const std::string held = "models/g.onnxtxt --also gelu --baseline gelu.json";
  write_file(file("models/g.onnxtxt"), gelus(2));
  ASSERT_EQ(run(held + " --update-baseline").status, 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(file("gelu.json")))["models"]["models/g.onnxtxt"]["rewritten"]["gelu"], 2);
  EXPECT_EQ(run(held).status, 0);
  const ToolResult without = run("models/g.onnxtxt --baseline gelu.json");
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(without.err, AllOf(IsOneErrorLine(), HasSubstr("rewrite gelu is applied nowhere and was 2 times")));
  ASSERT_EQ(run("models/g.onnxtxt --also gelu --report of_two.json").status, 0);
  write_file(file("models/g.onnxtxt"), gelus(1));
  EXPECT_THAT(run(held).err, HasSubstr("rewrite gelu is applied once and was 2 times"));
  EXPECT_EQ(run("models/g.onnxtxt --also gelu --baseline of_two.json").status, 1) << "a report serves as one";
  EXPECT_THAT(run(held + " --update-baseline").err, HasSubstr("gelu.json accepts that now"));
  write_file(file("models/g.onnxtxt"), gelus(3));
  EXPECT_EQ(run(held).status, 0);
}

TEST_F(BaselineOption, AnUnmetRequirementDoesNotUpdateIt) {
  const std::string before = read_file(file("attn.json"));
  write_file(file("models/a.onnxtxt"), other_model());
  EXPECT_EQ(run("models/a.onnxtxt --require-fused all --baseline attn.json --update-baseline").status, 1);
  EXPECT_EQ(read_file(file("attn.json")), before);
}

TEST_F(BaselineOption, WhatIsNoBaselineIsRefused) {
  EXPECT_EQ(run("models/a.onnxtxt --baseline missing.json").status, 3);
  for (const std::string text : {"", "{", "[]", "{\"schema_version\": 2, \"models\": {}}", "{\"sites\": 3}",
                                 "{\"schema_version\": 1, \"models\": {\"a\": {\"fused\": [{\"name\": 1}]}}}",
                                 "{\"schema_version\": 1, \"models\": {\"a\": {\"fused\": [], \"rewritten\": {\"b\": -1}}}}",
                                 "{\"sites\": [], \"rewrites\": [{}]}"}) {
    write_file(file("bad.json"), text);
    const ToolResult result = run("models/a.onnxtxt --baseline bad.json");
    EXPECT_EQ(result.status, 3) << text;
    EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("is no baseline"))) << text;
  }
  EXPECT_EQ(run("models/a.onnxtxt --update-baseline").status, 2);
}

}  // namespace
}  // namespace attn_opt
