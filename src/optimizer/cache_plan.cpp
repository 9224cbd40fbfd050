#include "src/optimizer/cache_plan.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "src/graph/operator_name.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

constexpr int kOpsetOfTensorScatter = 24;
constexpr size_t kCacheRank = 4, kCacheRows = 2;
constexpr size_t kLeastRank = 3;  ///< of a cache of any layout

/// The node that reads VALUE, and is neither OWNER nor a Shape; null if there is none.
const Node* other_reader(const Value& value, const Node* owner) {
  for (const Use& use : value.uses)
    if (use.node && use.node != owner && !use.node->is("Shape")) return use.node;
  return nullptr;
}

bool is_read_by_outputs(const Value& value) {
  return value.is_output || std::ranges::any_of(value.uses, [](const Use& use) { return use.node == nullptr; });
}

/// PAST is declared with as many rows as PRESENT: it does not grow.
bool is_buffer(const Value* past, const Value* present) {
  if (!past || !present || !past->declared_type || !present->declared_type) return false;
  const auto& before = past->declared_type->tensor_type().shape();
  const auto& after = present->declared_type->tensor_type().shape();
  const int axis = static_cast<int>(kCacheRows);
  return before.dim_size() > axis && after.dim_size() > axis &&
         before.dim(axis).SerializeAsString() == after.dim(axis).SerializeAsString();
}

/// Sizes of a cache that are read become numbers of another value: the readers must be nodes.
Matched<void> check_readers(const Value& cache, const Node* owner) {
  if (const Node* other = other_reader(cache, owner))
    return missed("cache.other-read", other, "'" + cache.name + "' is read by " + operator_name(*other) + " too");
  for (const Use& use : cache.uses)
    if (use.node && use.node->is("Shape") && is_read_by_outputs(*use.node->output(0)))
      return missed("cache.other-read", use.node, "the sizes of '" + cache.name + "' are an output");
  return {};
}

class CachePlanner {
 public:
  CachePlanner(ModelGraph& view, Facts& facts) : view_(view), facts_(facts) {
    for (const auto& tensor : view.proto().graph().initializer()) initializers_.insert(tensor.name());
  }

  Matched<CachePlan> plan() {
    for (const auto& graph : view_.graphs())
      for (Node* node : graph->nodes())
        if (!node->removed && takes_past(*node) && !has_buffers(*node)) ATTN_OPT_DONE(add(*node));
    if (plan_.sites.empty())
      return missed("cache.none", nullptr, "no Attention or GroupQueryAttention takes past_key and past_value");
    ATTN_OPT_DONE(check_left());
    return std::move(plan_);
  }

 private:
  static bool takes_past(const Node& node) {
    const PastInputs* inputs = past_inputs_of(node);
    return inputs && (node.input(inputs->key) || node.input(inputs->key + 1));
  }

  /// As an earlier run left it: GroupQueryAttention takes a buffer where it takes a past.
  static bool has_buffers(const Node& node) {
    const PastInputs& inputs = *past_inputs_of(node);
    return inputs.takes_buffers && is_buffer(node.input(inputs.key), node.output(1));
  }

  Matched<void> add(Node& node) {
    const PastInputs& inputs = *past_inputs_of(node);
    CacheSite site{&node, node.input(1), inputs.takes_buffers, {}};
    for (size_t i = 0; i < site.caches.size(); ++i) {
      site.caches[i] = {node.input(inputs.key + i), node.output(1 + i)};
      ATTN_OPT_DONE(check_place(site.caches[i], node));
      ATTN_OPT_DONE(check_readers(*site.caches[i].past, &node));
      ATTN_OPT_DONE(check_readers(*site.caches[i].present, nullptr));
      ATTN_OPT_DONE(check_length(site.caches[i], node));
    }
    ATTN_OPT_DONE(check_rows(node));
    if (!site.takes_buffers) ATTN_OPT_DONE(check_attention(node));
    plan_.sites.push_back(site);
    return {};
  }

  Matched<void> check_place(const GrowingCache& cache, const Node& node) const {
    if (node.graph != &view_.main()) return missed("cache.input", &node, "the node is in a body or a function");
    if (!cache.past || !cache.past->is_input)
      return missed("cache.input", &node,
                    cache.past ? "'" + cache.past->name + "' is no input of the model" : "one past alone");
    if (initializers_.contains(cache.past->name))
      return missed("cache.input", &node, "'" + cache.past->name + "' has a value that runs take where they are given none");
    if (!cache.present || !cache.present->is_output)
      return missed("cache.output", &node, "what '" + cache.past->name + "' becomes is no output of the model");
    if (cache.past->is_output) return missed("cache.output", &node, "'" + cache.past->name + "' is an output itself");
    return {};
  }

  /// All pasts have one length, which has a name.
  Matched<void> check_length(const GrowingCache& cache, const Node& node) {
    const MaybeShape shape = facts_.shape(*cache.past);
    if (!shape.has_rank(kCacheRank))
      return missed("cache.length", &node, "'" + cache.past->name + "' is not declared with four axes");
    const Atom* atom = sole_atom((*shape)[kCacheRows]);
    if (!atom || atom->kind != Atom::Kind::kSymbol || atom->unknown)
      return missed("cache.length", &node,
                    "the past of '" + cache.past->name + "' is " + (*shape)[kCacheRows].str() + " and no symbol");
    if (plan_.past.empty()) plan_.past = atom->name;
    if (plan_.past == atom->name) return {};
    return missed("cache.length", &node, "pasts of " + plan_.past + " and of " + atom->name);
  }

  /// How many new keys there are can be read off a shape.
  Matched<void> check_rows(const Node& node) {
    const Value* keys = node.input(1);
    const MaybeShape shape = keys ? facts_.shape(*keys) : MaybeShape();
    if (!shape || (shape->size() != 3 && shape->size() != kCacheRank))
      return missed("cache.rows", &node,
                    keys ? "the rank of '" + keys->name + "' is not known" : "the new keys lie in the queries");
    const Dim& rows = (*shape)[static_cast<size_t>(row_axis(shape->size()))];
    if (const Atom* atom = sole_atom(rows); atom && atom->kind == Atom::Kind::kSymbol && !atom->unknown)
      plan_.queries = atom->name;
    return {};
  }

  /// With lengths the operator counts queries from the last key; behind a past, from the first new one.
  Matched<void> check_attention(const Node& node) {
    if (view_.opset(*node.graph) < kOpsetOfTensorScatter)
      return missed("cache.opset", &node,
                    "TensorScatter came with opset 24; the model is of " + std::to_string(view_.opset(*node.graph)));
    if (const Value* scores = node.output(3); scores && !scores->unused())
      return missed("cache.scores", &node, "the scores are an output, with as many keys as the cache has rows");
    const MaybeShape queries = facts_.shape(*node.input(0)), keys = facts_.shape(*node.input(1));
    if (!queries || !keys || queries->size() != keys->size())
      return missed("cache.rows", &node, "Q and K differ in rank, or Q's is not known");
    const auto axis = static_cast<size_t>(row_axis(keys->size()));
    const bool counts = node.int_attribute("is_causal", 0) != 0 || node.int_attribute("left_window_size", -1) >= 0 ||
                        node.int_attribute("right_window_size", -1) >= 0;
    if (counts && (*queries)[axis] != (*keys)[axis])
      return missed("cache.causal", &node,
                    "queries are counted from the last key: " + (*queries)[axis].str() + " of them behind a past, and " +
                        (*keys)[axis].str() + " new keys");
    return check_mask(node, (*keys)[axis]);
  }

  /// The operator masks keys that a mask has no column for: where it has fewer than the grown cache, as where it has fewer
  /// than the buffer. A column for all keys would be another thing.
  Matched<void> check_mask(const Node& node, const Dim& rows) {
    const Value* mask = node.input(3);
    if (!mask) return {};
    const MaybeShape shape = facts_.shape(*mask);
    if (!shape || shape->empty()) return missed("cache.mask", &node, "the rank of '" + mask->name + "' is not known");
    const Dim& keys = shape->back();
    if (keys.is_constant() && keys != Dim::symbol(plan_.past) + rows)
      return missed("cache.mask", &node,
                    "'" + mask->name + "' has " + keys.str() + " columns for " + plan_.past + " + " + rows.str() + " keys");
    const DataType type = facts_.type(*mask);
    if (type == onnx::TensorProto::BOOL || is_floating(type)) return {};
    return missed("cache.mask", &node, "'" + mask->name + "' is of " + type_name(type));
  }

  /// Nothing else of the model grows with the past and is fed back.
  Matched<void> check_left() const {
    for (const Value* input : view_.main().inputs()) {
      const auto is_it = [input](const CacheSite& site) {
        return std::ranges::find(site.caches, input, &GrowingCache::past) != site.caches.end();
      };
      if (std::ranges::any_of(plan_.sites, is_it)) continue;
      const MaybeShape shape = facts_.shape(*input);
      const bool grows =
          shape && shape->size() >= kLeastRank && std::ranges::find(*shape, Dim::symbol(plan_.past)) != shape->end();
      if (!grows) continue;
      const Node* reader = input->uses.empty() ? nullptr : input->uses.front().node;
      return missed("cache.left", reader, "'" + input->name + "' grows with them, and no Attention takes it");
    }
    return {};
  }

  ModelGraph& view_;
  Facts& facts_;
  std::unordered_set<std::string> initializers_;  ///< of the model: an input among them has a default
  CachePlan plan_;
};

}  // namespace

const PastInputs* past_inputs_of(const Node& node) {
  static constexpr PastInputs kAttention{4, false}, kGroupQuery{3, true};
  if (node.is("Attention")) return &kAttention;
  const bool is_group_query = node.op() == "GroupQueryAttention" && node.domain() == "com.microsoft";
  return is_group_query ? &kGroupQuery : nullptr;
}

Matched<CachePlan> plan_static_caches(ModelGraph& view, Facts& facts) { return CachePlanner(view, facts).plan(); }

}  // namespace attn_opt
