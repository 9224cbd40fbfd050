// Layers include only what is below them. Each public header belongs to one, and counts as a header of it.
#include "tests/structure/source_tree.h"

namespace attn_opt {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Layers, the lowest first, and those that each uses. docs/design.md draws them.
const std::vector<std::pair<std::string, std::vector<std::string>>>& layers() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> kUses = {
      {"io", {}},
      {"graph", {"io"}},
      {"exec", {"graph"}},
      {"match", {"exec"}},
      {"rewrite", {"match"}},
      {"emit", {"rewrite"}},
      {"patterns", {"rewrite"}},
      {"trial", {"rewrite"}},
      {"verify", {"emit", "trial"}},
      {"opset", {"trial"}},
      {"report", {"verify"}},
      {"optimizer", {"report", "opset", "patterns"}},
      {"cli", {"optimizer"}},
      {"python", {"cli"}},
  };
  return kUses;
}

/// The folders that FOLDER may include from, itself among them.
std::set<std::string> below(const std::string& folder) {
  std::set<std::string> all{folder};
  for (auto layer = layers().rbegin(); layer != layers().rend(); ++layer)
    if (all.count(layer->first)) all.insert(layer->second.begin(), layer->second.end());
  return all;
}

/// The layer that each public header belongs to: the lowest whose notions it is made of. What a header declares, that layer
/// defines.
const std::map<std::string, std::set<std::string>>& public_headers() {
  static const std::map<std::string, std::set<std::string>> kOfLayers = {
      {"io", {"model", "model_bytes", "model_io", "model_walk", "name_table", "status"}},
      {"graph", {"graph"}},
      {"exec", {"executor", "tensor"}},
      {"match",
       {"axis_map", "canonical", "causal_mask", "dim", "facts", "grouping", "mask_contents", "matcher", "miss",
        "operator_traits", "precondition", "sdpa", "shape"}},
      {"rewrite", {"attribute", "edit", "emit_options", "graph_builder", "pattern", "rewrite", "target", "verification"}},
      {"emit", {"emit"}},
      {"patterns", {"attention_parts", "rules"}},
      {"verify", {"verifier"}},
      {"opset", {"opset_raise"}},
      {"report", {"report"}},
      {"optimizer", {"attn_opt", "optimizer", "version"}},
  };
  return kOfLayers;
}

/// "" for a header that has no owner.
std::string owner_of(const std::string& header) {
  for (const auto& [layer, headers] : public_headers())
    if (headers.contains(header)) return layer;
  return "";
}

/// "src/<layer>/x" gives the layer; "patterns/x" gives patterns; a public header its owner; anything else "".
std::string layer_of(const std::string& path) {
  const fs::path parts(path);
  auto part = parts.begin();
  if (*part == "patterns" || *part == "python") return *part;
  if (*part == "include" || *part == "attn_opt") return owner_of(parts.stem().string());
  return *part == "src" ? *++part : "";
}

/// Includes of TEXT, which stands in PATH, that point upward.
std::vector<std::string> upward_includes(const std::string& path, const std::string& text) {
  const std::set<std::string> allowed = below(layer_of(path));
  std::vector<std::string> bad;
  for (const std::string& include : groups(text, "#include \"((?:src|patterns|python|attn_opt)/[^\"]*)\""))
    if (!allowed.count(layer_of(include))) bad.push_back(path + " includes " + include);
  return bad;
}

TEST(Structure, LayersIncludeOnlyWhatIsBelow) {
  for (const auto& [path, text] : sources({"src", "patterns", "include", "python"}))
    EXPECT_THAT(upward_includes(path, text), IsEmpty());
}

TEST(Structure, TheRuleOfLayersTellsUpFromDown) {
  EXPECT_THAT(upward_includes("src/graph/a.cpp", "#include \"src/exec/b.h\"\n"), SizeIs(1));
  EXPECT_THAT(upward_includes("src/match/a.cpp", "#include \"patterns/b.h\"\n"), SizeIs(1));
  EXPECT_THAT(upward_includes("src/emit/a.cpp", "#include \"src/trial/b.h\"\n"), SizeIs(1));
  EXPECT_THAT(upward_includes("include/attn_opt/graph.h", "#include \"src/exec/b.h\"\n"), SizeIs(1));
  EXPECT_THAT(upward_includes("include/attn_opt/graph.h", "#include \"attn_opt/facts.h\"\n"), SizeIs(1));
  EXPECT_THAT(upward_includes("src/graph/a.cpp", "#include \"attn_opt/facts.h\"\n"), SizeIs(1));
  EXPECT_THAT(upward_includes("src/emit/a.cpp", "#include \"attn_opt/rules.h\"\n"), SizeIs(1));
  EXPECT_THAT(upward_includes("patterns/a.cpp", "#include \"attn_opt/facts.h\"\n"), IsEmpty());
  EXPECT_THAT(upward_includes("src/cli/a.cpp", "#include \"src/io/b.h\"\n#include \"patterns/c.h\"\n"), IsEmpty());
  EXPECT_THAT(upward_includes("patterns/a.cpp", "#include \"src/match/b.h\"\n#include \"patterns/c.h\"\n"), IsEmpty());
}

TEST(Structure, PublicHeadersHaveAnOwner) {
  std::set<std::string> found;
  for (const auto& [path, text] : sources({"include"})) {
    found.insert(fs::path(path).stem().string());
    EXPECT_NE(layer_of(path), "") << path << " is of no layer: enter it above";
  }
  for (const auto& [layer, headers] : public_headers())
    for (const std::string& header : headers) EXPECT_THAT(found, Contains(header)) << "of " << layer;
}

/// A source of the header's name lies in the owner's folder: nothing is declared below and defined above.
TEST(Structure, PublicHeadersAreImplementedByTheirOwner) {
  for (const auto& [path, text] : sources({"src", "patterns"})) {
    const std::string unit = fs::path(path).stem().string(), owner = owner_of(unit);
    const bool is_unit_of_it = !groups(text, "#include \"attn_opt/(?:internal/)?(" + unit + ")\\.h\"").empty();
    if (!path.ends_with(".cpp") || owner.empty() || !is_unit_of_it) continue;
    EXPECT_EQ(layer_of(path), owner) << path;
  }
}

/// The headers of include/attn_opt are stable: docs/cpp.md names each, and they include none of internal/, but for what a
/// pattern returns.
TEST(Structure, StableHeadersIncludeNoOthers) {
  const std::string manual = text_of(fs::path(ATTN_OPT_SOURCE_DIR) / "docs/cpp.md");
  const size_t begin = manual.find("## What there is"), end = manual.find("These include none of", begin);
  ASSERT_NE(end, std::string::npos);
  const std::vector<std::string> named = groups(manual.substr(begin, end - begin), "`([a-z_]+)\\.h`");
  std::set<std::string> stable;
  for (const auto& [path, text] : sources({"include"})) {
    const fs::path header(path);
    if (header.parent_path().filename() == "internal") continue;
    stable.insert(header.stem().string());
    for (const std::string& included : groups(text, "#include \"attn_opt/internal/([a-z_]+)\\.h\""))
      EXPECT_TRUE(header.stem() == "pattern" && included == "sdpa") << path << " includes " << included;
  }
  EXPECT_EQ(std::set<std::string>(named.begin(), named.end()), stable);
}

TEST(Structure, TheDesignDrawsTheseLayers) {
  const std::string design = text_of(fs::path(ATTN_OPT_SOURCE_DIR) / "docs/design.md");
  std::set<std::string> wanted;
  for (const auto& [layer, uses] : layers())
    for (const std::string& used : uses) wanted.insert(layer + " --> " + used);
  const std::vector<std::string> drawn = groups(design, "  ([a-z]+ --> [a-z]+)");
  EXPECT_EQ(std::set<std::string>(drawn.begin(), drawn.end()), wanted);
  for (const auto& [layer, uses] : layers()) EXPECT_THAT(design, ::testing::HasSubstr("\n| " + layer + " | "));
}

TEST(Structure, TheDesignNamesWhatThereIs) {
  const fs::path root = ATTN_OPT_SOURCE_DIR;
  const std::string design = text_of(root / "docs/design.md");
  const auto named = groups(design, "`((?:src|patterns|python|tests|testdata|include|docs)/[a-z_/]+(?:\\.[a-z]+)?)`");
  EXPECT_GE(named.size(), 15u);
  for (const std::string& path : named) EXPECT_TRUE(fs::exists(root / path)) << path;
}

}  // namespace
}  // namespace attn_opt
