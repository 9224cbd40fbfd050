#include <nlohmann/json.hpp>

#include "attn_opt/model_io.h"
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Sanitizers of addresses and threads reserve terabytes of them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kReservesAddresses = true;
#elif defined(__clang__)
constexpr bool kReservesAddresses = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kReservesAddresses = false;
#endif

class Batch : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write_model("models/a.onnx", attention_model());
    write_model("models/deep/b.onnx", other_model());
    write_file(file("models/notes.txt"), "no model");
  }

  void write_model(const std::string& name, const std::string& text) {
    write_file(file("model.onnxtxt"), text);
    const auto model = load_model(file("model.onnxtxt"));
    ASSERT_TRUE(model.has_value());
    std::filesystem::create_directories(file(name).parent_path());
    ASSERT_TRUE(save_model(*model, file(name)).has_value());
  }

  json report(const std::string& name) { return json::parse(read_file(file(name))); }
};

TEST_F(Batch, OptimisesAFolderAndKeepsItsLayout) {
  const ToolResult result = run("batch models -o out --report r.json");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr("2 models: 2 done; 1 of 2 attention sites fused\n"));
  EXPECT_EQ(read_file(file("out/deep/b.onnx")), read_file(file("models/deep/b.onnx")));
  ASSERT_EQ(run("models/a.onnx -o single.onnx").status, 0);
  EXPECT_EQ(read_file(file("out/a.onnx")), read_file(file("single.onnx"))) << "the normal job";
  const json summary = report("r.json");
  EXPECT_EQ(summary["models"][0]["input"], "models/a.onnx");
  EXPECT_EQ(summary["models"][0]["output"], "out/a.onnx");
  EXPECT_EQ(summary["models"][0]["report"]["summary"]["fused"], 1);
  EXPECT_EQ(summary["summary"]["status"], 0);
}

TEST_F(Batch, AnOutputCalledLikeAModelIsWarnedOf) {
  const ToolResult result = run("batch models/a.onnx -o fused.onnx");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("warning: fused.onnx: becomes a folder, with a model in it for each input\n"));
  EXPECT_THAT(run("batch models/a.onnx -o fused.onnx").err, IsEmpty()) << "it is one";
  EXPECT_THAT(run("batch models/a.onnx -o fused").err, IsEmpty());
}

TEST_F(Batch, OneModelDoesNotEndTheOthersAndTheWorstStatusCounts) {
  write_file(file("models/0.onnx"), "garbage");
  const ToolResult result = run("batch models -o out --jobs 1 --require-fused all --report r.json");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("attn-opt: models/0.onnx: "), HasSubstr("attn-opt: models/deep/b.onnx: --require-fused all")));
  EXPECT_TRUE(exists("out/a.onnx"));
  EXPECT_FALSE(exists("out/0.onnx"));
  EXPECT_FALSE(exists("out/deep/b.onnx"));
  EXPECT_EQ(report("r.json")["summary"]["by_status"], json({{"0", 1}, {"1", 1}, {"3", 1}}));
  EXPECT_EQ(report("r.json")["models"][0]["report"], nullptr);
}

TEST_F(Batch, WhatIsFinishedAndUnchangedIsNotRunAgain) {
  ASSERT_EQ(run("batch models -o out --report first.json").status, 0);
  const ToolResult again = run("batch models -o out --report again.json");
  EXPECT_THAT(again.out, HasSubstr("2 finished before and unchanged\n2 models: 2 done;"));
  EXPECT_EQ(report("first.json"), report("again.json"));
  write_model("models/deep/b.onnx", attention_model());
  EXPECT_THAT(run("batch models -o out").out, AllOf(HasSubstr("1 finished before"), HasSubstr("[2/2]"), HasSubstr("2 of 2")));
  EXPECT_THAT(run("batch models -o out --verify off").out, Not(HasSubstr("finished before"))) << "other options";
  std::filesystem::remove(file("out/a.onnx"));
  EXPECT_THAT(run("batch models -o out --verify off").out, HasSubstr("1 finished before"));
  EXPECT_TRUE(exists("out/a.onnx"));
  EXPECT_THAT(run("batch models -o out --verify off --fresh").out, Not(HasSubstr("finished before")));
}

TEST_F(Batch, AnUnmetRequirementIsRememberedButAnUnreadableModelIsTriedAgain) {
  write_file(file("models/0.onnx"), "garbage");
  EXPECT_EQ(run("batch models -o out --require-fused all").status, 3);
  const ToolResult again = run("batch models -o out --require-fused all");
  EXPECT_EQ(again.status, 3);
  EXPECT_THAT(again.out, HasSubstr("2 finished before and unchanged"));
  EXPECT_THAT(again.err, HasSubstr("models/deep/b.onnx: --require-fused all"));
  std::filesystem::remove(file("models/0.onnx"));
  EXPECT_EQ(run("batch models -o out --require-fused all").status, 1);
}

TEST_F(Batch, AKilledBatchLeavesWholeOutputsAndGoesOn) {
  constexpr int kModels = 40;
  for (int i = 0; i < kModels; ++i)
    std::filesystem::copy(file("models/a.onnx"), file("models/copy" + std::to_string(i) + ".onnx"));
  ASSERT_EQ(run("models/a.onnx -o single.onnx").status, 0);
  std::filesystem::create_directory(file("out"));  // a slow machine kills the batch before it does so
  run("--version; timeout -s KILL 0.4 '" ATTN_OPT_BINARY "' batch models -o out --jobs 2");
  const std::string whole = read_file(file("single.onnx"));
  for (const auto& entry : std::filesystem::directory_iterator(file("out"))) {
    if (entry.is_regular_file()) {
      EXPECT_EQ(read_file(entry.path()), whole) << entry.path();
    }
  }
  const ToolResult result = run("batch models -o out");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("42 models: 42 done; 41 of 42 attention sites fused\n"));
  int outputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(file("out"))) outputs += entry.is_regular_file();
  EXPECT_EQ(outputs, kModels + 1) << "and nothing else";
}

TEST_F(Batch, ACrashIsTheModelsOwn) {
  const ToolResult result = run("batch models -o out --process-memory 1MB");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, HasSubstr("attn-opt: models/a.onnx: was ended by a signal: "));
}

TEST_F(Batch, LimitsEndAModelAndNotTheBatch) {
  const ToolResult late = run("batch models -o out --timeout 0.0001");
  EXPECT_EQ(late.status, 3);
  EXPECT_THAT(late.err, AllOf(HasSubstr("models/a.onnx: took longer than 0.0001 s"), HasSubstr("models/deep/b.onnx: ")));
  const ToolResult large = run("batch models -o out --process-memory 1MB");
  EXPECT_EQ(large.status, 3);
  EXPECT_THAT(large.out, HasSubstr("2 models: 2 not readable"));
  EXPECT_FALSE(exists("out/a.onnx"));
  if (!kReservesAddresses) {
    EXPECT_EQ(run("batch models -o out --process-memory 4GB --timeout 100").status, 0);
  }
}

TEST_F(Batch, TakesListsAndFiles) {
  write_file(file("list.txt"), "models/a.onnx\n\nmodels/deep\n");
  EXPECT_THAT(run("batch @list.txt -o one").out, HasSubstr("2 models"));
  EXPECT_TRUE(exists("one/a.onnx") && exists("one/deep/b.onnx"));
  const ToolResult none = run("batch @- -o none --report r.json </dev/null");
  EXPECT_EQ(none.status, 0) << none.err << "a part of a list may be empty";
  EXPECT_EQ(report("r.json")["summary"]["models"], 0);
  EXPECT_THAT(run("batch @- -o two <list.txt").out, HasSubstr("2 models"));
  EXPECT_EQ(run("batch models/a.onnx models/a.onnx -o three").status, 0);
  EXPECT_TRUE(exists("three/a.onnx"));
  EXPECT_EQ(run("batch models/a.onnx --root . -o four").status, 0);
  EXPECT_TRUE(exists("four/models/a.onnx")) << "parts of a list have one layout";
  EXPECT_THAT(run("batch . -o models/deep/out").out, HasSubstr("8 models")) << "inputs and the outputs of before";
  EXPECT_THAT(run("batch models -o models/deep/out").out, HasSubstr("2 models")) << "its own outputs are no inputs";
}

TEST_F(Batch, NamesNeedNotBeText) {
  std::filesystem::rename(file("models/a.onnx"), file("models/\xff.onnx"));
  ASSERT_EQ(run("batch models -o out --report r.json").status, 0);
  EXPECT_EQ(report("r.json")["models"].size(), 2u);
  EXPECT_TRUE(exists("out/\xff.onnx"));
  EXPECT_THAT(run("batch models -o out").out, HasSubstr("2 finished before"));
}

TEST_F(Batch, MayWriteInPlace) {
  EXPECT_EQ(run("batch models -o models").status, 0);
  EXPECT_THAT(run("batch models -o models").out, HasSubstr("2 finished before and unchanged"));
  EXPECT_EQ(run("batch models --check").status, 0) << "they are optimised";
  EXPECT_EQ(run("batch models -o models --fresh --timeout 0.0001").status, 3);
  EXPECT_TRUE(exists("models/a.onnx"));
}

TEST_F(Batch, WithoutOutputNothingIsWritten) {
  const ToolResult result = run("batch models --check --report md:-");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("### attn-opt\n"), HasSubstr("| `models/a.onnx` | 1 | 1 | 1 | 0 | 0 |")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("models/a.onnx: --check"), HasSubstr("1 of 2 attention sites can be fused")));
  EXPECT_FALSE(exists("models/.attn-opt"));
  EXPECT_EQ(run("batch models -o out --check").status, 1);
  EXPECT_FALSE(exists("out"));
  EXPECT_EQ(run("batch models/deep --check -q").status, 0);
}

TEST_F(Batch, HoldsEachModelAgainstTheBaseline) {
  ASSERT_EQ(run("batch models --baseline attn.json --update-baseline").status, 0);
  EXPECT_EQ(report("attn.json")["models"]["models/a.onnx"]["fused"].size(), 1u);
  ASSERT_EQ(run("batch models -o out --baseline attn.json --update-baseline").status, 0);
  EXPECT_THAT(run("batch models -o out --baseline attn.json --update-baseline").out, HasSubstr("2 finished before"));
  EXPECT_EQ(run("batch models -o out --baseline attn.json").status, 0);
  write_model("models/a.onnx", other_model());
  write_model("models/c.onnx", attention_model());
  const ToolResult lost = run("batch models -o out --baseline attn.json");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.err, AllOf(HasSubstr("attn-opt: models/a.onnx: attention p is no longer fused: "),
                              HasSubstr("attn-opt: models/c.onnx: is not in attn.json")));
  EXPECT_THAT(run("batch models/c.onnx --baseline attn.json --baseline-new warn").err,
              HasSubstr("warning: models/c.onnx is not in attn.json"));
}

TEST_F(Batch, AModelOfTheBaselineThatIsGoneFails) {
  ASSERT_EQ(run("batch models --baseline models/attn.json --update-baseline").status, 0);
  std::filesystem::rename(file("models/deep/b.onnx"), file("models/renamed.onnx"));
  const ToolResult gone = run("batch models --baseline models/attn.json --baseline-new accept --report r.json --report r.md");
  EXPECT_EQ(gone.status, 1);
  EXPECT_THAT(
      gone.err,
      HasSubstr("attn-opt: models/deep/b.onnx: is in models/attn.json and no longer there; --update-baseline drops it"));
  EXPECT_THAT(read_file(file("r.md")), HasSubstr("| `models/deep/b.onnx` | 1 |"));
  EXPECT_EQ(report("r.json")["models"][2]["input"], "models/deep/b.onnx");
  EXPECT_EQ(report("r.json")["summary"]["status"], 1);
  EXPECT_EQ(run("batch models/deep --baseline models/attn.json").status, 2) << "there are no models";
  EXPECT_EQ(run("batch models/a.onnx --baseline models/attn.json").status, 0) << "a part, as hooks give it";
  ASSERT_EQ(run("batch models --baseline models/attn.json --update-baseline").status, 0);
  EXPECT_FALSE(report("models/attn.json")["models"].contains("deep/b.onnx"));
  EXPECT_EQ(run("batch models --baseline models/attn.json").status, 0);
}

TEST_F(Batch, UsageErrorsEndItBeforeAModelIsRun) {
  std::filesystem::create_directory(file("empty"));
  for (const std::string arguments : {"batch -o out", "batch - -o out", "batch empty -o out", "batch models -o out --only none",
                                      "batch models -o out --jobs 0", "batch models --root empty -o out",
                                      "batch models -o out --report r.txt", "batch models -o out --timeout -1"}) {
    const ToolResult result = run(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.err, IsOneErrorLine()) << arguments;
    EXPECT_FALSE(exists("out/a.onnx")) << arguments;
  }
  EXPECT_EQ(run("batch @missing -o out").status, 3);
  EXPECT_EQ(run("batch @models -o out").status, 3);
  EXPECT_EQ(run("batch missing.onnx -o out").status, 3);
}

}  // namespace
}  // namespace attn_opt
