#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "attn_opt/shape.h"

namespace attn_opt {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

const Dim kBatch = Dim::symbol("batch"), kSeq = Dim::symbol("seq"), kPast = Dim::symbol("past");

std::optional<int64_t> value_of(const Dim& dim, const std::map<std::string, int64_t>& sizes) {
  return dim.evaluate([&](const Atom& atom) -> std::optional<int64_t> {
    const auto found = sizes.find(atom.name);
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Dim, TextIsCanonical) {
  EXPECT_EQ((kSeq + kPast).str(), "past + seq");
  EXPECT_EQ((kPast + kSeq), (kSeq + kPast));
  EXPECT_EQ((kSeq * 2 * kBatch + 1 - kPast).str(), "2*batch*seq - past + 1");
  EXPECT_EQ((Dim(0) - kSeq + 1).str(), "-seq + 1");
  EXPECT_EQ((kSeq - kSeq).str(), "0");
  EXPECT_EQ(Dim(kMin).str(), "-9223372036854775808");
  EXPECT_EQ(to_string(Shape{kBatch, 8, kPast + kSeq}), "(batch, 8, past + seq)");
  EXPECT_EQ(Dim::unknown("x", 1).str(), "?x.1");
  EXPECT_EQ(Dim::unknown_integer("x", 1).str(), "?x[1]");
}

TEST(Dim, ASymbolCannotPoseAsAnUnknownOrAnExpression) {
  EXPECT_FALSE(Dim::symbol("?x.1") == Dim::unknown("x", 1));
  EXPECT_FALSE(Dim::symbol("past + seq") == kPast + kSeq);
  EXPECT_FALSE(Dim::symbol("floor(seq/2)") == floor_quotient(kSeq, 2));
}

TEST(Dim, CancelsAndExpands) {
  EXPECT_TRUE((kPast + kSeq - kPast) == kSeq);
  EXPECT_TRUE((kPast + 1) * (kPast - 1) == kPast * kPast - 1);
  EXPECT_TRUE((kSeq * 0).is(0));
  EXPECT_FALSE(kPast == kSeq);
}

TEST(Dim, ExactQuotientBySingleTerm) {
  EXPECT_EQ(exact_quotient(kBatch * kSeq * 64, kSeq * 16)->str(), "4*batch");
  EXPECT_FALSE(exact_quotient(kSeq, 2));
  EXPECT_FALSE(exact_quotient(kSeq * 2, kBatch));
  EXPECT_FALSE(exact_quotient(kSeq, 0));
  EXPECT_TRUE(exact_quotient(0, kSeq)->is(0));
  EXPECT_FALSE(exact_quotient(kMin, -1));
}

TEST(Dim, ExactQuotientBySum) {
  const Dim total = kPast + kSeq;
  EXPECT_TRUE(*exact_quotient(kBatch * total * 8, total) == kBatch * 8);
  EXPECT_TRUE(*exact_quotient(total * (kBatch + kSeq * 3), total) == kBatch + kSeq * 3);
  EXPECT_TRUE(*exact_quotient(kSeq * kSeq - 1, kSeq + 1) == kSeq - 1);
  EXPECT_FALSE(exact_quotient(kSeq * kSeq + 1, kSeq + 1));
  EXPECT_FALSE(exact_quotient(kSeq, total));
}

TEST(Dim, FloorQuotientOfNumbersRoundsDown) {
  EXPECT_TRUE(floor_quotient(7, 2).is(3));
  EXPECT_TRUE(floor_quotient(-7, 2).is(-4));
  EXPECT_TRUE(floor_quotient(7, -2).is(-4));
  EXPECT_FALSE(floor_quotient(7, 0).is_constant());
  EXPECT_FALSE(floor_quotient(kMin, -1).is_constant());
}

TEST(Dim, FloorQuotientIsCanonical) {
  EXPECT_EQ(floor_quotient(kSeq, 2).str(), "floor(seq/2)");
  EXPECT_EQ(floor_quotient(kSeq * 2 + 1, 2).str(), "seq");
  EXPECT_EQ(floor_quotient(kSeq + 5, 2).str(), "floor((seq + 1)/2) + 2");
  EXPECT_EQ(floor_quotient(kSeq - 1, 2).str(), "floor((seq + 1)/2) - 1");
  EXPECT_EQ(floor_quotient(kSeq * 4 + 2, 12).str(), "floor((2*seq + 1)/6)");
  EXPECT_EQ(floor_quotient(floor_quotient(kSeq, 2), 3).str(), "floor(seq/6)");
  EXPECT_EQ(floor_quotient(kBatch * kSeq, kBatch * 2).str(), "floor(seq/2)");
  EXPECT_EQ(floor_quotient(kBatch * kSeq * 2 + kBatch, kBatch * 2).str(), "seq");
}

TEST(Dim, QuotientsAndExtremesEvaluateLikeIntegers) {
  for (int64_t seq = 0; seq < 9; ++seq) {
    for (int64_t past = 1; past < 5; ++past) {
      const std::map<std::string, int64_t> sizes{{"seq", seq}, {"past", past}, {"batch", 2}};
      for (int64_t c = -3; c < 4; ++c) {
        const int64_t a = seq * 5 + c;
        EXPECT_EQ(value_of(floor_quotient(kSeq * 5 + c, 3), sizes), (a - ((a % 3) + 3) % 3) / 3);
        EXPECT_EQ(value_of(minimum(kSeq + c, kPast), sizes), std::min(seq + c, past));
        EXPECT_EQ(value_of(maximum(kSeq + c, kPast), sizes), std::max(seq + c, past));
        EXPECT_EQ(value_of(minimum(minimum(kSeq, 3), c), sizes), std::min({seq, int64_t{3}, c}));
        EXPECT_EQ(value_of(maximum(maximum(kSeq, 3), kSeq + c), sizes), std::max({seq, int64_t{3}, seq + c}));
        EXPECT_EQ(value_of(minimum(kSeq, c) + maximum(kSeq - c, 0), sizes), std::min(seq, c) + std::max(seq - c, int64_t{0}));
      }
      EXPECT_EQ(value_of(floor_quotient(kSeq, kPast), sizes), seq / past);
    }
  }
  EXPECT_EQ(value_of(kSeq, {}), std::nullopt);
  EXPECT_EQ(value_of(kSeq * kSeq, {{"seq", kMax}}), std::nullopt);
}

TEST(Dim, ExtremesUseThatSizesAreNotNegative) {
  EXPECT_TRUE(minimum(kSeq, kSeq + kPast) == kSeq);
  EXPECT_TRUE(maximum(kSeq, kSeq + 3) == kSeq + 3);
  EXPECT_TRUE(minimum(kSeq, kPast) == minimum(kPast, kSeq));
  EXPECT_EQ(minimum(kSeq, kPast).str(), "min(past, seq)");
  EXPECT_TRUE(minimum(minimum(kSeq, kPast), kSeq) == minimum(kSeq, kPast));
  const Dim element = Dim::unknown_integer("x", 0);
  EXPECT_EQ(maximum(element, 0).str(), "max(0, ?x[0])");
}

TEST(Dim, PartsOfASizeAreTheSize) {
  const Dim first = minimum(kSeq, 2), second = maximum(minimum(kSeq, 5) - 2, 0), third = maximum(kSeq - 5, 0);
  EXPECT_TRUE(first + second == minimum(kSeq, 5));
  EXPECT_TRUE(third + first + second == kSeq);
  EXPECT_TRUE(kBatch * 3 * first + (kBatch * maximum(kSeq - 2, 0)) * 3 == kBatch * kSeq * 3);
  EXPECT_TRUE(minimum(kPast, kSeq) + maximum(kSeq - kPast, 0) == kSeq);
  EXPECT_FALSE(first + third == kSeq);
  EXPECT_FALSE(first * 2 + maximum(kSeq - 2, 0) == kSeq + first) << "as many of both alone";
}

TEST(Dim, SignOfExpressions) {
  EXPECT_TRUE((kSeq + 1).never_negative());
  EXPECT_FALSE((kSeq - 1).never_negative());
  EXPECT_TRUE((kSeq - 1).may_be_size());
  EXPECT_FALSE((Dim(0) - kSeq - 1).may_be_size());
  EXPECT_TRUE(Dim(0).may_be_size());
  EXPECT_FALSE(Dim(-1).may_be_size());
  EXPECT_FALSE((Dim::unknown_integer("x", 0) + 1).never_negative());
  EXPECT_FALSE(floor_quotient(Dim::unknown_integer("x", 0), 2).from_sizes());
  EXPECT_TRUE(floor_quotient(kSeq - kPast, 2).from_sizes());
  EXPECT_FALSE(minimum(kSeq, kPast - 1).never_negative());
  EXPECT_TRUE((Dim(16) - minimum(kSeq, 16)).never_negative());
  EXPECT_FALSE((Dim(15) - minimum(kSeq, 16)).never_negative());
  EXPECT_TRUE((maximum(kSeq - kPast, 3) - 3).never_negative());
  EXPECT_FALSE((maximum(kSeq - kPast, -3) + 2).never_negative());
  const Dim columns = floor_quotient(kSeq, 4);
  EXPECT_TRUE((columns * 4 - floor_quotient(columns * 3, 4) * 4).never_negative()) << "what is left of a shifted window";
  EXPECT_TRUE((floor_quotient(kSeq, 16) - floor_quotient(kSeq, 32)).never_negative()) << "half of it, rounded up";
  EXPECT_FALSE((floor_quotient(kSeq, 16) - floor_quotient(kSeq, 24)).never_negative());
  EXPECT_FALSE((floor_quotient(kSeq, 32) - floor_quotient(kSeq, 16)).never_negative());
  EXPECT_TRUE((kSeq - floor_quotient(kSeq, 3) - floor_quotient(kSeq * 2, 3)).never_negative());
  EXPECT_FALSE((columns * 4 - floor_quotient(columns * 5, 4) * 4).never_negative());
  EXPECT_FALSE((kSeq - floor_quotient(kSeq + 3, 4) * 4).never_negative());
}

TEST(Dim, ParsesExpressions) {
  EXPECT_TRUE(Dim::parse("past + seq") == kPast + kSeq);
  EXPECT_TRUE(Dim::parse("past+seq") == kPast + kSeq);
  EXPECT_TRUE(Dim::parse("2*seq") == kSeq * 2);
  EXPECT_TRUE(Dim::parse("seq//2") == floor_quotient(kSeq, 2));
  EXPECT_TRUE(Dim::parse("floor(seq/2)") == floor_quotient(kSeq, 2));
  EXPECT_TRUE(Dim::parse("floor((seq + 1)/(2*past))") == floor_quotient(kSeq + 1, kPast * 2));
  EXPECT_TRUE(Dim::parse("Min(seq, 2*(past - 1))") == minimum(kSeq, kPast * 2 - 2));
  EXPECT_TRUE(Dim::parse("-seq + 4") == Dim(4) - kSeq);
  EXPECT_TRUE(Dim::parse("batch") == kBatch);
}

TEST(Dim, ParsesWhatSympyPrints) {
  EXPECT_TRUE(Dim::parse("CeilToInt(FloatTrueDiv(seq, 16))") == floor_quotient(kSeq + 15, 16));
  EXPECT_TRUE(Dim::parse("CeilToInt(FloatTrueDiv(ToFloat(seq), 16.0))") == floor_quotient(kSeq + 15, 16));
  EXPECT_TRUE(Dim::parse("TruncToInt(IntTrueDiv(seq, 2))*past") == floor_quotient(kSeq, 2) * kPast);
  EXPECT_TRUE(Dim::parse("FloorDiv(seq, 2) + CeilDiv(past, 2)") == floor_quotient(kSeq, 2) + floor_quotient(kPast + 1, 2));
  EXPECT_TRUE(Dim::parse("seq + PythonMod(-seq, 7)") == kSeq + (Dim(0) - kSeq - floor_quotient(Dim(0) - kSeq, 7) * 7));
  EXPECT_TRUE(Dim::parse("CeilToInt(FloatTrueDiv(ToFloat((seq//16)) - 0.5, 1.0))") == floor_quotient(kSeq, 16));
  EXPECT_TRUE(Dim::parse("CeilToInt(FloatTrueDiv(seq - 0.5, 2.0))") == floor_quotient(kSeq + 1, 2));
  EXPECT_TRUE(Dim::parse("CeilToInt(FloatTrueDiv(seq + 0.5, 2.0))") == floor_quotient(kSeq + 2, 2));
  EXPECT_TRUE(Dim::parse("FloorToInt(FloatTrueDiv(seq - 0.5, 2.0))") == floor_quotient(kSeq - 1, 2));
  EXPECT_TRUE(Dim::parse("FloorToInt(FloatTrueDiv(seq + 0.5, 2.0))") == floor_quotient(kSeq, 2));
  EXPECT_TRUE(Dim::parse("Mod(seq, 4)") == Dim::parse("seq % 4"));
  EXPECT_TRUE(Dim::parse("seq**2 + past") == kSeq * kSeq + kPast);
  const auto at = [](const std::string& text, int64_t seq) {
    return *Dim::parse(text).evaluate([seq](const Atom&) { return seq; });
  };
  EXPECT_EQ(at("TruncToInt(IntTrueDiv(4 - seq, 3))", 9), -1) << "towards 0";
  EXPECT_EQ(at("PythonMod(-seq, 7)", 9), 5);
}

TEST(Dim, ANegativeNumberIsAName) {
  EXPECT_TRUE(Dim::parse("-1") == Dim::symbol("-1"));
  EXPECT_FALSE(Dim::parse("-1").is_constant());
}

TEST(Dim, NestedCeilingsAreOne) {
  const auto half = [](const Dim& dim) { return floor_quotient(dim + 1, 2); };
  EXPECT_TRUE(half(half(kSeq)) == floor_quotient(kSeq + 3, 4));
  EXPECT_TRUE(half(half(half(kSeq))) == floor_quotient(kSeq + 7, 8));
  EXPECT_FALSE(half(floor_quotient(kSeq, 2)) == floor_quotient(kSeq + 3, 4)) << "1: 0, and 1";
}

TEST(Dim, ParsesItsOwnText) {
  const Dim dim = floor_quotient(kSeq * 3 + kPast - 1, 4) * kBatch - minimum(kSeq, kPast - 2) * 2 + 7;
  EXPECT_TRUE(Dim::parse(dim.str()) == dim) << dim.str();
}

/// Sums of patches on four scales, as exporters name the keys of a detector, are hundreds of characters long.
TEST(Dim, ParsesLongNames) {
  std::string text = "(((seq + 1)//2))*(((past + 1)//2))";
  Dim sum = floor_quotient(kSeq + 1, 2) * floor_quotient(kPast + 1, 2);
  for (int scale = 4; scale <= 4096; scale *= 2) {
    text += " + (((seq//" + std::to_string(scale) + ")))*(((past//" + std::to_string(scale) + ")))";
    sum = sum + floor_quotient(kSeq, scale) * floor_quotient(kPast, scale);
  }
  ASSERT_GT(text.size(), 256u);
  EXPECT_TRUE(Dim::parse(text) == sum);
}

TEST(Dim, WhatDoesNotParseIsOneSymbol) {
  for (const char* text : {"seq-len",
                           "batch size",
                           "a/b",
                           "seq +",
                           "(seq",
                           "seq)",
                           "2x",
                           "f(seq)",
                           "floor(seq)",
                           "",
                           "99999999999999999999",
                           "*",
                           "a // ",
                           "seq ** past",
                           "seq ** 9",
                           "2.5",
                           "CeilToInt(seq)",
                           "IntTrueDiv(seq, 2)",
                           "seq - 0.5",
                           "CeilToInt(FloatTrueDiv(seq - 0.52, 1))",
                           "TruncToInt(FloatTrueDiv(seq - 0.5, 1))"}) {
    EXPECT_TRUE(Dim::parse(text) == Dim::symbol(text)) << text;
  }
  EXPECT_EQ(Dim::parse("seq-len").atoms().size(), 1u);
  EXPECT_TRUE(Dim::parse(std::string(200, '(') + "a" + std::string(200, ')')).may_be_size());
}

TEST(Dim, OverflowBecomesAnUnknown) {
  for (const Dim& dim : {Dim(kMax) + 1, Dim(kMin) - 1, Dim(kMax) * 2, Dim(0) - Dim(kMin), kSeq * kMax * 3}) {
    EXPECT_FALSE(dim.is_constant());
    ASSERT_EQ(dim.atoms().size(), 1u);
    EXPECT_TRUE(dim.atoms()[0]->unknown);
    EXPECT_FALSE(dim.never_negative());
  }
  EXPECT_TRUE(Dim(kMax) + 1 == Dim(kMax) + 1);
  EXPECT_FALSE(Dim(kMax) + 1 == Dim(kMax) + 2);
}

TEST(Dim, QuotientsOfWhatGrewOutOfHand) {
  const Dim lost = Dim::unknown("#lost", 0), x = Dim::symbol("x"), y = Dim::symbol("y"), z = Dim::symbol("z");
  const Dim quotient = floor_quotient((x * y * z + x * lost) * 4, (x * kSeq + x * kPast) * 4);
  EXPECT_FALSE(quotient.is_constant());
}

TEST(Dim, GrowthIsBounded) {
  Dim many = 1, power = kSeq, nested = kSeq;
  for (int i = 0; i < 200; ++i) {
    many = many + Dim::symbol("s" + std::to_string(i));
    power = power * power;
    nested = minimum(nested * kPast - kSeq, nested - kPast);
  }
  EXPECT_LE(many.terms().size(), 64u);
  EXPECT_LT(power.str().size(), 2000u);
  EXPECT_LT(nested.str().size(), 20000u);
}

TEST(Dim, AtomsListsOperandsOnce) {
  const Dim dim = floor_quotient(kSeq + kPast, 2) + kSeq;
  EXPECT_EQ(dim.atoms().size(), 3u);
}

}  // namespace
}  // namespace attn_opt
