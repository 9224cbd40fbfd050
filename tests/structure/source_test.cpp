// What holds for the whole source tree: files stay small, a match that fails says why, and every reason is documented.
#include <algorithm>
#include <sstream>

#include "tests/structure/source_tree.h"

namespace attn_opt {
namespace {

using ::testing::IsEmpty;

constexpr int kMostLines = 400;
constexpr int kMedianLines = 150;
constexpr int kMostUnits = 25;

/// Folders of PATHS, and how many units (a source and its header) lie in each.
std::map<std::string, int> units_of_folders(const std::vector<std::string>& paths) {
  std::set<fs::path> units;
  for (const std::string& path : paths) units.insert(fs::path(path).replace_extension());
  std::map<std::string, int> folders;
  for (const fs::path& unit : units) ++folders[unit.parent_path().string()];
  return folders;
}

TEST(Structure, FoldersAreSmall) {
  std::vector<std::string> paths;
  for (const auto& [path, text] : sources({"src", "patterns", "tests", "examples", "python"})) paths.push_back(path);
  for (const auto& [folder, units] : units_of_folders(paths)) EXPECT_LE(units, kMostUnits) << folder;
  EXPECT_EQ(units_of_folders({"a/b.cpp", "a/b.h", "a/c.h", "a/d/e.cpp"}), (std::map<std::string, int>{{"a", 2}, {"a/d", 1}}));
}

TEST(Structure, FilesAreSmall) {
  std::vector<std::ptrdiff_t> sizes;
  for (const auto& [path, text] : sources({"src", "patterns", "include", "tests", "examples", "python"})) {
    sizes.push_back(std::count(text.begin(), text.end(), '\n'));
    EXPECT_LE(sizes.back(), kMostLines) << path;
  }
  ASSERT_FALSE(sizes.empty());
  std::nth_element(sizes.begin(), sizes.begin() + sizes.size() / 2, sizes.end());
  EXPECT_LE(sizes[sizes.size() / 2], kMedianLines);
}

/// First lines of the functions of TEXT that return Matched<...> and have a `return false`. A function begins with a
/// line that is not indented further than a member's and ends with the brace of the same indentation.
std::vector<std::string> silent_misses(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> bad;
  std::string line, function;
  size_t indent = 0;
  while (std::getline(lines, line)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    if (function.empty() && begin <= 2 && line.find("Matched<") < line.find('(') && line.find(';') == std::string::npos) {
      function = line;
      indent = begin;
    }
    if (function.empty()) continue;
    if (line.find("return false;") != std::string::npos) bad.push_back(function);
    if (begin == indent && line[begin] == '}') function.clear();
  }
  return bad;
}

TEST(Structure, PatternsSayWhyTheyDoNotMatch) {
  for (const auto& [path, text] : sources({"patterns"})) EXPECT_THAT(silent_misses(text), IsEmpty()) << path;
}

TEST(Structure, TheRuleOfMissesFindsSilentOnes) {
  EXPECT_THAT(silent_misses("Matched<int> f() {\n  if (x) return false;\n}\n"), ::testing::SizeIs(1));
  EXPECT_THAT(silent_misses("class C {\n  Matched<int> f(int a,\n               int b) {\n    return false;\n  }\n};\n"),
              ::testing::SizeIs(1));
  EXPECT_THAT(silent_misses("Matched<int> f() {\n  return 1;\n}\nbool g() {\n  return false;\n}\n"), IsEmpty());
  EXPECT_THAT(silent_misses("Matched<int> f(int);\nbool g() {\n  return false;\n}\n"), IsEmpty());
}

/// Ids of misses in TEXT: the first argument of missed(), and the first member of a Miss{...}, a {...} in its place or
/// a named constant. An id is "word.word"; whatever else has a dot (a domain, a file) is told by its first word.
std::set<std::string> miss_ids(const std::string& text) {
  static const std::set<std::string> kNoIds = {"ai", "attn-opt", "com", "in", "out"};
  std::set<std::string> ids;
  for (const std::string& id : groups(text, "\"([a-z][a-z-]*\\.[a-z][a-z0-9-]*)\""))
    if (!kNoIds.count(id.substr(0, id.find('.')))) ids.insert(id);
  for (const std::string& id : groups(text, "missed\\(\"([^\"]*)\"")) ids.insert(id);
  return ids;
}

TEST(Structure, EveryMissIsDocumented) {
  const std::string manual = text_of(fs::path(ATTN_OPT_SOURCE_DIR) / "docs/misses.md");
  ASSERT_FALSE(manual.empty()) << "docs/misses.md";
  const std::vector<std::string> headings = groups("\n" + manual, "\n#+ +`?([a-z0-9.-]+)`?");
  const std::set<std::string> documented(headings.begin(), headings.end());
  std::set<std::string> used;
  for (const auto& [path, text] : sources({"src", "patterns"}))
    for (const std::string& id : miss_ids(text)) {
      used.insert(id);
      EXPECT_TRUE(documented.count(id)) << "docs/misses.md has no heading for '" << id << "' of " << path;
    }
  EXPECT_GE(used.size(), 40u) << "the rule finds too few";
  for (const std::string& id : documented)
    EXPECT_TRUE(id.find('.') == std::string::npos || used.count(id)) << "no code gives '" << id << "'";
}

/// What a paragraph of docs/misses.md lacks: its meaning, an example, what to change.
std::string missing_part(const std::string& paragraph) {
  const size_t heading_end = paragraph.find('\n');
  const size_t example = paragraph.find("\n- Example: "), remedy = paragraph.find("\n- Remedy: ");
  if (example == std::string::npos) return "an example";
  if (remedy == std::string::npos || remedy < example) return "a remedy";
  constexpr size_t kShortestMeaning = 30;
  return example - heading_end < kShortestMeaning ? "what it means" : "";
}

TEST(Structure, EveryMissHasMeaningExampleAndRemedy) {
  const std::string manual = text_of(fs::path(ATTN_OPT_SOURCE_DIR) / "docs/misses.md");
  int paragraphs = 0;
  for (size_t at = manual.find("\n## "); at != std::string::npos; at = manual.find("\n## ", at + 1), ++paragraphs) {
    const std::string paragraph = manual.substr(at + 1, manual.find("\n## ", at + 1) - at - 1);
    EXPECT_EQ(missing_part(paragraph), "") << paragraph.substr(0, paragraph.find('\n'));
  }
  EXPECT_GE(paragraphs, 40);
  EXPECT_EQ(missing_part("## a.b\n\nThe rank of a mask is not known at all.\n\n- Example: `x`."), "a remedy");
}

/// True if REST, what follows the declaration of the MaybeShape NAME, reads the shape before it asks whether there is one.
bool reads_untested(const std::string& rest, const std::string& name) {
  std::smatch read, test;
  if (!std::regex_search(rest, read, std::regex("\\*" + name + "\\b|\\b" + name + "->"))) return false;
  const std::string before = rest.substr(0, static_cast<size_t>(read.position()));
  return !std::regex_search(before, test,
                            std::regex("!" + name + "\\b|\\b" + name + "( &&| \\?| \\|\\||\\)|\\.has_rank|\\.rank)"));
}

/// Declarations of MaybeShape in TEXT that are read and not tested.
std::vector<std::string> untested_shapes(const std::string& text) {
  static const std::regex kDeclaration("(if \\()?(?:const )?MaybeShape ([^;{}]*);");
  std::vector<std::string> bad;
  for (std::sregex_iterator found(text.begin(), text.end(), kDeclaration), end; found != end; ++found) {
    if ((*found)[1].matched) continue;
    const std::string rest = text.substr(static_cast<size_t>(found->position() + found->length()), 4000);
    for (const std::string& name : groups((*found)[2].str(), "(\\w+) = "))
      if (reads_untested(rest, name)) bad.push_back((*found)[0].str());
  }
  return bad;
}

TEST(Structure, ShapesAreTestedBeforeTheyAreRead) {
  for (const auto& [path, text] : sources({"src", "patterns", "python"})) EXPECT_THAT(untested_shapes(text), IsEmpty()) << path;
}

TEST(Structure, TheRuleOfShapesFindsUntestedOnes) {
  EXPECT_THAT(untested_shapes("const MaybeShape a = f(x);\nreturn a->size();"), ::testing::SizeIs(1));
  EXPECT_THAT(untested_shapes("const MaybeShape a = f(x), b = f(y);\nif (!a) return;\nuse(*a, *b);"), ::testing::SizeIs(1));
  EXPECT_THAT(untested_shapes("const MaybeShape a = f(x);\nif (!a || a->size() != 3) return;"), IsEmpty());
  EXPECT_THAT(untested_shapes("if (const MaybeShape a = f(x)) use(*a);"), IsEmpty());
}

TEST(Structure, NothingReturnsASubrange) {
  const std::string subranges = "(std::ranges::(?:subrange|unique|remove|remove_if|rotate|partition)\\()";
  for (const auto& [path, text] : sources({"src", "patterns", "include", "python", "fuzz"}))
    EXPECT_THAT(groups(text, subranges), IsEmpty()) << path << ": Clang below 16 does not compile it; std:: has it as well";
}

}  // namespace
}  // namespace attn_opt
