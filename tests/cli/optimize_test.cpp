#include <nlohmann/json.hpp>

#include "attn_opt/model_io.h"
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class Optimize : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write_file(file("in.onnxtxt"), attention_model());
    write_file(file("other.onnxtxt"), other_model());
  }

  /// other.onnx: nothing can be fused in it.
  void write_binary_other() {
    const auto model = load_model(file("other.onnxtxt"));
    ASSERT_TRUE(model.has_value());
    ASSERT_TRUE(save_model(*model, file("other.onnx")).has_value());
  }

  int opset_of(const std::string& name) {
    const auto model = load_model(file(name));
    return model ? opset_version(model->proto) : 0;
  }
};

TEST_F(Optimize, WritesTheFusedModel) {
  const ToolResult result = run("in.onnxtxt -o out.onnx");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr("attention sites: 1 of 1 fused"));
  EXPECT_THAT(result.out, ContainsRegex("Attention +0 +1\n"));
  EXPECT_THAT(result.out, ContainsRegex("wrote out.onnx \\([0-9.]+ [a-z]+ before, [0-9.]+ [a-zA-Z]+ now\\) in [0-9.]+ s\n"));
  EXPECT_EQ(opset_of("out.onnx"), 24);
}

TEST_F(Optimize, TheWholeModelCanBeVerified) {
  const ToolResult result = run("in.onnxtxt -o out.onnx --verify model --report report.json");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("whole model: 1 of 1 outputs agree over 3 runs\n"));
  const auto report = nlohmann::json::parse(read_file(file("report.json")));
  EXPECT_EQ(report["model_verification"]["runs"], 3);
  EXPECT_TRUE(report["model_verification"]["outputs"][0]["agrees"]);
  EXPECT_EQ(run("other.onnxtxt --verify model").status, 0) << "nothing to verify";
}

TEST_F(Optimize, AWholeModelThatDiffersIsNotWritten) {
  write_file(file("scaled.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[b,2,5,8] q, float[b,2,5,8] k, float[b,2,5,8] v) => (float[b,2,5,8] y) {
  kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt) c = Constant <value_float = 0.3> () t = Mul (s, c)
  p = Softmax <axis = -1> (t) y = MatMul (p, v)
}
)");
  EXPECT_EQ(run("scaled.onnxtxt --verify model --dim b=2").status, 0);
  const ToolResult result = run("scaled.onnxtxt -o out.onnx --verify model --rtol 0 --atol 0 --report report.json");
  EXPECT_EQ(result.status, 4) << result.out;
  EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("whole model's numbers differ")));
  EXPECT_FALSE(exists("out.onnx"));
  EXPECT_FALSE(nlohmann::json::parse(read_file(file("report.json")))["model_verification"]["outputs"][0]["agrees"]);
}

TEST_F(Optimize, AWholeModelThatDrawsIsNotCompared) {
  write_file(file("draws.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 22]>
g (float[1,2,5,8] q, float[1,2,5,8] k, float[1,2,5,8] v) => (float[1,2,5,8] y) {
  kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt) noise = RandomNormal <shape = [1, 2, 5, 5]> ()
  t = Add (s, noise) p = Softmax <axis = -1> (t) y = MatMul (p, v)
}
)");
  const ToolResult result = run("draws.onnxtxt -o out.onnx --verify model");
  EXPECT_EQ(result.status, 3) << result.out;
  EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("the result of RandomNormal is random")));
  EXPECT_FALSE(exists("out.onnx"));
}

TEST_F(Optimize, WhatSaysHowTheWholeModelRunsNeedsItToRun) {
  for (const std::string option : {"--dim b=2", "--rtol 1", "--threads 1", "--test-data data"}) {
    const ToolResult result = run("in.onnxtxt " + option);
    EXPECT_EQ(result.status, 2) << option;
    EXPECT_THAT(result.err, HasSubstr("--verify model")) << option;
  }
  EXPECT_EQ(run("in.onnxtxt --verify model --dim none=2").status, 2);
  EXPECT_EQ(run("in.onnxtxt --verify model --test-data missing").status, 3);
}

TEST_F(Optimize, ExternalDataGoesWhereItIsAskedFor) {
  auto model = load_model(file("in.onnxtxt"));
  ASSERT_TRUE(model.has_value());
  auto* weights = model->proto.mutable_graph()->add_initializer();
  weights->set_name("weights");
  weights->set_data_type(onnx::TensorProto::FLOAT);
  weights->add_dims(2048);
  weights->set_raw_data(std::string(8192, '7'));
  ASSERT_TRUE(save_model(*model, file("in.onnx")).has_value());
  EXPECT_EQ(run("in.onnx -o out.onnx").status, 0);
  EXPECT_FALSE(exists("out.data"));
  const ToolResult external = run("in.onnx -o out.onnx --external-data external");
  EXPECT_EQ(external.status, 0) << external.err;
  EXPECT_EQ(read_file(file("out.data")), std::string(8192, '7'));
  EXPECT_EQ(run("out.onnx -o again.onnx --external-data inline").status, 0);
  EXPECT_FALSE(exists("again.data"));
  EXPECT_THAT(read_file(file("again.onnx")), HasSubstr(std::string(8192, '7')));
  const ToolResult stream = run("in.onnx -o - --external-data external");
  EXPECT_EQ(stream.status, 5);
  EXPECT_THAT(stream.err, HasSubstr("standard output: cannot have a data file beside it"));
}

TEST_F(Optimize, WithoutOutputIsADryRun) {
  const std::string before = read_file(file("in.onnxtxt"));
  const ToolResult result = run("in.onnxtxt");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("1 fused"), HasSubstr("nothing was written")));
  EXPECT_EQ(read_file(file("in.onnxtxt")), before);
}

TEST_F(Optimize, NothingFusedKeepsTheBytes) {
  write_binary_other();
  const ToolResult result = run("other.onnx -o out.onnx");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(read_file(file("out.onnx")), read_file(file("other.onnx")));
  EXPECT_THAT(result.out, ContainsRegex("wrote out.onnx, a copy of the input, in [0-9.]+ s\n"));
}

TEST_F(Optimize, OutputMayBeTheInput) {
  EXPECT_EQ(run("in.onnxtxt -o in.onnxtxt").status, 0);
  EXPECT_THAT(read_file(file("in.onnxtxt")), HasSubstr("Attention"));
}

TEST_F(Optimize, ReadsAndWritesPipes) {
  ASSERT_EQ(run("in.onnxtxt -o fused.onnx").status, 0);
  write_binary_other();
  const ToolResult result = run("- -o - <other.onnx");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, read_file(file("other.onnx"))) << "the model alone is on standard output";
  EXPECT_THAT(result.err, HasSubstr("attention sites: 0 of 1 fused"));
}

TEST_F(Optimize, ASecondRunChangesNothing) {
  ASSERT_EQ(run("in.onnxtxt -o once.onnx").status, 0);
  ASSERT_EQ(run("once.onnx -o twice.onnx").status, 0);
  EXPECT_EQ(read_file(file("twice.onnx")), read_file(file("once.onnx")));
}

TEST_F(Optimize, VerboseNamesTheSites) {
  EXPECT_THAT(run("other.onnxtxt -v").out,
              AllOf(HasSubstr("missed  p  softmax.axis\n"), HasSubstr("attn-opt explain --id softmax.axis")));
  EXPECT_THAT(run("other.onnxtxt").out,
              AllOf(HasSubstr("missed  p\n"), HasSubstr("[softmax.axis]\nrun: attn-opt explain other.onnxtxt --node p\n"),
                    Not(HasSubstr("--id"))));
}

TEST_F(Optimize, QuietSaysNothing) {
  const ToolResult result = run("in.onnxtxt -q -o out.onnx");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out + result.err, IsEmpty());
  EXPECT_TRUE(exists("out.onnx"));
}

TEST_F(Optimize, StopAfterLimitsWhatIsFused) {
  const ToolResult result = run("in.onnxtxt --stop-after 0 -o out.onnxtxt");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(read_file(file("out.onnxtxt")), read_file(file("in.onnxtxt")));
}

TEST_F(Optimize, RequireFusedGivesOneAndNoOutput) {
  EXPECT_EQ(run("in.onnxtxt --require-fused 1 -o out.onnx").status, 0);
  EXPECT_TRUE(exists("out.onnx"));
  const ToolResult more = run("in.onnxtxt --require-fused 2 -o more.onnx --report more.json");
  EXPECT_EQ(more.status, 1);
  EXPECT_THAT(more.err, IsOneErrorLine());
  EXPECT_THAT(more.out, HasSubstr("nothing was written"));
  EXPECT_FALSE(exists("more.onnx"));
  EXPECT_EQ(nlohmann::json::parse(read_file(file("more.json")))["output"], nullptr);
  EXPECT_EQ(run("in.onnxtxt --require-fused all -o all.onnx").status, 0);
  EXPECT_EQ(run("other.onnxtxt --require-fused all -o none.onnx").status, 1);
  EXPECT_FALSE(exists("none.onnx"));
  write_file(file("none.onnxtxt"),
             "<ir_version: 8, opset_import: [\"\" : 18]>\ng (float[2] x) => (float[2] y) { y = Relu (x) }\n");
  const ToolResult nothing = run("none.onnxtxt --require-fused all");
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, AllOf(IsOneErrorLine(), HasSubstr("no attention was found in the model; --allow-none lets")));
  EXPECT_EQ(run("none.onnxtxt --require-fused all --allow-none").status, 0);
}

TEST_F(Optimize, CheckGivesOneIfAnythingCanBeFused) {
  const ToolResult result = run("in.onnxtxt --check -o out.onnx");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("--check: 1 attention site"));
  EXPECT_FALSE(exists("out.onnx"));
  EXPECT_EQ(run("other.onnxtxt --check").status, 0);
  ASSERT_EQ(run("in.onnxtxt -o fused.onnx").status, 0);
  EXPECT_EQ(run("fused.onnx --check").status, 0);
}

TEST_F(Optimize, ReportsAreValidJson) {
  const ToolResult result = run("in.onnxtxt -o out.onnx --report one.json --report two.json");
  EXPECT_EQ(result.status, 0) << result.err;
  const auto report = nlohmann::json::parse(read_file(file("one.json")));
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_EQ(report["input"], "in.onnxtxt");
  EXPECT_EQ(report["output"], "out.onnx");
  EXPECT_EQ(report["summary"]["fused"], 1);
  EXPECT_EQ(report["opset"]["after"], 24);
  EXPECT_EQ(report["sites"][0]["outcome"], "fused");
  EXPECT_EQ(read_file(file("one.json")), read_file(file("two.json")));
}

TEST_F(Optimize, ReportsHaveTheFormatOfTheirEndingOrOfAWord) {
  const ToolResult result =
      run("in.onnxtxt --report r.sarif --report r.xml --report r.md --report junit:plain --report json:-");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(read_file(file("r.sarif")))["version"], "2.1.0");
  EXPECT_THAT(read_file(file("r.xml")), AllOf(StartsWith("<?xml"), HasSubstr("<testsuite name=\"in.onnxtxt\" tests=\"1\"")));
  EXPECT_THAT(read_file(file("r.md")), StartsWith("### attn-opt: `in.onnxtxt`"));
  EXPECT_EQ(read_file(file("plain")), read_file(file("r.xml")));
  EXPECT_EQ(nlohmann::json::parse(result.out)["summary"]["fused"], 1) << "the report alone is on standard output";
  EXPECT_THAT(result.err, HasSubstr("attention sites: 1 of 1 fused"));
}

TEST_F(Optimize, ProgressIsForTerminalsUnlessAsked) {
  EXPECT_THAT(run("in.onnxtxt --progress auto").err, IsEmpty());
  EXPECT_THAT(run("in.onnxtxt --progress always").err, StartsWith("attn-opt: "));
}

TEST_F(Optimize, UsageErrorsGiveTwo) {
  for (const std::string arguments : {"",
                                      "in.onnxtxt --no-such-option",
                                      "in.onnxtxt in.onnxtxt",
                                      "in.onnxtxt --form 5d",
                                      "in.onnxtxt --verify never",
                                      "in.onnxtxt --opset 22",
                                      "in.onnxtxt --opset 26",
                                      "in.onnxtxt --opset x",
                                      "in.onnxtxt --opset keep",
                                      "in.onnxtxt --target cuda --opset keep",
                                      "in.onnxtxt --target directml --opset 24",
                                      "in.onnxtxt --target none",
                                      "in.onnxtxt --only no_such_pattern",
                                      "in.onnxtxt --disable no_such_pattern",
                                      "in.onnxtxt --report r.txt",
                                      "in.onnxtxt --report text:r",
                                      "in.onnxtxt --report md:- --report json:-",
                                      "in.onnxtxt --require-fused some",
                                      "in.onnxtxt --require-fused -1",
                                      "in.onnxtxt --stop-after -1",
                                      "in.onnxtxt --on-mismatch maybe",
                                      "in.onnxtxt -v -q",
                                      "in.json --report in.json"}) {
    const ToolResult result = run(arguments + " -o out.onnx");
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.err, IsOneErrorLine()) << arguments;
    EXPECT_THAT(result.out, IsEmpty()) << arguments;
    EXPECT_FALSE(exists("out.onnx")) << arguments;
  }
  EXPECT_THAT(run("in.onnxtxt --target ortt").err, HasSubstr("did you mean 'ort'?"));
  EXPECT_THAT(run("in.onnxtxt --opset keep").err, HasSubstr("keep, and --target portable writes Attention"));
  EXPECT_THAT(run("in.onnxtxt --target directml --opset 24").err, HasSubstr("runs none above 20; take --opset keep"));
  EXPECT_THAT(run("in.onnxtxt --opset 26").err, HasSubstr("--opset: opset 26 cannot be written"));
  EXPECT_THAT(run("in.onnxtxt --opset latest").err, HasSubstr("--opset: 'latest' is no value of it; it takes keep|23|24|25\n"));
  EXPECT_THAT(run("in.onnxtxt --verify true").err,
              HasSubstr("--verify: 'true' is no value of it; it takes sites|all-sites|model|off\n"));
  EXPECT_THAT(run("in.onnxtxt --memory-limit lots").err,
              HasSubstr("--memory-limit: 'lots' is no value of it; it takes a size, as 512MB, 8GB or 1GiB\n"));
  EXPECT_THAT(run("in.onnxtxt --stop-after -2").err,
              HasSubstr("--stop-after: '-2' is no value of it; it takes a number from 0 on\n"));
  EXPECT_THAT(run("in.onnxtxt --threads 300").err,
              HasSubstr("--threads: '300' is no value of it; it takes a number from 0 to 256\n"));
  EXPECT_THAT(run("compare in.onnxtxt in.onnxtxt --seeds 0").err,
              HasSubstr("--seeds: '0' is no value of it; it takes a number from 1 on\n"));
}

TEST_F(Optimize, FirstTriesAreAnsweredWithWhatWasMeant) {
  const ToolResult result = run("in.onnxtxt out.onnx");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("to write there: -o out.onnx\n")));
  for (const std::string option : {"--html r", "--format json", "--json"})
    EXPECT_THAT(run("in.onnxtxt " + option).err, HasSubstr("; --report FILE writes a report; ")) << option;
  EXPECT_THAT(run("in.onnxtxt --formm 3d").err, HasSubstr("did you mean '--form'?"));
  for (const std::string option : {"--quantise", "--pool"})
    EXPECT_THAT(run("in.onnxtxt " + option).err, Not(HasSubstr("did you mean"))) << "nothing is near " << option;
  EXPECT_THAT(run("--list-patterns").err,
              AllOf(HasSubstr("there is no option --list-patterns; attn-opt patterns lists them"), Not(HasSubstr("INPUT"))));
  EXPECT_THAT(run("").err, HasSubstr("INPUT is required"));
}

TEST_F(Optimize, TheMainJobMayBeNamed) {
  for (const std::string word : {"optimize", "optimise"}) {
    EXPECT_THAT(run(word + " in.onnxtxt").out, HasSubstr("attention sites: 1 of 1 fused")) << word;
  }
  write_file(file("optimize"), "no model");
  EXPECT_EQ(run("optimize").status, 3) << "a file of that name is the model";
}

TEST_F(Optimize, DryRunWritesNothing) {
  const ToolResult result = run("in.onnxtxt -o out.onnx --dry-run");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("nothing was written"));
  EXPECT_FALSE(exists("out.onnx"));
}

TEST_F(Optimize, TheOutputIsLookedAtBeforeTheWork) {
  const ToolResult none = run("in.onnxtxt -o no/such/out.onnx");
  EXPECT_EQ(none.status, 5);
  EXPECT_THAT(none.out, IsEmpty());
  EXPECT_THAT(none.err,
              HasSubstr("no/such/out.onnx: cannot be written: there is no folder no/such; mkdir -p 'no/such' makes it\n"));
  for (const std::string option : {"--report no/such/r.json", "--baseline no/such/b.json --update-baseline"})
    EXPECT_THAT(run("in.onnxtxt " + option).err, HasSubstr("there is no folder no/such; mkdir -p 'no/such' makes it\n"))
        << option;
  EXPECT_THAT(run("explain in.onnxtxt --rule-out no/such/a.rule").err, HasSubstr("mkdir -p 'no/such' makes it\n"));
  const ToolResult to_json = run("in.onnxtxt -o out.json");
  EXPECT_EQ(to_json.status, 0);
  EXPECT_THAT(to_json.err, HasSubstr("warning: out.json: is written as an ONNX model"));
  EXPECT_THAT(run("in.onnxtxt -o out.onnxtxt").err, IsEmpty());
}

TEST_F(Optimize, HelpNamesTheUsualChoiceFirst) {
  const std::string help = run("--help").out;
  for (const std::string choices : {"--form auto|3d|4d (auto)", "--verify sites|all-sites|model|off (sites)",
                                    "--external-data auto|inline|external (auto)", "--progress auto|always|never (auto)"})
    EXPECT_THAT(help, HasSubstr(choices));
}

TEST_F(Optimize, TheManualPageSaysWhatCommandsTake) {
  const std::string page = run("man").out;
  EXPECT_THAT(page, AllOf(HasSubstr(".B attn\\-opt compare\n[\\fIoptions\\fR] \\fIA\\fR \\fIB\\fR\n"),
                          HasSubstr(".B attn\\-opt batch\n[\\fIoptions\\fR] \\fIMODELS\\fR ...\n")));
}

TEST_F(Optimize, AWrongPatternNameIsAnsweredWithTheRightOne) {
  EXPECT_THAT(run("in.onnxtxt --only softmax_atention").err, HasSubstr("did you mean 'softmax_attention'?"));
}

TEST_F(Optimize, OnlyAndDisableChooseThePattern) {
  EXPECT_EQ(run("in.onnxtxt --only softmax_attention --require-fused 1").status, 0);
  EXPECT_EQ(run("--only softmax_attention in.onnxtxt").status, 0) << "an option takes one name, not the model too";
}

TEST_F(Optimize, UnreadableInputsGiveThree) {
  write_file(file("empty.onnx"), "");
  write_file(file("garbage.onnx"), "this is no model at all\n\xff\xfe\x01");
  write_file(file("garbage.onnxtxt"), "<ir_version: 8, nonsense");
  write_file(file("invalid.onnxtxt"),
             "<ir_version: 8, opset_import: [\"\" : 18]>\ng (float x) => (float y) { y = NoSuchOp (x) }\n");
  for (const std::string input :
       {"missing.onnx", ".", "empty.onnx", "garbage.onnx", "garbage.onnxtxt", "invalid.onnxtxt", "-"}) {
    const ToolResult result = run(input + " -o out.onnx");
    EXPECT_EQ(result.status, 3) << input;
    EXPECT_THAT(result.err, IsOneErrorLine()) << input;
    EXPECT_FALSE(exists("out.onnx")) << input;
  }
  EXPECT_THAT(run("missing.onnx").err, HasSubstr("missing.onnx"));
  write_file(file("pointer.onnx"), "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 12345\n");
  const ToolResult pointer = run("pointer.onnx");
  EXPECT_EQ(pointer.status, 3);
  EXPECT_THAT(pointer.err, HasSubstr("pointer.onnx: is a Git LFS pointer, not the model; run `git lfs pull`\n"));
}

TEST_F(Optimize, UnwritableOutputsGiveFive) {
  for (const std::string options : {"-o no/such/folder/out.onnx", "-o .", "-o out.onnx --report no/such/folder/r.json"}) {
    const ToolResult result = run("in.onnxtxt " + options);
    EXPECT_EQ(result.status, 5) << options;
    EXPECT_THAT(result.err, IsOneErrorLine()) << options;
    EXPECT_FALSE(exists("out.onnx")) << options;
  }
}

TEST_F(Optimize, AFailedRunKeepsWhatWasThere) {
  write_file(file("out.onnx"), "of before");
  EXPECT_EQ(run("in.onnxtxt --require-fused 9 -o out.onnx").status, 1);
  EXPECT_EQ(read_file(file("out.onnx")), "of before");
}

TEST_F(Optimize, HelpAndVersionGiveZero) {
  const ToolResult help = run("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("--require-fused"), HasSubstr("explain"), HasSubstr("compare")));
  const ToolResult version = run("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, ContainsRegex("^attn-opt [0-9]+\\.[0-9]+\\.[0-9]+\n$"));
}

TEST_F(Optimize, AFullStandardOutputGivesFive) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  EXPECT_EQ(run("in.onnxtxt >/dev/full 2>stderr.txt #").status, 5);
}

}  // namespace
}  // namespace attn_opt
