// Models as exporters write them: every softmax is fused and verified, and a second run finds nothing left.
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::IsEmpty;

struct ModelCase {
  std::string file;
  int attentions;
};

void PrintTo(const ModelCase& model, std::ostream* out) { *out << model.file; }

class Models : public ::testing::TestWithParam<ModelCase> {};

TEST_P(Models, AreFusedAndVerified) {
  Model model = load_testdata(GetParam().file);
  OptimizeOptions options;
  options.on_commit = [](const ModelGraph& view, const std::string& site) {
    const Status whole = view.check();
    EXPECT_TRUE(whole) << "after " << site << ": " << whole.error().message();
  };
  const Report report = optimized(model, options);
  EXPECT_THAT(not_fused(report), IsEmpty());
  EXPECT_EQ(report.fused(), GetParam().attentions);
  for (const SiteReport& site : report.sites) {
    ASSERT_TRUE(site.verification.has_value()) << site.name;
    EXPECT_EQ(site.verification->verdict, Verdict::kVerified) << site.name << ": " << site.verification->reason;
  }
  EXPECT_TRUE(report.changed);
  EXPECT_EQ(opset_version(model.proto), 24);
  EXPECT_EQ(report.opset_after, 24);
  EXPECT_EQ(count_of(model.proto, "Softmax"), 0);
  EXPECT_EQ(count_of(model.proto, "Attention"), GetParam().attentions);
  EXPECT_LT(report.nodes_after, report.nodes_before);
  EXPECT_TRUE(check_model(model).has_value());
  expect_valid(model.proto);
}

TEST_P(Models, KeepTheirInterface) {
  const Model before = load_testdata(GetParam().file);
  Model after = load_testdata(GetParam().file);
  optimized(after);
  const auto bytes = [](const auto& values) {
    std::vector<std::string> all;
    for (const auto& value : values) all.push_back(value.SerializeAsString());
    return all;
  };
  EXPECT_EQ(bytes(after.proto.graph().input()), bytes(before.proto.graph().input()));
  EXPECT_EQ(bytes(after.proto.graph().output()), bytes(before.proto.graph().output()));
  EXPECT_EQ(bytes(after.proto.metadata_props()), bytes(before.proto.metadata_props()));
  EXPECT_EQ(after.proto.producer_name(), before.proto.producer_name());
}

TEST_P(Models, HaveNothingLeftForASecondRun) {
  Model model = load_testdata(GetParam().file);
  optimized(model);
  const std::string once = model.proto.SerializeAsString();
  const Report second = optimized(model);
  EXPECT_EQ(second.fused(), 0);
  EXPECT_FALSE(second.changed);
  EXPECT_EQ(model.proto.SerializeAsString(), once);
}

TEST_P(Models, ComeOutEqualEachTime) {
  Model one = load_testdata(GetParam().file), other = load_testdata(GetParam().file);
  optimized(one);
  optimized(other);
  EXPECT_TRUE(one.proto.SerializeAsString() == other.proto.SerializeAsString());
}

/// What is removed leaves no entry behind that names it.
TEST_P(Models, HoldNoTypesOfValuesThatAreGone) {
  Model model = load_testdata(GetParam().file);
  optimized(model);
  const Viewed viewed(model.proto);
  for (const auto& graph : viewed.view->graphs()) {
    if (!graph->proto()) continue;
    for (const auto& info : graph->proto()->value_info()) EXPECT_NE(graph->find(info.name()), nullptr) << info.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Testdata, Models,
                         ::testing::Values(ModelCase{"bert-ts14s.onnx", 2}, ModelCase{"llama-past-ts17s.onnx", 2},
                                           ModelCase{"llama-past-dy18s-extdata/model.onnx", 2},
                                           ModelCase{"opt-t5-decoder_model_merged.onnx", 8},
                                           ModelCase{"sdpa-gqa-dy23s.onnx", 1}, ModelCase{"encoder-dy20e.onnx", 2},
                                           ModelCase{"sdpa-boolmask-ts14s-f16.onnx", 1}, ModelCase{"timm-swin-ts17e.onnx", 4},
                                           ModelCase{"gpt2-past-ts17s.onnx", 2}),
                         [](const auto& instance) {
                           std::string name = instance.param.file;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

/// Blocks of keys, each of exponentials times values, that OP takes together before they are divided by the sum of all.
std::string miss_of_blocks(const std::string& op) {
  Model model = in_memory(model_of_graph(
      "(float[2,3,8] q, float[2,8,4] k1, float[2,8,5] k2, float[2,4,8] v1, float[2,5,8] v2) => (float[2,3,8] y) "
      "<int64[1] last = {-1}> { s1 = MatMul (q, k1) s2 = MatMul (q, k2) e1 = Exp (s1) e2 = Exp (s2) l1 = ReduceSum (e1, last) "
      "l2 = ReduceSum (e2, last) l = Add (l1, l2) o1 = MatMul (e1, v1) o2 = MatMul (e2, v2) o = " +
      op + " (o1, o2) y = Div (o, l) }"));
  const Report report = optimized(model);
  return report.fused() == 1 ? "" : report.sites.empty() ? "no site" : report.sites.front().miss_id;
}

TEST(Blocks, AreAddedUpWhole) {
  EXPECT_EQ(miss_of_blocks("Sum"), "");
  EXPECT_EQ(miss_of_blocks("Mean"), "softmax.unread") << "half of the attention";
}

/// LAYERS of attention whose Y, of the greater batch of that of V and of the probabilities, is the next one's Q, as tf2onnx
/// writes an Einsum. A mask may enlarge the batch.
Model attention_of_two_batches(int layers) {
  std::string nodes = "columns = Transpose <perm = [0, 1, 3, 2]> (k) values = Shape (v) all_v = Gather (values, first) ";
  for (int layer = 0; layer < layers; ++layer) {
    const std::string n = std::to_string(layer), next = layer + 1 < layers ? "y" + n : "y";
    nodes += "s" + n + " = MatMul (" + (layer ? "y" + std::to_string(layer - 1) : "q") + ", columns) m" + n +
             " = Where (keep, s" + n + ", fill) w" + n + " = Softmax <axis = -1> (m" + n + ") sizes" + n + " = Shape (w" + n +
             ") own" + n + " = Gather (sizes" + n + ", first) all" + n + " = Max (own" + n + ", all_v) to" + n +
             " = Concat <axis = 0> (all" + n + ", rest) of" + n + " = MatMul (w" + n + ", v) " + next + " = Reshape (of" + n +
             ", to" + n + ") ";
  }
  return in_memory(model_of_graph(
      "(float[batch,2,rows,8] q, float[batch,2,keys,8] k, float[batch,2,keys,8] v, bool[masks,1,1,keys] keep) => "
      "(float[all,2,rows,8] y) <float fill = {-1e9}, int64[1] first = {0}, int64[3] rest = {2, -1, 8}> {" +
      nodes + "}"));
}

/// Sizes of probabilities are read of what they broadcast from, and are the same in each layer.
TEST(Sizes, OfProbabilitiesKeepNoSoftmaxInAnyLayer) {
  Model model = attention_of_two_batches(4);
  EXPECT_THAT(not_fused(optimized(model)), IsEmpty());
  EXPECT_EQ(count_of(model.proto, "Attention"), 4);
  EXPECT_EQ(count_of(model.proto, "Softmax"), 0);
  EXPECT_EQ(count_of(model.proto, "MatMul"), 0);
}

/// ONNX Runtime gives values of one name one buffer: the batch of Y is not that of Q in each run.
TEST(Sizes, ThatMayBeOthersGetNoName) {
  for (const Target target : {Target::kPortable, Target::kOrtContrib}) {
    Model model = attention_of_two_batches(2);
    OptimizeOptions options;
    options.emit.target = target;
    EXPECT_THAT(not_fused(optimized(model, options)), IsEmpty());
    for (const auto& info : model.proto.graph().value_info())
      if (info.name().starts_with("of")) {
        EXPECT_EQ(info.type().tensor_type().shape().dim(0).dim_param(), "") << info.name();
      }
  }
}

/// How many sequences are kept is data: the sizes that the last Reshape reads are those of the output in a layout above the one
/// that the operator makes.
constexpr const char* kSizesOfOutput =
    "(float[n,l,32] x, bool[n] keep, float[32,32] wq, float[32,32] wk, float[32,32] wv, float[32,32] wo) "
    "=> (float[m,l,32] y) <float scale = {0.35355338}, int64[4] heads = {0,0,4,8}, int64[2] leading = "
    "{0,1}, int64[2] rows = {-1,32}, int64[1] hidden = {32}> { kept = Compress<axis = 0>(x, keep) q = "
    "MatMul(kept, wq) k = MatMul(kept, wk) v = MatMul(kept, wv) q4 = Reshape(q, heads) k4 = Reshape(k, "
    "heads) v4 = Reshape(v, heads) qt = Transpose<perm = [0,2,1,3]>(q4) kt = Transpose<perm = "
    "[0,2,3,1]>(k4) vt = Transpose<perm = [0,2,1,3]>(v4) qk = MatMul(qt, kt) scaled = Mul(qk, scale) p = "
    "Softmax<axis = -1>(scaled) pv = MatMul(p, vt) yt = Transpose<perm = [0,2,1,3]>(pv) sizes = "
    "Shape(yt) merged = Reshape(yt, rows) projected = MatMul(merged, wo) kept_sizes = Gather(sizes, "
    "leading) y_sizes = Concat<axis = 0>(kept_sizes, hidden) y = Reshape(projected, y_sizes) }";

/// How many sequences there are of each is data: the batch that is read of the probabilities is what that of Q, itself a sum of
/// two, and that of the mask broadcast to.
constexpr const char* kSizesOfProbabilities =
    "(float[n,4,l,8] a, float[m,4,1,8] b, float[4,8,s] k, float[4,s,8] v, float[g,1,l,s] mask, int64[1] "
    "ends_a, int64[1] ends_b, int64[1] ends_mask) => (float[batch,4,l,8] y, int64[4] sizes) <float scale "
    "= {0.35355338}, int64[1] zero = {0}> { kept_a = Slice(a, zero, ends_a, zero) kept_b = Slice(b, "
    "zero, ends_b, zero) kept_mask = Slice(mask, zero, ends_mask, zero) q = Add(kept_a, kept_b) qk = "
    "MatMul(q, k) scaled = Mul(qk, scale) masked = Add(scaled, kept_mask) p = Softmax<axis = -1>(masked) "
    "y = MatMul(p, v) sizes = Shape(p) }";

/// Sizes that no graph input says are read of what the operator reads.
TEST(Sizes, ThatAreDataKeepNoSoftmax) {
  for (const char* graph : {kSizesOfOutput, kSizesOfProbabilities}) {
    Model model = in_memory(model_of_graph(graph));
    OptimizeOptions options;
    options.emit.form = Form::k3d;
    EXPECT_EQ(optimized(model, graph == kSizesOfOutput ? options : OptimizeOptions()).fused(), 1) << graph;
    EXPECT_EQ(count_of(model.proto, "Softmax"), 0) << graph;
    expect_valid(model.proto);
  }
}

}  // namespace
}  // namespace attn_opt
