#include <nlohmann/json.hpp>

#include "src/cli/commands/commands.h"
#include "src/cli/options/option_table.h"
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ConfigFile : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write_file(file("in.onnxtxt"), attention_model());
  }
  void config(const std::string& text) { write_file(file("attn-opt.toml"), text); }
};

TEST_F(ConfigFile, GivesOptionsThatTheCommandLineOverrules) {
  config("# ours\nstop-after = 0\nrequire-fused = \"1\"  # of one\n");
  EXPECT_EQ(run("in.onnxtxt").status, 1);
  EXPECT_EQ(run("in.onnxtxt --stop-after 1").status, 0);
  EXPECT_EQ(run("in.onnxtxt --no-config").status, 0);
  EXPECT_EQ(run("in.onnxtxt --require-fused=0").status, 0);
}

TEST_F(ConfigFile, TakesFlagsAndLists) {
  config("check = true\nstrict = false\nonly = [\"softmax_attention\", \"attention_node\"]\n");
  EXPECT_EQ(run("in.onnxtxt").status, 1) << "--check";
  config(
      "\"check\" = true # yes\r\nonly = [ # these\n  \"softmax_attention\",\n  'attention_node', # both\n]\nreport = "
      "\"a#b.json\"");
  EXPECT_EQ(run("in.onnxtxt").status, 1) << "--check";
  EXPECT_TRUE(exists("a#b.json"));
  config("only = []\n");
  EXPECT_EQ(run("in.onnxtxt --require-fused 1").status, 0);
  config("quiet = true\ndisable = [\"softmax_attention\"]\n");
  EXPECT_THAT(run("in.onnxtxt").out, IsEmpty());
  EXPECT_EQ(run("in.onnxtxt -v").status, 0) << "-v leaves no place for quiet = true";
  config("strict = 3\n");
  EXPECT_THAT(run("in.onnxtxt").err, HasSubstr("strict is true or false"));
}

TEST_F(ConfigFile, IsFoundAboveAndMeansPathsFromItsFolder) {
  config("report = \"made.json\"\n");
  std::filesystem::create_directories(file("deep/er"));
  write_file(file("deep/er/in.onnxtxt"), attention_model());
  EXPECT_EQ(run("in.onnxtxt -q; cd deep/er && '" ATTN_OPT_BINARY "' in.onnxtxt --report own.json; exit $?").status, 0);
  EXPECT_TRUE(exists("made.json")) << "of the first run";
  EXPECT_TRUE(exists("deep/er/own.json")) << "the command line's word counts, in its folder";
  std::filesystem::remove(file("made.json"));
  EXPECT_EQ(run("--version >/dev/null; cd deep/er && '" ATTN_OPT_BINARY "' in.onnxtxt").status, 0);
  EXPECT_TRUE(exists("made.json")) << "from the folder of attn-opt.toml";
}

TEST_F(ConfigFile, TablesAreForTheirCommands) {
  config(
      "verify = \"off\"\n[explain]\nverify = \"sites\"\n[batch]\njobs = 1\ncheck = true\n[optimize]\nrequire-fused = \"2\"\n");
  EXPECT_THAT(run("explain in.onnxtxt").out, HasSubstr("verdict   verified"));
  EXPECT_THAT(run("explain in.onnxtxt --verify off").out, Not(HasSubstr("verdict")));
  EXPECT_EQ(run("in.onnxtxt").status, 1);
  const ToolResult batch = run("batch in.onnxtxt --report json:-");
  EXPECT_EQ(batch.status, 1) << "check";
  EXPECT_EQ(nlohmann::json::parse(batch.out)["models"][0]["report"]["sites"][0]["verification"], nullptr) << "verify = off";
  EXPECT_EQ(run("test missing").status, 3) << "nothing of this is for test";
}

TEST_F(ConfigFile, UnknownKeysAndTablesAreErrorsThatNameTheNearest) {
  for (const auto& [text, nearest] :
       std::map<std::string, std::string>{{"require-fuse = 1\n", "did you mean 'require-fused'?"},
                                          {"[explian]\nverify = \"off\"\n", "did you mean 'explain'?"},
                                          {"[run]\ncompute-f64 = true\n", "there is no option 'compute-f64'"},
                                          {"[batch]\njob = 1\n", "did you mean 'jobs'?"},
                                          {"seeds = 1\n", "there is no option 'seeds'"},
                                          {"config = \"x\"\n", "there is no option 'config'"},
                                          {"what is this\n", "attn-opt.toml:1: '=' is wanted behind a key"},
                                          {"\n\nverify = off\n", "attn-opt.toml:3: 'off' is no value: texts stand in quotes"},
                                          {"verify = \"off\n", "is wanted at the end of a text"},
                                          {"only = [\"a\" \"b\"]\n", "',' is wanted between"},
                                          {"only = [\"a\"\n", "',' is wanted between"},
                                          {"verify = \"off\" strict = true\n", "a line ends here"},
                                          {"verify = \"off\"\nverify = \"off\"\n", "there is a second 'verify'"},
                                          {"[batch]\n[batch]\n", "there is a second table 'batch'"},
                                          {"[[batch]]\n", "a name is wanted"},
                                          {"batch.jobs = 3\n", "'=' is wanted behind a key"},
                                          {"only = \"\\x\"\n", "of escapes"}}) {
    config(text);
    const ToolResult result = run("in.onnxtxt");
    EXPECT_EQ(result.status, 2) << text;
    EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("attn-opt.toml"), HasSubstr(nearest))) << text;
  }
  config("form = \"5d\"\n");
  EXPECT_EQ(run("in.onnxtxt").status, 2);
}

TEST_F(ConfigFile, CanBeNamed) {
  write_file(file("other.toml"), "check = true\n");
  config("require-fused = \"9\"\n");
  EXPECT_THAT(run("in.onnxtxt --config other.toml").err, HasSubstr("--check"));
  EXPECT_EQ(run("in.onnxtxt --config missing.toml").status, 3);
  EXPECT_EQ(run("in.onnxtxt --config other.toml --no-config").status, 2);
}

/// A rule called NAME that no attention_model() has.
std::string rule_text(const std::string& name) {
  return "# RULE " + name +
         "\n<domain: \"rule\", opset_import: [\"\" : 18]>\n"
         "pattern (q, k, v) => (y) { s = Sub (q, k) p = Softmax (s) y = MatMul (p, v) }\n"
         "<domain: \"rule\", opset_import: [\"\" : 24]>\nreplacement (q, k, v) => (y) { y = Attention (q, k, v) }\n";
}

class RuleFolders : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write_file(file("in.onnxtxt"), attention_model());
    for (const std::string name : {"one", "two"}) {
      std::filesystem::create_directories(file(name));
      write_file(file(name) / "it.rule", rule_text(name));
    }
  }
};

TEST_F(RuleFolders, AreTakenSeveralTimesByAllCommands) {
  const std::string both = " --patterns two --patterns one";
  const std::string listed = run("patterns" + both).out;
  EXPECT_LT(listed.find("\ntwo "), listed.find("\none "));
  EXPECT_NE(listed.find("\none "), std::string::npos);
  write_file(file("case.onnxtxt"), "# CASE it\n# RUN --disable one --disable two\n# EXPECT fused=1\n" + attention_model());
  write_file(file("own.onnxtxt"),
             "# CASE it\n# RUN --patterns one --patterns two --disable one,two\n# EXPECT fused=1\n" + attention_model());
  for (const std::string command : {"in.onnxtxt --disable one,two", "explain in.onnxtxt --disable one,two",
                                    "test case.onnxtxt own.onnxtxt", "batch in.onnxtxt -o out --disable one,two"}) {
    const ToolResult result = run(command + both);
    EXPECT_EQ(result.status, 0) << command << result.out << result.err;
  }
  EXPECT_THAT(run("in.onnxtxt --patterns one --disable one,two").err, HasSubstr("no pattern 'two'"));
  EXPECT_THAT(run("test case.onnxtxt --patterns one").out, HasSubstr("no pattern 'two'"));
  EXPECT_EQ(run("test case.onnxtxt --patterns three").status, 3);
}

TEST_F(RuleFolders, OfTheFileOfOptions) {
  write_file(file("attn-opt.toml"), "patterns = [\"one\", \"two\"]\ndisable = [\"one\", \"two\"]\n");
  EXPECT_EQ(run("in.onnxtxt").status, 0);
  write_file(file("attn-opt.toml"), "patterns = \"one\"\ndisable = [\"one\", \"two\"]\n");
  EXPECT_THAT(run("in.onnxtxt").err, HasSubstr("no pattern 'two'"));
}

class CommandLineHelp : public ToolTest {};

TEST_F(CommandLineHelp, IsGroupedWithExamples) {
  const std::string help = run("--help").out;
  for (const std::string text : {"\nMatching:\n", "\nVerification:\n", "\nGates:\n", "\nOutput:\n", "\nGeneral:\n",
                                 "\nCommands (", "\nExamples:\n", "--form auto|3d|4d (auto)", "--baseline FILE"})
    EXPECT_THAT(help, HasSubstr(text));
  EXPECT_EQ(run("help").out, help);
  EXPECT_EQ(run("help batch").out, run("batch --help").out);
  EXPECT_THAT(run("batch --help").out, AllOf(HasSubstr("\nBatch:\n"), HasSubstr("attn-opt batch models -o fused")));
}

TEST_F(CommandLineHelp, EveryOptionHasItsGroup) {
  std::vector<std::string> names = {""};
  for (const Command& command : commands()) names.emplace_back(command.name);
  for (const std::string& name : names) {
    const DeclaredCommand command = declare_command(name);
    for (const CLI::Option* option : command.app->get_options()) {
      if (option->get_lnames().empty()) continue;
      EXPECT_THAT(option->get_group(), Not(testing::AnyOf("Options", "")))
          << name << " " << name_of(*option) << ": src/cli/options/option_table.cpp";
    }
  }
}

TEST_F(CommandLineHelp, MisspeltWordsAreAnsweredWithTheNearest) {
  write_file(file("in.onnxtxt"), attention_model());
  EXPECT_THAT(run("in.onnxtxt --requirefused all").err, HasSubstr("did you mean '--require-fused'?"));
  EXPECT_THAT(run("in.onnxtxt --repport=x.json").err, HasSubstr("did you mean '--report'?"));
  EXPECT_THAT(run("in.onnxtxt --entirely-other").err, HasSubstr("attn-opt --help lists the options"));
  EXPECT_THAT(run("batch in.onnxtxt --job 3").err, HasSubstr("did you mean '--jobs'?"));
  const ToolResult command = run("explian in.onnxtxt");
  EXPECT_EQ(command.status, 2);
  EXPECT_THAT(command.err, AllOf(IsOneErrorLine(), HasSubstr("did you mean 'explain'?")));
  EXPECT_EQ(run("patern").status, 2);
  EXPECT_EQ(run("model").status, 3) << "near to nothing: a file that is not there";
}

}  // namespace
}  // namespace attn_opt
