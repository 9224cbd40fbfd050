#include <random>

#include "src/io/wire/wire_rewrite.h"
#include "tests/io/stripped_case.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

/// Every model must be taken or refused as protobuf does, and mean the same if it is taken.
class MalformedTest : public StrippedTest {
 protected:
  void expect_as_protobuf(const std::string& bytes, const std::string& what) {
    const auto expected = parse_whole(bytes);
    const auto actual = parse_and_fill(bytes);
    ASSERT_EQ(actual.has_value(), expected.has_value()) << what << ": " << (actual ? "taken" : actual.error().message());
    accepted_ += expected.has_value();
    if (!expected) return;
    EXPECT_TRUE(bytes_of(*actual) == bytes_of(*expected)) << what;
  }
  int accepted_ = 0;
};

TEST_F(MalformedTest, TruncatedAtEveryByte) {
  const std::string whole = bytes_of(tensors_everywhere());
  for (size_t size = 1; size < whole.size(); ++size) expect_as_protobuf(whole.substr(0, size), std::to_string(size));
  EXPECT_LT(accepted_, 20);
}

TEST_F(MalformedTest, TenThousandMutations) {
  const std::string whole = bytes_of(tensors_everywhere());
  std::mt19937 random(20240607);
  for (int i = 0; i < 10000 && !HasFailure(); ++i) {
    std::string bytes = whole;
    for (int change = random() % 3; change >= 0; --change) {
      const size_t at = random() % bytes.size();
      const auto byte = static_cast<char>(random());
      switch (random() % 4) {
        case 0: bytes[at] = byte; break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
        case 2: bytes.insert(at, 1, byte); break;
        default: bytes.erase(at, 1); break;
      }
    }
    expect_as_protobuf(bytes, "mutation " + std::to_string(i));
  }
  EXPECT_GT(accepted_, 1000);
  EXPECT_LT(accepted_, 9000);
}

/// A graph (field 7 of the model) with CONTENT.
std::string graph(const std::string& content) { return short_field(7, content); }
/// An initializer (field 5 of the graph) with CONTENT.
std::string initializer(const std::string& content) { return short_field(5, content); }

TEST_F(MalformedTest, LengthsAndWireTypes) {
  using namespace std::string_literals;
  const std::string raw = short_field(9, "01234567");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"empty tensor", graph(initializer(""))},
      {"raw data", graph(initializer(raw))},
      {"raw data twice", graph(initializer(raw + short_field(9, "abcdefgh")))},
      {"graph twice", graph(initializer(raw)) + graph(initializer(raw))},
      {"attribute's tensor twice", graph(short_field(1, short_field(5, short_field(5, raw) + short_field(5, raw))))},
      {"raw data as varint", graph(initializer("\x48\x05"))},
      {"raw data as fixed32", graph(initializer("\x4d"
                                                "0123"))},
      {"raw data as fixed64", graph(initializer("\x49"
                                                "01234567"))},
      {"graph as varint", "\x38\x05"},
      {"raw data as group", graph(initializer("\x4b" + short_field(1, "x") + "\x4c"))},
      {"group in a group", graph("\x4b\x53\x54\x4c")},
      {"group without an end", graph("\x4b" + short_field(1, "x"))},
      {"group with another end", graph("\x4b\x54")},
      {"end without a group", graph("\x4c")},
      {"wire type 6", graph("\x4e")},
      {"wire type 7", graph("\x4f")},
      {"field 0", graph("\x02\x01x")},
      {"field 0 above 32 bits", graph("\x82\x80\x80\x80\x70\x01x")},
      {"field 9 above 32 bits", graph(initializer("\xca\x80\x80\x80\x70\x08"
                                                  "01234567"))},
      {"tag of 5 bytes", graph(initializer("\xca\x80\x80\x80\x00\x08"
                                           "01234567"s))},
      {"tag of 6 bytes", graph(initializer("\xca\x80\x80\x80\x80\x00\x08"
                                           "01234567"s))},
      {"tag without an end", graph("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
      {"length of 5 bytes", graph(initializer("\x4a\x88\x80\x80\x80\x00"
                                              "01234567"s))},
      {"length of 6 bytes", graph(initializer("\x4a\x88\x80\x80\x80\x80\x00"
                                              "01234567"s))},
      {"length of 10 bytes", graph(initializer("\x4a\x88\x80\x80\x80\x80\x80\x80\x80\x80\x00"
                                               "01234567"s))},
      {"length without an end", graph(initializer("\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))},
      {"length of 2^31", graph(initializer("\x4a\x80\x80\x80\x80\x08"
                                           "01234567"))},
      {"length of 2^63", graph(initializer("\x4a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
                                           "01234567"))},
      {"length of 2^64 - 1", graph(initializer("\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                               "01234567"))},
      {"raw data beyond its tensor", graph(initializer("\x4a\x0a"
                                                       "01234567") +
                                           short_field(2, "name"))},
      {"tensor beyond its graph", graph("\x2a\x20" + raw) + std::string(64, 'x')},
      {"graph with a long length", "\x3a\x8c\x80\x00"s + initializer(raw)},
      {"varint of 10 bytes", graph(initializer("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + raw))},
      {"varint of 11 bytes", graph(initializer("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + raw))},
      {"varint beyond its tensor", graph(initializer("\x10\xff"))},
      {"fixed beyond its tensor", graph(initializer("\x11"
                                                    "0123"))},
  };
  for (const auto& [what, bytes] : cases) expect_as_protobuf(bytes, what);
  EXPECT_GT(accepted_, 10);
  EXPECT_LT(accepted_, static_cast<int>(cases.size()) - 10);
}

TEST_F(MalformedTest, NestingEndsWhereProtobufsDoes) {
  // Attribute, graph, node: three messages a level, the tensor at the bottom one more.
  for (const int levels : {31, 32, 33, 34}) {
    for (const int groups : {0, 1, 2, 3, 4}) {
      onnx::ModelProto model;
      onnx::GraphProto* inner = model.mutable_graph();
      for (int i = 0; i < levels; ++i) inner = inner->add_node()->add_attribute()->mutable_g();
      auto* unknown = inner->add_initializer()->GetReflection()->MutableUnknownFields(inner->mutable_initializer(0));
      for (int i = 0; i < groups; ++i) unknown = unknown->AddGroup(1000);
      inner->mutable_initializer(0)->set_raw_data("01234567");
      expect_as_protobuf(bytes_of(model), std::to_string(levels) + " levels, " + std::to_string(groups) + " groups");
    }
  }
  EXPECT_GT(accepted_, 5);
  EXPECT_LT(accepted_, 15);
}

TEST_F(MalformedTest, PartsAreCounted) {
  // Two bytes a node in the file, hundreds in memory.
  std::string nodes(2 * (kMaxParts + 1), '\0');
  for (size_t i = 0; i < nodes.size(); i += 2) nodes[i] = '\x0a';
  write_file(folder_ / "m.onnx", "\x3a" + varint(nodes.size()) + nodes);
  const std::string error = error_of(load_model(folder_ / "m.onnx"), ErrorCode::kLimit);
  EXPECT_THAT(error, HasSubstr("more than 20000000 messages and names"));
}

}  // namespace
}  // namespace attn_opt
