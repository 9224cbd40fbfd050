// Masks read as rules on positions.
#include "attn_opt/internal/causal_mask.h"

#include <gmock/gmock.h>

#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;
using P = onnx::TensorProto;

/// "LEAST + i <= j <= i + OFFSET, else NUMBER", and what lengths have to do with it; "all"; or what is in the way. QUERIES and
/// KEYS are sizes as dim_params spell them.
std::string reading(FactsCase& c, double wanted, const std::string& queries = "L", const std::string& keys = "S") {
  if (!c.view) return "no model";
  const auto mask = causal_mask(*c.view->main().find("m"), wanted, Dim::parse(queries), Dim::parse(keys), *c.facts);
  if (!mask) return mask.error();
  if (mask->keeps_all()) return "all";
  const bool is_lowest = mask->otherwise == std::numeric_limits<float>::lowest();
  std::ostringstream number;
  number << mask->otherwise;
  const std::string from = mask->counts_from_lengths ? mask->lengths->name + " + " : "";
  std::string rule = mask->least ? from + mask->least->str() + " + i <= j" : "";
  if (mask->offset) rule += (rule.empty() ? "j" : "") + (" <= i + " + from + mask->offset->str());
  if (mask->end) rule += (rule.empty() ? "" : ", ") + ("j < " + mask->lengths->name + " + " + mask->end->str());
  return rule + ", else " + (is_lowest ? "lowest" : number.str());
}

/// What NODES compute as m from q (L rows), k (S rows), new (N rows) and past (P rows), all of (b, 2, rows, 4).
std::string of_nodes(const std::string& nodes, double wanted, const std::string& queries = "L", const std::string& keys = "S",
                     const std::string& type = "bool", const std::string& more = "") {
  FactsCase c(
      "(float[b,2,L,4] q, float[b,2,S,4] k, float[b,2,N,4] new, float[b,2,P,4] past, bool[b,1,1,S] padding, "
      "int64 number) => (" +
      type +
      "[L,S] m) "
      "<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] first = {0}, int64[1] second = {1}, "
      "int64[1] third = {2}, int64[1] fourth = {3}, float none = {0}, float inf = {-inf}, float f1 = {1}, "
      "float low = {-3.4028234663852886e38}, bool yes = {1}, float tenth = {0.1} " +
      more +
      "> {"
      "qs = Shape <start = 2, end = 3> (q) ks = Shape <start = 2, end = 3> (k) "
      "ns = Shape <start = 2, end = 3> (new) ps = Shape <start = 2, end = 3> (past) "
      "qn = Squeeze (qs, first) kn = Squeeze (ks, first) nn = Squeeze (ns, first) pn = Squeeze (ps, first) "
      "square = Concat <axis = 0> (qs, ks) rows = Range (zero, qn, one) columns = Range (zero, kn, one) "
      "column_of_rows = Unsqueeze (rows, second) " +
      nodes + "}");
  return reading(c, wanted, queries, keys);
}

constexpr double kKept = 1, kAdds = 0;
constexpr char kCausal[] = "j <= i + 0, else 0", kCausalInf[] = "j <= i + 0, else -inf";

TEST(CausalMask, ComparedRanges) {
  EXPECT_EQ(of_nodes("m = LessOrEqual (columns, column_of_rows)", kKept), kCausal);
  EXPECT_EQ(of_nodes("m = GreaterOrEqual (column_of_rows, columns)", kKept), kCausal);
  EXPECT_EQ(of_nodes("n = Add (column_of_rows, one) m = Less (columns, n)", kKept), kCausal);
  EXPECT_EQ(of_nodes("n = Sub (columns, one) m = Less (n, column_of_rows)", kKept), kCausal);
  EXPECT_EQ(of_nodes("n = Greater (columns, column_of_rows) m = Not (n)", kKept), kCausal);
  EXPECT_EQ(of_nodes("m = Greater (columns, column_of_rows)", kAdds), "j <= i + 0, else 1") << "true where it drops";
  EXPECT_EQ(of_nodes("d = Sub (columns, column_of_rows) m = LessOrEqual (d, zero)", kKept), kCausal);
  EXPECT_EQ(of_nodes("d = Sub (column_of_rows, columns) n = Neg (d) m = LessOrEqual (n, zero)", kKept), kCausal);
  EXPECT_EQ(of_nodes("a = Mul (columns, two) b = Mul (two, column_of_rows) m = LessOrEqual (a, b)", kKept),
            "is no causal triangle")
      << "so is 2 j <= 2 i, but it is not looked for";
}

TEST(CausalMask, LayoutOfTheRanges) {
  EXPECT_EQ(of_nodes("s = Constant <value_ints = [-1, 1]> () r = Reshape (rows, s) m = LessOrEqual (columns, r)", kKept),
            kCausal);
  EXPECT_EQ(of_nodes("c = LessOrEqual (columns, column_of_rows) s = Constant <value_ints = [1, 1]> () d = Expand (c, s) "
                     "a = Constant <value_ints = [0, 1]> () e = Unsqueeze (d, a) f = Squeeze (e, a) m = And (f, yes)",
                     kKept),
            kCausal);
  EXPECT_EQ(of_nodes("r = Unsqueeze (columns, second) c = Unsqueeze (rows, first) t = LessOrEqual (r, c) "
                     "m = Transpose <perm = [1, 0]> (t)",
                     kKept),
            kCausal);
  EXPECT_EQ(of_nodes("f = Cast <to = 1> (columns) g = Cast <to = 1> (column_of_rows) m = LessOrEqual (f, g)", kKept), kCausal);
}

TEST(CausalMask, SeveralConditions) {
  EXPECT_EQ(of_nodes("c = LessOrEqual (columns, column_of_rows) d = Less (columns, kn) e = And (c, d) "
                     "f = GreaterOrEqual (columns, zero) m = And (f, e)",
                     kKept),
            kCausal);
  EXPECT_EQ(of_nodes("c = LessOrEqual (columns, column_of_rows) n = Add (column_of_rows, two) d = LessOrEqual (columns, n) "
                     "m = And (c, d)",
                     kKept),
            kCausal)
      << "the weaker condition follows";
  EXPECT_EQ(of_nodes("c = LessOrEqual (columns, column_of_rows) n = Sub (column_of_rows, two) d = Greater (columns, n) "
                     "m = And (c, d)",
                     kKept),
            "-1 + i <= j <= i + 0, else 0")
      << "a window";
  EXPECT_EQ(of_nodes("d = Less (columns, kn) m = Expand (d, square)", kKept), "all");
  EXPECT_EQ(of_nodes("c = Equal (columns, column_of_rows) d = Less (columns, column_of_rows) m = Or (c, d)", kKept), kCausal);
}

TEST(CausalMask, Offsets) {
  EXPECT_EQ(of_nodes("e = Add (pn, qn) r = Range (pn, e, one) c = Unsqueeze (r, second) m = LessOrEqual (columns, c)", kKept),
            "j <= i + P, else 0");
  EXPECT_EQ(of_nodes("c = Add (column_of_rows, pn) m = LessOrEqual (columns, c)", kKept), "j <= i + P, else 0");
  EXPECT_EQ(of_nodes("m = Less (columns, column_of_rows)", kKept), "j <= i + -1, else 0");
  EXPECT_EQ(of_nodes("d = Sub (kn, qn) c = Add (column_of_rows, d) m = LessOrEqual (columns, c)", kKept),
            "j <= i + -L + S, else 0");
  EXPECT_EQ(of_nodes("c = Add (column_of_rows, number) m = LessOrEqual (columns, c)", kKept), "j <= i + ?number[0], else 0")
      << "an offset that only the model's input tells";
}

TEST(CausalMask, Windows) {
  EXPECT_EQ(of_nodes("d = Sub (column_of_rows, columns) a = Abs (d) m = LessOrEqual (a, two)", kKept),
            "-2 + i <= j <= i + 2, else 0");
  EXPECT_EQ(of_nodes("d = Sub (columns, column_of_rows) a = Abs (d) m = Greater (two, a)", kKept),
            "-1 + i <= j <= i + 1, else 0");
  EXPECT_EQ(of_nodes("d = Sub (columns, column_of_rows) a = Abs (d) m = LessOrEqual (two, a)", kKept), "depends on 'a'")
      << "outside";
  EXPECT_EQ(of_nodes("n = Sub (column_of_rows, two) m = Greater (columns, n)", kKept), "-1 + i <= j, else 0");
}

/// What NODES compute as m (b, 1, L, S) from lengths (b), length (1) and lengths_of_heads (2).
std::string of_lengths(const std::string& nodes, const std::string& queries = "L") {
  FactsCase c(
      "(float[b,2,L,4] q, float[b,2,S,4] k, int64[b] lengths, int32[b] narrow, int64[1] length, int64[2] lengths_of_heads) "
      "=> (bool[b,1,L,S] m) "
      "<int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] second = {1}, int64[3] not_first = {1, 2, 3}, "
      "int64[2] ends = {0, 3}, int64[2] inner = {1, 2}> {"
      "qs = Shape <start = 2, end = 3> (q) ks = Shape <start = 2, end = 3> (k) qn = Squeeze (qs, first) kn = Squeeze (ks, "
      "first) "
      "rows = Range (zero, qn, one) columns = Range (zero, kn, one) column_of_rows = Unsqueeze (rows, second) "
      "by_batch = Unsqueeze (lengths, not_first) " +
      nodes + "}");
  return reading(c, 1, queries, "S");
}

TEST(CausalMask, LengthsOfTheBatch) {
  EXPECT_EQ(of_lengths("m = Less (columns, by_batch)"), "j < lengths + 0, else 0");
  EXPECT_EQ(of_lengths("m = LessOrEqual (columns, by_batch)"), "j < lengths + 1, else 0");
  EXPECT_EQ(of_lengths("n = GreaterOrEqual (columns, by_batch) m = Not (n)"), "j < lengths + 0, else 0");
  EXPECT_EQ(of_lengths("w = Cast <to = 7> (narrow) u = Unsqueeze (w, not_first) m = Less (columns, u)"),
            "j < narrow + 0, else 0");
  EXPECT_EQ(of_lengths("c = Less (columns, length) m = Expand (c, first)"), "depends on 'length'")
      << "one for all: of no batch";
  EXPECT_EQ(of_lengths("m = Less (by_batch, columns)"), "is no causal triangle") << "padding on the left";
  EXPECT_EQ(of_lengths("d = Add (by_batch, by_batch) m = Less (columns, d)"), "is no causal triangle") << "twice the length";
  EXPECT_THAT(of_lengths("h = Unsqueeze (lengths_of_heads, inner) m = Less (columns, h)"), HasSubstr("for scores of"))
      << "of heads";
}

TEST(CausalMask, CausalFromLengths) {
  const std::string placed = "o = Sub (lengths, qs) u = Unsqueeze (o, not_first) p = Add (column_of_rows, u) ";
  EXPECT_EQ(of_lengths(placed + "m = LessOrEqual (columns, p)"), "j <= i + lengths + -L, else 0");
  EXPECT_EQ(of_lengths(placed + "c = LessOrEqual (columns, p) d = Less (columns, by_batch) m = And (c, d)"),
            "j <= i + lengths + -L, j < lengths + 0, else 0");
  EXPECT_EQ(of_lengths("c = LessOrEqual (columns, column_of_rows) d = Less (columns, by_batch) m = And (c, d)"),
            "j <= i + 0, j < lengths + 0, else 0");
}

TEST(CausalMask, OneQuery) {
  const std::string keys = "P + 1";
  EXPECT_EQ(of_nodes("t = Add (pn, one) c = Range (zero, t, one) m = LessOrEqual (c, pn)", kKept, "1", keys), "all");
  EXPECT_EQ(of_nodes("t = Add (pn, one) c = Range (zero, t, one) m = Less (c, pn)", kKept, "1", keys),
            "j <= i + P - 1, else 0");
}

TEST(CausalMask, SizesThatAreNotThoseOfTheScores) {
  EXPECT_THAT(of_nodes("m = LessOrEqual (columns, column_of_rows)", kKept, "S", "L"), HasSubstr("for scores of (S, L)"));
  EXPECT_THAT(of_nodes("m = LessOrEqual (columns, column_of_rows)", kKept, "L", "N"), HasSubstr("for scores of (L, N)"));
}

TEST(CausalMask, Triangles) {
  EXPECT_EQ(of_nodes("o = Expand (one, square) t = Trilu <upper = 0> (o) e = Equal (t, zero) m = Where (e, inf, none)", kAdds,
                     "L", "S", "float"),
            kCausalInf);
  EXPECT_EQ(of_nodes("o = ConstantOfShape <value = float[1] {-3.4028234663852886e38}> (square) m = Trilu <upper = 1> (o, one)",
                     kAdds, "L", "S", "float"),
            "j <= i + 0, else lowest");
  EXPECT_EQ(
      of_nodes("o = ConstantOfShape <value = float[1] {1}> (square) m = Trilu <upper = 0> (o, pn)", kKept, "L", "S", "float"),
      "j <= i + P, else 0");
  EXPECT_EQ(of_nodes("o = ConstantOfShape <value = float[1] {-3.4028234663852886e38}> (square) t = Trilu <upper = 1> (o, one) "
                     "g = Greater (columns, column_of_rows) f = Cast <to = 1> (g) m = Mul (t, f)",
                     kAdds, "L", "S", "float"),
            "j <= i + 0, else lowest");
}

TEST(CausalMask, FillsAreComputedAsTheModelDoes) {
  const std::string kept = "c = LessOrEqual (columns, column_of_rows) f = Cast <to = 1> (c) r = Sub (f1, f) ";
  const auto of = [&](const std::string& nodes) { return of_nodes(kept + nodes, kAdds, "L", "S", "float"); };
  EXPECT_EQ(of("m = Mul (r, low)"), "j <= i + 0, else lowest");
  EXPECT_EQ(of("a = Mul (r, low) m = Add (a, a)"), kCausalInf) << "lowest and lowest add up to -inf";
  EXPECT_EQ(of("m = Mul (r, inf)"), "is no causal triangle") << "0 times -inf is NaN";
  EXPECT_EQ(of("a = Mul (r, low) m = Add (a, tenth)"), "1 + i <= j <= i + 0, else 0.1")
      << "kept scores are changed: none is left alone";
  EXPECT_EQ(of("b = Cast <to = 9> (r) m = Where (b, low, r)"), "j <= i + 0, else lowest");
}

TEST(CausalMask, SlicedTables) {
  const std::string slice = "o = ConstantOfShape <value = float[1] {1}> (size) big = Trilu <upper = 0> (o) ";
  const std::string sizes = ", int64[2] size = {64, 64}, int64[2] axes = {0, 1}, int64[2] from = {0, 0}";
  EXPECT_EQ(of_nodes(slice + "m = Slice (big, from, square, axes)", kKept, "L", "S", "float", sizes), kCausal);
  EXPECT_EQ(of_nodes(slice + "t = Add (ps, qs) a = Slice (big, ps, t, first) m = Slice (a, first, ks, second)", kKept, "L", "S",
                     "float", sizes),
            "j <= i + P, else 0");
  EXPECT_EQ(
      of_nodes(slice + "s = Constant <value_ints = [-2]> () e = Constant <value_ints = [64]> () a = Slice (big, s, e, first) "
                       "m = Slice (a, first, ks, second)",
               kKept, "2", "S", "float", sizes),
      "j <= i + 62, else 0");
  EXPECT_EQ(of_nodes(slice + "i = Range (pn, number, one) a = Gather <axis = 0> (big, rows) m = Slice (a, first, ks, second)",
                     kKept, "L", "S", "float", sizes),
            kCausal);
}

TEST(CausalMask, WhatPositionsDoNotTell) {
  EXPECT_EQ(of_nodes("c = LessOrEqual (columns, column_of_rows) m = And (c, padding)", kKept), "depends on 'padding'");
  EXPECT_EQ(of_nodes("d = Sub (columns, column_of_rows) e = Abs (d) m = LessOrEqual (e, two)", kKept),
            "-2 + i <= j <= i + 2, else 0")
      << "a window";
  EXPECT_THAT(of_nodes("r = Cast <to = 10> (columns) s = Cast <to = 10> (column_of_rows) m = LessOrEqual (r, s)", kKept),
              HasSubstr("depends on"))
      << "half has no room for long positions";
}

/// The constant m of ROWS rows, each a string of '1' and '0'.
std::string of_constant(DataType type, const std::vector<std::string>& rows, double zero, double one, double wanted) {
  std::vector<double> elements;
  for (const std::string& row : rows)
    for (char c : row) elements.push_back(c == '1' ? one : zero);
  onnx::ModelProto model;
  model.set_ir_version(10);
  auto* import = model.add_opset_import();
  import->set_domain("");
  import->set_version(18);
  const int64_t height = static_cast<int64_t>(rows.size()), width = static_cast<int64_t>(rows[0].size());
  *model.mutable_graph()->add_initializer() = to_proto(*Tensor::of<double>({1, height, width}, elements).cast(type), "m");
  FactsCase c(std::move(model));
  return reading(c, wanted, std::to_string(height), std::to_string(width));
}

TEST(CausalMask, Constants) {
  EXPECT_EQ(of_constant(P::BOOL, {"100", "110", "111"}, 0, 1, 1), kCausal);
  EXPECT_EQ(of_constant(P::FLOAT, {"1000", "1100", "1110"}, -INFINITY, 0, 0), kCausalInf);
  EXPECT_EQ(of_constant(P::FLOAT, {"10", "11", "11", "11"}, std::numeric_limits<float>::lowest(), 0, 0),
            "j <= i + 0, else lowest");
  EXPECT_EQ(of_constant(P::FLOAT, {"1110", "1111"}, -INFINITY, 0, 0), "j <= i + 2, else -inf");
  EXPECT_EQ(of_constant(P::FLOAT, {"100", "111", "111"}, -INFINITY, 0, 0), "depends on 'm'") << "blocks";
  EXPECT_EQ(of_constant(P::FLOAT, {"111", "110", "100"}, -INFINITY, 0, 0), "depends on 'm'");
  EXPECT_EQ(of_constant(P::FLOAT, {"011", "001", "000"}, -INFINITY, 0, 0), "1 + i <= j, else -inf") << "upside down";
  EXPECT_EQ(of_constant(P::FLOAT, {"100", "110", "011"}, -INFINITY, 0, 0), "-1 + i <= j <= i + 0, else -inf") << "a band";
  EXPECT_EQ(of_constant(P::FLOAT, {"10", "11"}, NAN, 0, 0), "depends on 'm'");
}

TEST(CausalMask, SharedNodesAreReadOnce) {
  std::string nodes = "c0 = LessOrEqual (columns, column_of_rows) ";
  for (int i = 0; i < 100; ++i)
    nodes += "c" + std::to_string(i + 1) + " = And (c" + std::to_string(i) + ", c" + std::to_string(i) + ") ";
  EXPECT_EQ(of_nodes(nodes + "m = Not (c100)", kAdds), "j <= i + 0, else 1");
}

}  // namespace
}  // namespace attn_opt
