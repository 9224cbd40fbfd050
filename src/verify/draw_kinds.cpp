#include <algorithm>
#include <array>

#include "src/verify/draws.h"

namespace attn_opt {
namespace {

constexpr std::array<std::string_view, 7> kHiding = {"Where", "IsNaN", "Max", "Min", "Clip", "ScatterND", "ScatterElements"};

bool can_mask(const SiteInput& input, const Sdpa& sdpa) {
  if (input.source != SiteInput::Source::kDrawn) return false;
  if (is_given_mask(input, sdpa)) return true;
  const InputRole role = role_of(input, sdpa);
  return role == InputRole::kBias || role == InputRole::kKeep || role == InputRole::kDrop || role == InputRole::kLength ||
         !is_floating(input.type);
}

/// Operators that can give the same for a score whatever it is.
bool hides_scores(const Node& node) {
  return std::ranges::any_of(kHiding, [&](std::string_view op) { return node.is(op); });
}

}  // namespace

std::string_view name_of(DrawKind kind) {
  switch (kind) {
    case DrawKind::kRandom: return "random";
    case DrawKind::kAllKept: return "all kept";
    case DrawKind::kMixed: return "mixed fills";
    case DrawKind::kEmptyRow: return "one row empty";
    case DrawKind::kLowestRow: return "one row lowest";
    case DrawKind::kCausal: return "causal";
    case DrawKind::kFar: return "far biases";
    case DrawKind::kLarge: return "large scores";
    case DrawKind::kAllMasked: return "all masked, and no query is a number";
    case DrawKind::kNotFinite: return "a query that is no number";
    case DrawKind::kWide: return "rows of all sizes";
    case DrawKind::kNoNumbers: return "NaN and infinities";
    case DrawKind::kScattered: return "numbers of all sizes";
  }
  return "";
}

std::vector<DrawKind> draw_kinds(const CutSite& site, const Sdpa& sdpa) {
  const auto& before = site.before.nodes;
  if (!is_attention(sdpa)) {
    std::vector<DrawKind> kinds{DrawKind::kRandom, DrawKind::kWide, DrawKind::kScattered};
    const bool asks_for_nan =
        std::ranges::any_of(before, [](const Node* node) { return node->is("IsNaN") || node->is("IsInf"); });
    if (asks_for_nan) kinds.push_back(DrawKind::kNoNumbers);
    return kinds;
  }
  const bool has_mask = std::ranges::any_of(site.inputs, [&](const SiteInput& input) { return can_mask(input, sdpa); });
  std::vector<DrawKind> kinds{DrawKind::kRandom, DrawKind::kLarge};
  if (has_mask)
    kinds = {DrawKind::kRandom,    DrawKind::kAllKept, DrawKind::kMixed, DrawKind::kEmptyRow,
             DrawKind::kLowestRow, DrawKind::kCausal,  DrawKind::kLarge};
  const bool hides = std::ranges::any_of(before, [](const Node* node) { return hides_scores(*node); });
  if (hides) kinds.push_back(DrawKind::kNotFinite);
  if (std::ranges::any_of(site.inputs, [&](const SiteInput& input) { return role_of(input, sdpa) == InputRole::kBias; }))
    kinds.push_back(DrawKind::kFar);
  if (hides && has_mask) kinds.push_back(DrawKind::kAllMasked);
  return kinds;
}

}  // namespace attn_opt
