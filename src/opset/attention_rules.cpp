#include <algorithm>

#include "attn_opt/edit.h"
#include "src/opset/step_rules.h"

namespace attn_opt {
namespace {

using Obstacle = std::optional<std::string>;

constexpr int kKey = 1, kMask = 3, kPastKey = 4;

/// The number of keys, those of the past included; null if it is not known.
std::optional<Dim> key_count(const RaiseSite& site) {
  Dim count;
  for (const int input : {kKey, kPastKey}) {
    if (site.node().input(input) == nullptr) continue;
    const MaybeShape shape = site.shape(input);
    if (!shape || shape->size() < 3) return std::nullopt;
    count = count + (*shape)[shape->size() - 2];
  }
  return count;
}

/// A mask for fewer keys than there are was broadcast, which takes a last axis of 1; since 24 it is padded
/// with -inf. A mask that may be of that kind is expanded.
Obstacle raise_attention_24(Draft& draft, const RaiseSite& site) {
  if (!draft.has_input(kMask)) return {};
  const MaybeShape mask = site.shape(kMask);
  const auto keys = key_count(site);
  if (mask && !mask->empty()) {
    const Dim& last = mask->back();
    if ((last.is_constant() && !last.is(1)) || (keys && last == *keys)) return {};
  }
  const Draft::Attributes axis_of_keys{GraphBuilder::attribute("start", int64_t{-2}),
                                       GraphBuilder::attribute("end", int64_t{-1})};
  std::string count = draft.add("Shape", {draft.node().input(kKey)}, axis_of_keys);
  if (draft.has_input(kPastKey)) {
    count = draft.add("Add", {count, draft.add("Shape", {draft.node().input(kPastKey)}, axis_of_keys)});
  }
  draft.set_input(kMask, draft.add("Expand", {draft.node().input(kMask), count}));
  return {};
}

/// True if the mask adds numbers, of which some may be the lowest of its type.
bool may_empty_rows(const Draft& draft, const RaiseSite& site) {
  if (!draft.has_input(kMask) || site.type(kMask) == onnx::TensorProto::BOOL) return false;
  const Tensor* mask = site.constant(kMask);
  if (!mask) return true;
  const auto numbers = mask->cast(onnx::TensorProto::DOUBLE);
  return !numbers ||
         std::ranges::any_of(numbers->data<double>(), [&](double number) { return number <= lowest_finite(site.type(kMask)); });
}

/// Head counts may be said only of inputs of rank 3, and before 25 it was not defined what they did to
/// others.
Obstacle raise_attention_25(Draft& draft, const RaiseSite& site) {
  if (!site.rows_keep_a_key() && may_empty_rows(draft, site))
    return "a row of its mask may be the lowest number alone, which ONNX Runtime takes for -inf before opset 25";
  const bool says_heads = draft.attribute("q_num_heads") != nullptr || draft.attribute("kv_num_heads") != nullptr;
  const MaybeShape query = site.shape(0);
  if (!says_heads || (query && query->size() == 3)) return {};
  return "it gives numbers of heads for inputs that are not of rank 3";
}

}  // namespace

void add_attention_rules(StepRules& rules) {
  rules[{"Attention", 24}] = raise_attention_24;
  rules[{"Attention", 25}] = raise_attention_25;
}

}  // namespace attn_opt
