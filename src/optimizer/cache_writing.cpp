#include "src/optimizer/cache_writing.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "attn_opt/edit.h"
#include "attn_opt/graph_builder.h"

namespace attn_opt {
namespace {

constexpr int64_t kRowAxis = 2, kBufferRank = 4;  // of (B, Hkv, P, D)

class CacheWriter {
 public:
  CacheWriter(const CacheBuffers& buffers, const TargetRules& target, ModelGraph& view, Facts& facts)
      : buffers_(buffers), target_(target), view_(view), facts_(facts), held_(view.main().find(buffers.length_input)) {}

  void write(const CachePlan& plan) {
    std::vector<std::pair<Node*, const CacheSite*>> places;
    for (const CacheSite& site : plan.sites) {
      if (!site.takes_buffers) places.emplace_back(site.node, nullptr);
      for (const GrowingCache& cache : site.caches)
        for (const Value* value : {cache.past, cache.present})
          for (const Use& use : value->uses)
            if (use.node->is("Shape")) places.emplace_back(use.node, &site);
    }
    std::ranges::sort(places, {}, [](const auto& place) { return place.first->position; });
    for (const auto& [node, site] : places) site ? write_sizes(*node, *site) : write_attention(*node);
  }

 private:
  /// How many rows the caches of SITE hold behind it: P + S.
  Value* total(Value& keys, GraphBuilder& build) {
    const int64_t axis = row_axis(facts_.shape(keys).known().size());
    return build.node("Add", {held_, build.shape(keys, axis, axis + 1)});
  }

  /// What SIZES, a Shape of a cache of SITE, gave while the cache grew.
  void write_sizes(Node& sizes, const CacheSite& site) {
    const auto from_end = [](int64_t axis) {
      return std::clamp<int64_t>(axis < 0 ? axis + kBufferRank : axis, 0, kBufferRank);
    };
    const int64_t begin = from_end(sizes.int_attribute("start", 0)), end = from_end(sizes.int_attribute("end", kBufferRank));
    if (begin > kRowAxis || end <= kRowAxis) return;
    Edit edit(view_, sizes);
    GraphBuilder build(edit, shared_, sizes.label());
    Value& cache = *sizes.input(0);
    const bool is_past = std::ranges::find(site.caches, &cache, &GrowingCache::past) != site.caches.end();
    Value* rows = is_past ? held_ : total(*site.keys, build);
    std::vector<Value*> parts = {rows};
    if (begin < kRowAxis) parts.insert(parts.begin(), build.shape(cache, begin, kRowAxis));
    if (end > kRowAxis + 1) parts.push_back(build.shape(cache, kRowAxis + 1, end));
    if (parts.size() > 1) rows = build.node("Concat", parts, {{"axis", 0}});
    edit.commit(shared_);
    const auto& now = sizes.output(0)->uses;
    for (const Use& use : std::vector<Use>(now.begin(), now.end())) view_.set_input(*use.node, use.input, *rows);
    view_.remove_if_dead(sizes);
  }

  /// PAST with the rows of FRESH from WHERE on.
  static Value* scattered(Value& past, Value& fresh, Value& where, GraphBuilder& build) {
    return build.new_node("TensorScatter", {&past, &fresh, &where}, {true}, {{"axis", kRowAxis}})->outputs[0];
  }

  /// VALUE (B, S, HEADS*D) as (B, HEADS, S, D).
  static Value* with_heads(Value& value, int64_t heads, GraphBuilder& build) {
    Value* split = build.node("Reshape", {&value, build.ints({0, 0, heads, -1})});
    return build.node("Transpose", {split}, {{"perm", {0, 2, 1, 3}}});
  }

  /// MASK with a column for each row of the buffers: those that it lacks are masked.
  Value* widened(Value& mask, Value& past, GraphBuilder& build) {
    const int64_t rank = static_cast<int64_t>(facts_.shape(mask).known().size());
    Value* rows = buffers_.length > 0 ? build.ints({buffers_.length}) : build.shape(past, kRowAxis, kRowAxis + 1);
    Value* lacking = build.node("Sub", {rows, build.shape(mask, rank - 1, rank)});
    Value* none = build.ints(std::vector<int64_t>(static_cast<size_t>(2 * rank - 1)));
    Value* pads = build.node("Concat", {none, lacking}, {{"axis", 0}});
    const DataType type = facts_.type(mask);
    Value* fill = type == onnx::TensorProto::BOOL ? build.constant(Tensor::scalar(false))
                                                  : build.scalar(-std::numeric_limits<double>::infinity(), type);
    return build.node("Pad", {&mask, pads, fill});
  }

  /// Those of ATTENTION, without what says the heads of 3-D operands.
  static Attributes attributes_of(const Node& attention) {
    Attributes kept;
    for (const auto& attribute : attention.proto->attribute())
      if (!attribute.name().ends_with("_num_heads")) kept.emplace_back(attribute);
    return kept;
  }

  void write_attention(Node& attention) {
    Edit edit(view_, attention);
    GraphBuilder build(edit, shared_, attention.label());
    Value &past_key = *attention.input(4), &past_value = *attention.input(5);
    std::array<Value*, 3> operands = {attention.input(0), attention.input(1), attention.input(2)};
    const bool has_heads = facts_.shape(*operands[1]).has_rank(kBufferRank);
    Value* batch = build.shape(past_key, 0, 1);
    Value* lengths = build.node("Expand", {total(*operands[1], build), batch});
    for (size_t i = 0; i < operands.size() && !has_heads; ++i)
      operands[i] = with_heads(*operands[i], attention.int_attribute(i == 0 ? "q_num_heads" : "kv_num_heads", 0), build);
    Value* where = build.node("Expand", {held_, batch});
    Value* keys = scattered(past_key, *operands[1], *where, build);
    Value* values = scattered(past_value, *operands[2], *where, build);
    Value* mask = attention.input(3);
    if (mask && !target_.takes_short_masks) mask = widened(*mask, past_key, build);
    Value* y = build
                   .new_node("Attention", {operands[0], keys, values, mask, nullptr, nullptr, lengths}, {true},
                             attributes_of(attention))
                   ->outputs[0];
    if (!has_heads) {
      y = build.node("Transpose", {y}, {{"perm", {0, 2, 1, 3}}});
      y = build.new_node("Reshape", {y, build.ints({0, 0, -1})}, {true})->outputs[0];
    }
    edit.take_over(*attention.output(0), *y);
    edit.take_over(*attention.output(1), *keys);
    edit.take_over(*attention.output(2), *values);
    edit.commit(shared_);
  }

  const CacheBuffers& buffers_;
  const TargetRules& target_;
  ModelGraph& view_;
  Facts& facts_;
  Value* held_;  ///< rows of the buffers that hold keys, int64 (1)
  SharedNodes shared_;
};

template <class Values>
onnx::ValueInfoProto& named(Values& values, const std::string& name) {
  return *std::ranges::find_if(values, [&name](const onnx::ValueInfoProto& value) { return value.name() == name; });
}

}  // namespace

void write_static_caches(const CachePlan& plan, const CacheBuffers& buffers, const TargetRules& target, ModelGraph& view,
                         Facts& facts) {
  CacheWriter(buffers, target, view, facts).write(plan);
}

void declare_buffers(const std::vector<std::pair<std::string, std::string>>& caches, const CacheBuffers& buffers,
                     onnx::GraphProto& graph) {
  for (const auto& [past, present] : caches) {
    auto& type = *named(*graph.mutable_input(), past).mutable_type();
    auto& rows = *type.mutable_tensor_type()->mutable_shape()->mutable_dim(kRowAxis);
    if (buffers.length > 0)
      rows.set_dim_value(buffers.length);
    else
      rows.set_dim_param(buffers.symbol);
    *named(*graph.mutable_output(), present).mutable_type() = type;
  }
}

}  // namespace attn_opt
