// Names found by hash.
#include "attn_opt/name_table.h"

#include <gtest/gtest.h>

#include <string>

namespace attn_opt {
namespace {

auto called(const std::string& name) {
  return [&name](const std::string& known) { return known == name; };
}

TEST(NameTable, FindsEachOfMany) {
  NameTable<std::string> table;
  EXPECT_EQ(table.find(name_hash("0"), called("0")), nullptr);
  for (int i = 0; i < 1000; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(table.insert(name_hash(name), name, called(name)));
    ASSERT_FALSE(table.insert(name_hash(name), name, called(name)));
  }
  for (int i = 0; i < 2000; ++i) {
    const std::string name = std::to_string(i);
    const std::string* found = table.find(name_hash(name), called(name));
    ASSERT_EQ(found != nullptr, i < 1000);
    if (found) {
      ASSERT_EQ(*found, name);
    }
  }
}

TEST(NameTable, HoldsWhatThereIsRoomFor) {
  NameTable<std::string> table;
  EXPECT_TRUE(table.insert(name_hash("first"), "first", called("first")));
  table.reserve(100);
  const std::string* first = table.find(name_hash("first"), called("first"));
  for (int i = 1; i < 100; ++i) {
    const std::string name = std::to_string(i);
    EXPECT_TRUE(table.insert(name_hash(name), name, called(name)));
  }
  EXPECT_EQ(table.find(name_hash("first"), called("first")), first);
  EXPECT_EQ(*first, "first");
}

TEST(NameTable, GivesTheEntryThatIsThere) {
  NameTable<std::string> table;
  EXPECT_EQ(table.find_or_insert(1, "a", called("a")), "a");
  table.find_or_insert(1, "b", called("b")) = "c";
  EXPECT_EQ(table.find_or_insert(1, "d", called("c")), "c");
  EXPECT_EQ(table.find(1, called("b")), nullptr);
}

TEST(NameTable, NamesOfOneHashStayApart) {
  NameTable<std::string> table;
  for (const std::string name : {"a", "b", "c"}) EXPECT_TRUE(table.insert(1, name, called(name)));
  EXPECT_EQ(*table.find(1, called("b")), "b");
  EXPECT_EQ(table.find(1, called("d")), nullptr);
  EXPECT_EQ(table.find(2, called("b")), nullptr);
}

}  // namespace
}  // namespace attn_opt
