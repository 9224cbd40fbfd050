#include <cmath>

#include "tests/metamorphic/drawn_attention.h"

namespace attn_opt {
namespace {

using Kind = DrawnMask::Kind;

template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return random.pick(std::vector<T>(values));
}

double lowest_of(DataType type) { return type == onnx::TensorProto::FLOAT16 ? -65504 : -3.4028234663852886e38; }

double drawn_fill(DataType type, Random& random) { return one_of<double>(random, {-INFINITY, lowest_of(type), -1e4}); }

void draw_sizes(Description& d, Random& random) {
  d.batch = one_of<std::string>(random, {"1", "2", "batch", "batch"});
  d.heads = one_of<int64_t>(random, {1, 2, 4, 6});
  d.kv_heads = one_of<int64_t>(random, {d.heads, d.heads, 1, d.heads % 2 == 0 ? d.heads / 2 : d.heads});
  d.head_size = one_of<int64_t>(random, {2, 4, 8});
  d.value_size = one_of<int64_t>(random, {d.head_size, d.head_size, 3});
  d.is_self = random.coin();
  d.queries = one_of<std::string>(random, {"3", "query", "query"});
  d.keys = d.is_self ? d.queries : one_of<std::string>(random, {"5", "keys", "keys"});
}

void draw_layouts(Description& d, Random& random) {
  const auto layout = [&] { return one_of(random, {Layout::kBnsh, Layout::kBsnh, Layout::kBsd, Layout::kSequenceFirst}); };
  d.q = layout();
  d.k = layout();
  d.v = layout();
  const bool may_be_stacked = d.is_self && d.heads == d.kv_heads && d.head_size == d.value_size;
  if (may_be_stacked && random.coin()) d.q = d.k = d.v = Layout::kStacked;
  d.merged = d.heads == d.kv_heads && random.below(4) == 0;
  d.output = one_of(random, {OutputLayout::kProduct, OutputLayout::kBsnh, OutputLayout::kBsd});
}

DrawnMask drawn_mask(const Description& d, Random& random) {
  DrawnMask mask;
  mask.kind = one_of(random, {Kind::kBias, Kind::kKeepBias, Kind::kKeepWhere, Kind::kDropWhere, Kind::kPadding, Kind::kCausal});
  mask.axes = static_cast<int>(random.below(5));
  mask.fill = drawn_fill(d.type, random);
  return mask;
}

/// Where two masks lie over each other their fills add up, which the operator's one mask does only if they are -inf.
void make_masks_go_together(Description& d) {
  if (d.masks.size() < 2) return;
  for (DrawnMask& mask : d.masks) {
    mask.fill = -INFINITY;
    if (mask.kind == Kind::kPadding) mask.kind = Kind::kCausal;
  }
  // A bias may hold the lowest number, which for halves is one that scores and other masks still change.
  const bool is_bias[] = {d.masks[0].kind == Kind::kBias, d.masks[1].kind == Kind::kBias};
  if (d.type != onnx::TensorProto::FLOAT && (is_bias[0] || is_bias[1])) d.masks.pop_back();
}

/// Behind the masks a scale must not make a finite fill infinite; a cap that it scales must be a float, as the attribute is.
void make_scale_fit(Description& d) {
  if (d.place != ScalePlace::kAfterMasks) return;
  if (d.scale > 1) d.scale = 0.5;
  if (d.type == onnx::TensorProto::DOUBLE) d.softcap = 0;
}

}  // namespace

Description drawn_description(Random& random) {
  Description d;
  d.type = one_of(random,
                  {onnx::TensorProto::FLOAT, onnx::TensorProto::FLOAT, onnx::TensorProto::FLOAT16, onnx::TensorProto::DOUBLE});
  draw_sizes(d, random);
  draw_layouts(d, random);
  d.has_past = !d.merged && random.below(4) == 0;
  d.scale = one_of<double>(random, {1 / std::sqrt(static_cast<double>(d.head_size)), 0.3, 1.5});
  d.place = static_cast<ScalePlace>(random.below(7));
  d.softcap = random.below(5) == 0 ? one_of(random, {5.0, 30.0}) : 0;
  for (size_t masks = one_of<size_t>(random, {0, 1, 1, 2}); masks > 0; --masks) d.masks.push_back(drawn_mask(d, random));
  make_masks_go_together(d);
  make_scale_fit(d);
  d.guarded = random.below(4) == 0;
  d.softmax = one_of(random, {SoftmaxSpelling::kSoftmax, SoftmaxSpelling::kSoftmax, SoftmaxSpelling::kWrittenOut,
                              SoftmaxSpelling::kReciprocal, SoftmaxSpelling::kExpOfLogSoftmax});
  if (d.type == onnx::TensorProto::FLOAT16 && random.coin()) d.softmax = SoftmaxSpelling::kInFloat;
  d.shows_probabilities = !d.merged && !d.guarded && random.below(8) == 0;
  return d;
}

}  // namespace attn_opt
