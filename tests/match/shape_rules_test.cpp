// Shapes and contents that the rules give for one or a few nodes, worked out by hand from the operators'
// definitions.
#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

struct RuleCase {
  const char* name;
  int opset;
  const char* graph;
  const char* shape;          ///< of the value y
  const char* integers = "";  ///< of the value y
  const char* assumptions = "";
};

void PrintTo(const RuleCase& rule_case, std::ostream* os) { *os << rule_case.name; }

class ShapeRule : public testing::TestWithParam<RuleCase> {};

TEST_P(ShapeRule, GivesShapeAndContents) {
  const RuleCase& expected = GetParam();
  FactsCase facts(expected.graph, expected.opset);
  EXPECT_EQ(facts.shape("y"), expected.shape);
  if (*expected.integers) {
    EXPECT_EQ(facts.integers("y"), expected.integers);
  }
  EXPECT_EQ(facts.assumptions(), expected.assumptions);
}

const RuleCase kElementwise[] = {
    {"Broadcast", 18, "(float[b,1,s] x, float[4,1] z) => (y) { y = Add(x, z) }", "(b, 4, s)"},
    {"BroadcastNumberBeatsSymbol", 18, "(float[s] x, float[8] z) => (y) { y = Mul(x, z) }", "(8)"},
    {"BroadcastOfTwoSymbols", 18, "(float[total] x, float[seq] z) => (y) { y = Add(x, z) }", "(seq)", "", "seq = total"},
    {"Where", 18, "(bool[b,1] c, float x, float[s] z) => (y) { y = Where(c, x, z) }", "(b, s)"},
    {"Variadic", 18, "(float[a,1,1] u, float[b,1] v, float[c] w) => (y) { y = Max(u, v, w) }", "(a, b, c)"},
    {"SoftmaxKeeps", 11, "(float[b,s] x) => (y) { y = Softmax(x) }", "(b, s)"},
    {"DropoutOfSix", 7, "(float[b,s] x) => (y) { y = Dropout<ratio = 0.5>(x) }", "(b, s)"},
};

const RuleCase kReshape[] = {
    {"CopiesAndInfers", 18, "(float[b,s,64] x) => (y) <int64[4] t = {0, 0, 8, -1}> { y = Reshape(x, t) }", "(b, s, 8, 8)"},
    {"ZeroStaysUnderAllowzero", 18, "(float[0,s] x) => (y) <int64[2] t = {0, 3}> { y = Reshape<allowzero=1>(x, t) }", "(0, 3)"},
    {"UnknownEntryMayBeMinusOne", 18,
     "(float[b,s] x, int64[1] n) => (y) <int64[1] k = {4}> "
     "{ t = Concat<axis=0>(n, k) y = Reshape(x, t) }",
     "(?y.0, 4)"},
    {"RankFromTargetLength", 18, "(float[b,s] x, int64[3] t) => (y) { y = Reshape(x, t) }", "(?y.0, ?y.1, ?y.2)"},
    {"OpaqueQuotient", 18, "(float[b,s] x) => (y) <int64[2] t = {-1, 3}> { y = Reshape(x, t) }", "(floor((b*s)/3), 3)"},
};

const RuleCase kSequences[] = {
    {"PieceOfOneLength", 18,
     "(float[b,7] x) => (y) <int64 n = {3}, int64 i = {-1}> { s = SplitToSequence<axis=1>(x, n) y = SequenceAt(s, i) }",
     "(b, 1)"},
    {"PieceOfLengths", 18,
     "(float[b,7] x) => (y) <int64[2] n = {3, 4}, int64 i = {1}> { s = SplitToSequence<axis=-1>(x, n) y = SequenceAt(s, i) }",
     "(b, 4)"},
    {"PieceOfSymbolIsOpen", 18,
     "(float[b,c] x) => (y) <int64 n = {3}, int64 i = {0}> { s = SplitToSequence<axis=1>(x, n) y = SequenceAt(s, i) }",
     "(b, ?y.1)"},
    {"PieceAtComputedPlaceIsOpen", 18,
     "(float[b,7] x, int64 i) => (y) <int64 n = {3}> { s = SplitToSequence<axis=1>(x, n) y = SequenceAt(s, i) }", "(b, ?y.1)"},
    {"PieceUnbound", 18, "(float[b,3,c] x, int64 i) => (y) { s = SplitToSequence<axis=1, keepdims=0>(x) y = SequenceAt(s, i) }",
     "(b, c)"},
    {"ElementOfSequence", 18,
     "(float[a] x, float[b,c] z) => (y) <int64 i = {1}> { s = SequenceConstruct(x, z) y = SequenceAt(s, i) }", "(b, c)"},
    {"JoinedSequence", 18,
     "(float[b,past,64] x, float[b,seq,64] z) => (y) { s = SequenceConstruct(x, z) y = ConcatFromSequence<axis=1>(s) }",
     "(b, past + seq, 64)"},
    {"StackedSequence", 18,
     "(float[b,64] x, float[b,64] z) => (y) { s = SequenceConstruct(x, z) y = ConcatFromSequence<axis=-1, new_axis=1>(s) }",
     "(b, 64, 2)"},
};

const RuleCase kLayout[] = {
    {"Flatten", 18, "(float[a,b,c] x) => (y) { y = Flatten<axis=-1>(x) }", "(a*b, c)"},
    {"Transpose", 18, "(float[a,b,c] x) => (y) { y = Transpose<perm=[2,0,1]>(x) }", "(c, a, b)"},
    {"TransposeReverses", 18, "(float[a,b,c] x) => (y) { y = Transpose(x) }", "(c, b, a)"},
    {"UnsqueezeAttribute", 11, "(float[a,b] x) => (y) { y = Unsqueeze<axes=[0,-1]>(x) }", "(1, a, b, 1)"},
    {"UnsqueezeInput", 13, "(float[a,b] x) => (y) <int64[1] k = {1}> { y = Unsqueeze(x, k) }", "(a, 1, b)"},
    {"SqueezeAttribute", 11, "(float[1,b,1] x) => (y) { y = Squeeze<axes=[-1]>(x) }", "(1, b)"},
    {"SqueezeAllOnes", 13, "(float[1,5,1] x) => (y) { y = Squeeze(x) }", "(5)"},
    {"SqueezeOfSymbolsIsOpen", 13, "(float[1,b] x) => (y) { y = Squeeze(x) }", "unknown"},
    {"Expand", 18, "(float[b,1,s,64] x) => (y) <int64[4] t = {1, 4, 1, 64}> { y = Expand(x, t) }", "(b, 4, s, 64)"},
    {"ExpandAddsAxes", 18, "(float[s] x) => (y) <int64[2] t = {2, 1}> { y = Expand(x, t) }", "(2, s)"},
    {"Tile", 18, "(float[b,s] x) => (y) <int64[2] t = {1, 3}> { y = Tile(x, t) }", "(b, 3*s)"},
    {"Concat", 18, "(float[b,past,64] x, float[b,seq,64] z) => (y) { y = Concat<axis=-2>(x, z) }", "(b, past + seq, 64)"},
    {"ConcatTakesKnownSizes", 18, "(float[b,p] x, float[4,q] z) => (y) { y = Concat<axis=1>(x, z) }", "(4, p + q)"},
    {"SplitAttribute", 11, "(float[b,12] x) => (y, z) { y, z = Split<axis=1, split=[4,8]>(x) }", "(b, 4)"},
    {"SplitInput", 13, "(float[b,12] x) => (z, y) <int64[2] n = {4, 8}> { z, y = Split<axis=1>(x, n) }", "(b, 8)"},
    {"SplitUneven", 18, "(float[7] x) => (z, y) { z, y = Split<num_outputs=2>(x) }", "(3)"},
    {"PadAttribute", 7, "(float[b,s] x) => (y) { y = Pad<pads=[0,1,0,2]>(x) }", "(b, s + 3)"},
    {"PadInput", 18, "(float[b,s] x) => (y) <int64[2] p = {1, 2}, int64[1] k = {-1}> { y = Pad(x, p, , k) }", "(b, s + 3)"},
    {"SpaceToDepth", 18, "(float[b,c,8,w] x) => (y) { y = SpaceToDepth<blocksize=2>(x) }", "(b, 4*c, 4, floor(w/2))"},
};

#define SLICE(bounds) "(float[b,s] x) => (y) <int64[1] k = {1}, " bounds "> { y = Slice(x, f, t, k) }"
const RuleCase kSlice[] = {
    {"ToTheEnd", 18, SLICE("int64[1] f = {0}, int64[1] t = {9223372036854775807}"), "(b, s)"},
    {"ToInt32Max", 18, SLICE("int64[1] f = {0}, int64[1] t = {2147483647}"), "(b, s)"},
    {"FromMinimum", 18, SLICE("int64[1] f = {-9223372036854775808}, int64[1] t = {9223372036854775807}"), "(b, s)"},
    {"DropsFirst", 18, SLICE("int64[1] f = {1}, int64[1] t = {9223372036854775807}"), "(b, s - 1)", "",
     "s - 1 = max(0, s - 1)"},
    {"DropsLast", 18, SLICE("int64[1] f = {0}, int64[1] t = {-1}"), "(b, s - 1)", "", "s - 1 = max(0, s - 1)"},
    {"KeepsLast", 18, SLICE("int64[1] f = {-1}, int64[1] t = {9223372036854775807}"), "(b, 1)", "", "1 = min(1, s)"},
    {"KeepsSome", 18, SLICE("int64[1] f = {0}, int64[1] t = {8}"), "(b, min(8, s))"},
    {"Attribute", 9, "(float[b,16] x) => (y) { y = Slice<starts=[2], ends=[-2], axes=[1]>(x) }", "(b, 12)"},
    {"StepOfNumbers", 18,
     "(float[9] x) => (y) <int64[1] f = {7}, int64[1] t = {0}, int64[1] k = {0}, "
     "int64[1] p = {-3}> { y = Slice(x, f, t, k, p) }",
     "(3)"},
    {"StepOfSymbols", 18,
     "(float[s] x) => (y) <int64[1] f = {0}, int64[1] t = {9223372036854775807}, "
     "int64[1] k = {0}, int64[1] p = {2}> { y = Slice(x, f, t, k, p) }",
     "(floor((s + 1)/2))"},
    {"Reversal", 18,
     "(float[s] x) => (y) <int64[1] f = {-1}, int64[1] t = {-9223372036854775807}, "
     "int64[1] k = {0}, int64[1] p = {-1}> { y = Slice(x, f, t, k, p) }",
     "(s)"},
    {"TableToSymbolicEnd", 18,
     "(float[b,s] x, float[64,8] w) => (y) <int64[1] f = {0}, int64[1] k = {0}> "
     "{ n = Shape<start=1,end=2>(x) y = Slice(w, f, n, k) }",
     "(s, 8)", "", "s = min(64, s)"},
    {"SymbolicBounds", 18,
     "(float[q,k] x, float[64] w) => (y) <int64[1] a = {0}> { q = Shape<start=0,end=1>(x) "
     "k = Shape<start=1,end=2>(x) t = Add(q, k) y = Slice(w, q, t, a) }",
     "(k)", "", "k + q = min(64, k + q)"},
    {"LastSymbolic", 18,
     "(float[q] x, float[w] t) => (y) <int64[1] a = {0}, int64[1] e = {9223372036854775807}> "
     "{ q = Shape(x) n = Neg(q) y = Slice(t, n, e, a) }",
     "(min(q, w))", "", "q = max(1, q)"},
    {"ToItsOwnEnd", 18,
     "(float[q,k] x) => (y) <int64[1] a = {1}, int64[1] f = {0}> "
     "{ n = Shape<start=1>(x) y = Slice(x, f, n, a) }",
     "(q, k)"},
    {"UnknownBound", 18, "(float[64] x, int64[1] n) => (y) <int64[1] f = {0}> { y = Slice(x, f, n) }", "(?y.0)"},
};
#undef SLICE

const RuleCase kIndexing[] = {
    {"Gather", 18, "(float[v,64] x, int64[b,s] i) => (y) { y = Gather(x, i) }", "(b, s, 64)"},
    {"GatherScalar", 18, "(float[b,s,64] x) => (y) <int64 i = {0}> { y = Gather<axis=1>(x, i) }", "(b, 64)"},
    {"GatherElements", 18, "(float[b,s] x, int64[b,k] i) => (y) { y = GatherElements<axis=1>(x, i) }", "(b, k)"},
    {"GatherND", 18, "(float[b,s,64] x, int64[n,m,2] i) => (y) { y = GatherND(x, i) }", "(n, m, 64)"},
    {"GatherNDBatch", 18, "(float[b,s,64] x, int64[b,m,1] i) => (y) { y = GatherND<batch_dims=1>(x, i) }", "(b, m, 64)"},
    {"TopKAttribute", 9, "(float[b,s] x) => (y, i) { y, i = TopK<k=5>(x) }", "(b, 5)"},
    {"TopKInput", 18, "(float[b,s] x) => (v, y) <int64[1] k = {5}> { v, y = TopK<axis=0>(x, k) }", "(5, s)"},
    {"ScatterND", 18, "(float[b,s] x, int64[n,1] i, float[n,s] u) => (y) { y = ScatterND(x, i, u) }", "(b, s)"},
};

const RuleCase kReductions[] = {
    {"AxesAttribute", 13, "(float[b,s,d] x) => (y) { y = ReduceMean<axes=[-1]>(x) }", "(b, s, 1)"},
    {"AxesInput", 18, "(float[b,s,d] x) => (y) <int64[1] k = {1}> { y = ReduceMax<keepdims=0>(x, k) }", "(b, d)"},
    {"All", 18, "(float[b,s] x) => (y) { y = ReduceSum<keepdims=0>(x) }", "()"},
    {"NoOp", 18, "(float[b,s] x) => (y) { y = ReduceSum<noop_with_empty_axes=1>(x) }", "(b, s)"},
    {"ArgMax", 18, "(float[b,s] x) => (y) { y = ArgMax<axis=1, keepdims=0>(x) }", "(b)"},
    {"UnknownAxesOfKnownNumber", 18, "(float[b,s] x, int64[1] k) => (y) { y = ReduceSum<keepdims=0>(x, k) }", "(?y.0)"},
    {"UnknownAxesKeepRank", 18, "(float[b,s] x, int64[1] k) => (y) { y = ReduceSum(x, k) }", "(?y.0, ?y.1)"},
};

const RuleCase kContractions[] = {
    {"MatMul", 18, "(float[b,1,s,d] q, float[h,d,t] k) => (y) { y = MatMul(q, k) }", "(b, h, s, t)"},
    {"MatMulVector", 18, "(float[b,s,d] x, float[d] v) => (y) { y = MatMul(x, v) }", "(b, s)"},
    {"Gemm", 18, "(float[k,m] x, float[n,k] w) => (y) { y = Gemm<transA=1, transB=1>(x, w) }", "(m, n)"},
    {"Einsum", 18, "(float[b,q,h,d] x, float[b,k,h,d] z) => (y) { y = Einsum<equation=\"bqhd,bkhd->bhqk\">(x, z) }",
     "(b, h, q, k)"},
    {"EinsumImplicit", 18, "(float[a,c] x, float[c,d] z) => (y) { y = Einsum<equation=\"ij,jk\">(x, z) }", "(a, d)"},
    {"EinsumEllipsis", 18, "(float[b,1,q,d] x, float[h,k,d] z) => (y) { y = Einsum<equation=\"...id,...jd->i...j\">(x, z) }",
     "(q, b, h, k)"},
    {"EinsumEllipsisImplicit", 18, "(float[b,q,d] x, float[d] z) => (y) { y = Einsum<equation=\"...z,z\">(x, z) }", "(b, q)"},
    {"EinsumEllipsisOfNothing", 18, "(float[q,d] x, float[k,d] z) => (y) { y = Einsum<equation=\"...id,...jd->...ij\">(x, z) }",
     "(q, k)"},
    {"EinsumEllipsisOfTooFewAxes", 18, "(float[q] x, float[k,d] z) => (y) { y = Einsum<equation=\"...id,jd->...ij\">(x, z) }",
     "unknown"},
};

const RuleCase kGenerators[] = {
    {"Shape", 18, "(float[a,b,c] x) => (y) { y = Shape<start=-2>(x) }", "(2)", "(b, c)"},
    {"Size", 18, "(float[a,b,4] x) => (y) { y = Size(x) }", "()", "(4*a*b)"},
    {"Range", 18,
     "(float[p,s] x) => (y) <int64 zero = {0}, int64 one = {1}> { n = Shape(x) "
     "f = Gather(n, zero) i = Gather(n, one) t = Add(f, i) y = Range(f, t, one) }",
     "(s)"},
    {"RangeOfNumbers", 18, "(float x) => (y) <int64 f = {2}, int64 t = {9}, int64 d = {3}> { y = Range(f, t, d) }", "(3)",
     "(2, 5, 8)"},
    {"RangeOfFloats", 18, "(float x) => (y) <float f = {0.0}, float t = {1.0}, float d = {0.25}> { y = Range(f, t, d) }",
     "(4)"},
    {"RangeOfFloatsToASize", 18,
     "(float[h] x) => (y) <float f = {0.5}, int64 k = {16}, float d = {1.0}> {"
     " n = Size(x) p = Div(n, k) t = Cast<to = 1>(p) y = Range(f, t, d) }",
     "(floor(h/16))"},
    {"RangeOfFloatsToASizeInSteps", 18,
     "(float[h] x) => (y) <float f = {1.5}, float d = {2.0}> { n = Size(x) t = Cast<to = 1>(n) y = Range(f, t, d) }",
     "(floor(h/2))", "", "h - 1 = max(0, h - 1)"},
    {"RangeOfFloatsBehindCopies", 18,
     "(float[h] x) => (y) <float f = {0.5}, float d = {1.0}, int64[1] none = {0}> { n = Size(x) t = Cast<to = 11>(n)"
     " u = Unsqueeze(t, none) s = Squeeze(u) c = Cast<to = 1>(s) i = Identity(c) y = Range(f, i, d) }",
     "(h)"},
    {"RangeOfFloatsThroughHalf", 18,
     "(float[h] x) => (y) <float f = {0.5}, float d = {1.0}> { n = Size(x) t = Cast<to = 10>(n) c = Cast<to = 1>(t)"
     " y = Range(f, c, d) }",
     "(?y.0)"},
    {"RangeOfFloatsFromAThird", 18,
     "(float[h] x) => (y) <float f = {0.3}, float d = {1.0}> { n = Size(x) t = Cast<to = 1>(n) y = Range(f, t, d) }", "(?y.0)"},
    {"RangeToInput", 18, "(int64 n) => (y) <int64 f = {0}, int64 d = {1}> { y = Range(f, n, d) }", "(max(0, ?n[0]))"},
    {"ConstantOfShape", 18, "(float[b,s] x) => (y) { n = Shape(x) y = ConstantOfShape(n) }", "(b, s)"},
    {"OneHot", 18, "(int64[b] i, float[2] v) => (y) <int64 d = {7}> { y = OneHot(i, d, v) }", "(b, 7)"},
    {"NonZero", 18, "(float[b,s] x) => (y) { y = NonZero(x) }", "(2, ?y.1)"},
    {"NonZeroOfConstant", 18, "(float x) => (y) <int64[3] c = {0, 4, 5}> { y = NonZero(c) }", "(1, 2)", "(1, 2)"},
};

const RuleCase kSpatial[] = {
    {"Conv", 18, "(float[b,3,h,224] x, float[16,3,3,3] w) => (y) { y = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) }",
     "(b, 16, floor((h + 1)/2), 112)"},
    {"ConvSame", 18, "(float[b,3,w] x, float[8,3,5] k) => (y) { y = Conv<auto_pad=\"SAME_UPPER\", strides=[2]>(x, k) }",
     "(b, 8, floor((w + 1)/2))"},
    {"ConvTranspose", 18,
     "(float[b,4,h,8] x, float[4,3,2,2] w) => (y) "
     "{ y = ConvTranspose<strides=[2,2], group=2>(x, w) }",
     "(b, 6, 2*h, 16)"},
    {"MaxPool", 18, "(float[b,3,8,8] x) => (y) { y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }", "(b, 3, 4, 4)"},
    {"PoolRoundedUp", 18, "(float[b,c,h,w] x) => (y) { y = AveragePool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x) }",
     "(b, c, floor((h + 1)/2), floor((w + 1)/2))"},
    {"PaddedPoolRoundedUp", 18,
     "(float[b,c,h] x) => (y) { y = MaxPool<kernel_shape=[3], strides=[2], pads=[1,1], ceil_mode=1>(x) }",
     "(b, c, floor(h/2) + 1)"},
    {"PoolRoundedUpIntoPadding", 18,
     "(float[b,c,h] x) => (y) { y = MaxPool<kernel_shape=[2], strides=[2], pads=[1,1], ceil_mode=1>(x) }", "(b, c, ?y.2)"},
    {"PoolRoundedUpToSame", 18,
     "(float[b,c,h] x) => (y) { y = MaxPool<kernel_shape=[2], strides=[2], auto_pad=\"SAME_UPPER\", ceil_mode=1>(x) }",
     "(b, c, floor((h + 1)/2))"},
    {"GlobalPool", 18, "(float[b,c,h,w] x) => (y) { y = GlobalAveragePool(x) }", "(b, c, 1, 1)"},
    {"ResizeScales", 18, "(float[b,c,h,8] x) => (y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> { y = Resize(x, , s) }",
     "(b, c, 2*h, 16)"},
    {"ResizeSizes", 18, "(float[b,c,h,w] x) => (y) <int64[2] n = {4, 6}> { y = Resize<axes=[2,3]>(x, , , n) }", "(b, c, 4, 6)"},
    {"UpsampleAttribute", 7, "(float[b,c,4,4] x) => (y) { y = Upsample<scales=[1.0,1.0,1.5,1.5]>(x) }", "(b, c, ?y.2, ?y.3)"},
};

const RuleCase kAttention[] = {
    {"FourDimensions", 23, "(float[b,8,l,64] q, float[b,2,s,64] k, float[b,2,s,32] v) => (y) { y = Attention(q, k, v) }",
     "(b, 8, l, 32)"},
    {"ThreeDimensions", 23,
     "(float[b,l,512] q, float[b,s,128] k, float[b,s,64] v) => (y) "
     "{ y = Attention<q_num_heads=8, kv_num_heads=2>(q, k, v) }",
     "(b, l, 256)"},
    {"Presents", 24,
     "(float[b,l,512] q, float[b,s,128] k, float[b,s,64] v, float[b,2,p,64] pk, float[b,2,p,32] pv) => "
     "(o, y, pr) { o, y, pr = Attention<q_num_heads=8, kv_num_heads=2>(q, k, v, , pk, pv) }",
     "(b, 2, p + s, 64)"},
    {"Scores", 23,
     "(float[b,8,l,64] q, float[b,8,s,64] k, float[b,8,s,64] v) => (o, y) "
     "{ o, , , y = Attention(q, k, v) }",
     "(b, 8, l, s)"},
    {"NormalizationOfOnnxRuntime", 14, "(float[b,s,64] x, float[64] g) => (y) { y = LayerNormalization(x, g) }", "(b, s, 64)"},
    {"MeanOfNormalization", 14, "(float[b,s,2,32] x, float[2,32] g) => (y) { z, y = LayerNormalization<axis=2>(x, g) }",
     "(b, s, 1, 1)"},
    {"SimplifiedNormalization", 24, "(float[b,s,64] x, float[64] g) => (y) { y = SimplifiedLayerNormalization(x, g) }",
     "(b, s, 64)"},
    {"DeviationOfSimplifiedNormalization", 14,
     "(float[b,s,64] x, float[64] g) => (y) { z, y = SimplifiedLayerNormalization(x, g) }", "(b, s, 1)"},
    {"CopyToAnotherDevice", 14, "(float[b,s,64] x) => (y) { y = MemcpyFromHost(x) }", "(b, s, 64)"},
    {"RowsBehindBatchAxes", 18,
     "(float[l,b,4,8] x, float[b,4,8,s] z) => (y) { y = com.microsoft.FusedMatMul<transBatchA=1>(x, z) }", "(b, 4, l, s)"},
    {"ColumnsBehindBatchAxes", 18,
     "(float[b,l,8] x, float[s,b,8] z) => (y) { y = com.microsoft.FusedMatMul<transBatchB=1, transB=1>(x, z) }", "(b, l, s)"},
    {"BlockedConvolution", 18,
     "(float[b,3,h,w] x, float[16,3,2,2] k) => (y) "
     "{ z = com.microsoft.nchwc.Conv<strides=[2,2], activation=\"Relu\">(x, k) "
     "y = com.microsoft.nchwc.ReorderOutput<channels=12>(z) }",
     "(b, 12, floor(h/2), floor(w/2))"},
    {"BlockedChannels", 18,
     "(float[b,h,w,3] x) => (y) { z = com.microsoft.nchwc.ReorderInput<channels_last=1>(x) "
     "y = com.microsoft.nchwc.ReorderOutput<channels=3, channels_last=1>(z) }",
     "(b, h, w, 3)"},
    {"BlockedUpsampling", 18, "(float[b,16,h,w] x) => (y) { y = com.microsoft.nchwc.Upsample<scales=[1,1,2,3]>(x) }",
     "(b, 16, 2*h, 3*w)"},
    {"FourBitWeights", 18,
     "(float16[b,s,64] x, uint8[96,2,16] w, float16[192] scales) => (y) "
     "{ y = com.microsoft.MatMulNBits<K=64, N=96, bits=4, block_size=32>(x, w, scales) }",
     "(b, s, 96)"},
    {"QuantizedProducts", 18,
     "(float[b,s,64] x, int8[64,96] w, float scale, int8[96,32] u) => (y) "
     "{ z = com.microsoft.DynamicQuantizeMatMul(x, w, scale) i = com.microsoft.QuantizeLinear(z, scale) "
     "y = com.microsoft.MatMulIntegerToFloat(i, u, scale, scale) }",
     "(b, s, 32)"},
    {"QuantizedSum", 18,
     "(uint8[b,1,64] x, uint8[s,64] z, float scale, uint8 zero) => (y) "
     "{ w = com.microsoft.QLinearAdd(x, scale, zero, z, scale, zero, scale, zero) y = com.microsoft.DequantizeLinear(w, scale, "
     "zero) }",
     "(b, s, 64)"},
    {"Contrib", 18,
     "(float[b,s,64] x, float[b,s,64] z, float[64] g) => (y) "
     "{ y = com.microsoft.SkipLayerNormalization(x, z, g) }",
     "(b, s, 64)"},
    {"Embeddings", 18,
     "(int32[b,s] ids, float[words,64] w, float[n,64] p, float[64] g) => (y) "
     "{ y, lengths = com.microsoft.EmbedLayerNormalization(ids, , w, p, , g, g) }",
     "(b, s, 64)"},
    {"LengthsOfEmbeddings", 18,
     "(int32[b,s] ids, float[words,64] w, float[n,64] p, float[64] g, int32[b,s] m) => (y) "
     "{ z, y = com.microsoft.EmbedLayerNormalization(ids, , w, p, , g, g, m) }",
     "(b)"},
    {"ContribAttention", 18, "(float[b,s,64] x, float[64,96] w) => (y) { y = com.microsoft.Attention<num_heads=2>(x, w) }",
     "(b, s, 32)"},
    {"ContribAttentionOfSizes", 18,
     "(float[b,s,64] x, float[64,44] w) => (y) "
     "{ y = com.microsoft.Attention<num_heads=2, qkv_hidden_sizes=[16, 16, 12]>(x, w) }",
     "(b, s, 12)"},
    {"BySchema", 18, "(float[b,s] x, bool[n] c) => (y) { y = Compress<axis=0>(x, c) }", "(?y.0, s)"},
};

const RuleCase kIntegers[] = {
    {"Arithmetic", 18,
     "(float[b,s] x) => (y) <int64 two = {2}> { n = Shape(x) m = Mul(n, two) k = Sub(m, n) "
     "y = Add(k, two) }",
     "(2)", "(b + 2, s + 2)"},
    {"DivisionIsExact", 18, "(float[b,s,64] x) => (y) <int64 k = {16}> { n = Size(x) y = Div(n, k) }", "()", "(4*b*s)"},
    {"DivisionRoundsDown", 18, "(float[s] x) => (y) <int64 k = {2}> { n = Shape(x) y = Div(n, k) }", "(1)", "(floor(s/2))"},
    {"DivisionOfNumbersRoundsToZero", 18, "(float x) => (y) <int64 n = {-7}, int64 k = {2}> { y = Div(n, k) }", "()", "(-3)"},
    {"FloorDivisionOfASize", 18,
     "(float[h] x) => (y) <int64 k = {16}, int64 one = {1}> { n = Size(x) q = Div(n, k) m = Mod(n, k) b = Cast<to = 9>(m)"
     " s = Sign(n) e = Equal(s, one) d = Not(e) a = And(d, b) c = Cast<to = 7>(a) y = Sub(q, c) }",
     "()", "(floor(h/16))"},
    {"FloorDivisionByASize", 18,
     "(float[h] x, float[w] z) => (y) { n = Size(x) k = Size(z) q = Div(n, k) m = Mod(n, k) b = Cast<to = 9>(m)"
     " s = Sign(n) t = Sign(k) e = Equal(t, s) d = Not(e) a = And(b, d) c = Cast<to = 7>(a) y = Sub(q, c) }",
     "()", "(floor(h/w))"},
    {"FloorDivisionBehindCopies", 18,
     "(float[h] x) => (y) <int64 k = {16}, int64 one = {1}, int64[1] list = {-1}, int64[1] first = {0}, int64[1] end = {9}> {"
     " n = Size(x) q = Div(n, k) n2 = Size(x) m = Mod(n2, k) m2 = Identity(m) b = Cast<to = 9>(m2) s = Sign(n)"
     " l = Reshape(s, list) t = Slice(l, first, end) e = Equal(t, one) i = Cast<to = 7>(e) f = Cast<to = 9>(i) d = Not(f)"
     " a = And(d, b) c = Cast<to = 7>(a) y = Sub(q, c) }",
     "(1)", "(floor(h/16))"},
    {"FloorDivisionByDeMorgan", 18,
     "(float[h] x) => (y) <int64 k = {16}, int64 one = {1}> { n = Size(x) q = Div(n, k) m = Mod(n, k) b = Cast<to = 9>(m)"
     " s = Sign(n) e = Equal(s, one) d = Not(e) f = Not(d) g = Not(b) o = Or(f, g) a = Not(o) c = Cast<to = 7>(a)"
     " y = Sub(q, c) }",
     "()", "(floor(h/16))"},
    {"EqualSignsAndARemainder", 18,
     "(float[h] x) => (y) <int64 k = {16}, int64 one = {1}> { n = Size(x) m = Mod(n, k) b = Cast<to = 9>(m)"
     " s = Sign(n) e = Equal(s, one) y = And(e, b) }",
     "()", "(?y[0])"},
    {"SignsOfOtherElements", 18,
     "(float[h,w] x) => (y) <int64 k = {16}, int64 one = {1}, int64[2] column = {2, 1}> { n = Shape(x) m = Mod(n, k)"
     " b = Cast<to = 9>(m) s = Sign(n) t = Reshape(s, column) e = Equal(t, one) d = Not(e) y = And(d, b) }",
     "(2, 2)", "unknown"},
    {"FloorDivisionOfAnyInteger", 18,
     "(int64 n) => (y) <int64 k = {16}, int64 one = {1}> { m = Mod(n, k) b = Cast<to = 9>(m)"
     " s = Sign(n) e = Equal(s, one) d = Not(e) y = And(d, b) }",
     "()", "(?y[0])"},
    {"SignsOfAnotherDividend", 18,
     "(float[h] x, float[w] z) => (y) <int64 k = {16}, int64 one = {1}> { n = Size(x) o = Size(z) m = Mod(n, k)"
     " b = Cast<to = 9>(m) s = Sign(o) e = Equal(s, one) d = Not(e) y = And(d, b) }",
     "()", "(?y[0])"},
    {"ModOfNumbersHasTheDivisorsSign", 18, "(float x) => (y) <int64 n = {-7}, int64 k = {3}> { y = Mod(n, k) }", "()", "(2)"},
    {"SizeIsNeverMinusOne", 18, "(float[b,s] x) => (y) <int64 k = {-1}> { n = Shape(x) y = Equal(n, k) }", "(2)", "(0, 0)"},
    {"EqualityOfSymbolsIsOpen", 18,
     "(float[b,s] x) => (y) <int64[1] k = {0}, int64[1] i = {1}> { n = Shape(x) "
     "u = Gather(n, k) v = Gather(n, i) y = Equal(u, v) }",
     "(1)", "(?y[0])"},
    {"Comparisons", 18, "(float[b,s] x) => (y) <int64 one = {1}> { n = Shape(x) m = Add(n, one) y = LessOrEqual(n, m) }", "(2)",
     "(1, 1)"},
    {"Where", 18, "(float[b,s] x) => (y) <bool[2] c = {1, 0}, int64 k = {7}> { n = Shape(x) y = Where(c, n, k) }", "(2)",
     "(b, 7)"},
    {"ScatterElement", 18,
     "(float[b,s] x) => (y) <int64[1,1] i = {1}, int64[1] u = {9}> { n = Shape(x) "
     "y = ScatterND(n, i, u) }",
     "(2)", "(b, 9)"},
    {"ReduceProd", 18, "(float[b,s,4] x) => (y) { n = Shape(x) y = ReduceProd<keepdims=0>(n) }", "()", "(4*b*s)"},
    {"MinMax", 18, "(float[b,s] x) => (y) <int64 k = {0}> { n = Shape(x) y = Max(n, k) }", "(2)", "(b, s)"},
    {"CastToInt32", 18, "(float[b,s] x) => (y) { n = Shape(x) y = Cast<to=6>(n) }", "(2)", "(b, s)"},
    {"CastThatOverflowsIsOpen", 18, "(float[b] x) => (y) <int64[1] k = {3000000000}> { y = Cast<to=6>(k) }", "(1)"},
    {"FloatChain", 18,
     "(float[b,s,64] x) => (y) <int64[1] f = {-1}, int64[1] t = {9223372036854775807}> { n = Shape(x) "
     "d = Slice(n, f, t) c = Cast<to=1>(d) r = Sqrt(c) y = Cast<to=7>(r) }",
     "(1)", "(8)"},
    {"UnknownsKeepTheirNames", 18, "(int64 n) => (y) <int64[1] k = {0}> { u = Unsqueeze(n, k) y = Add(u, u) }", "(1)",
     "(2*?n[0])"},
};

INSTANTIATE_TEST_SUITE_P(Elementwise, ShapeRule, testing::ValuesIn(kElementwise), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Reshape, ShapeRule, testing::ValuesIn(kReshape), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Sequences, ShapeRule, testing::ValuesIn(kSequences), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Layout, ShapeRule, testing::ValuesIn(kLayout), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Slice, ShapeRule, testing::ValuesIn(kSlice), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Indexing, ShapeRule, testing::ValuesIn(kIndexing), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Reductions, ShapeRule, testing::ValuesIn(kReductions), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Contractions, ShapeRule, testing::ValuesIn(kContractions), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Generators, ShapeRule, testing::ValuesIn(kGenerators), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Spatial, ShapeRule, testing::ValuesIn(kSpatial), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Attention, ShapeRule, testing::ValuesIn(kAttention), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Integers, ShapeRule, testing::ValuesIn(kIntegers), testing::PrintToStringParamName());

}  // namespace
}  // namespace attn_opt
