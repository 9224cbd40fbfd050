#include "src/report/effect_total.h"

namespace attn_opt {
namespace {

constexpr int64_t kExampleBatch = 1, kExampleSize = 1024;

void enter_symbols(const Dim& dim, int64_t size, std::map<std::string, int64_t>& sizes) {
  for (const AtomRef& atom : dim.atoms())
    if (atom->kind == Atom::Kind::kSymbol) sizes.emplace(atom->name, size);
}

}  // namespace

std::optional<int64_t> example_bytes(const Dim& score_bytes, const std::map<std::string, int64_t>& sizes) {
  return score_bytes.evaluate([&](const Atom& atom) -> std::optional<int64_t> {
    const auto known = sizes.find(atom.name);
    return known == sizes.end() ? std::nullopt : std::optional(known->second);
  });
}

EffectTotal total_effect(const Report& report) {
  EffectTotal total;
  for (const SiteReport& site : report.sites)
    if (site.effect) enter_symbols(site.effect->batch, kExampleBatch, total.sizes);
  total.example_score_bytes = 0;
  for (const SiteReport& site : report.sites) {
    if (!site.effect) continue;
    const Effect& effect = *site.effect;
    enter_symbols(effect.score_bytes, kExampleSize, total.sizes);
    total.score_bytes = total.score_bytes + effect.score_bytes;
    total.nodes_removed += effect.nodes_removed;
    total.nodes_added += effect.nodes_added;
    const auto bytes = example_bytes(effect.score_bytes, total.sizes);
    int64_t sum = 0;
    if (!bytes || !total.example_score_bytes || __builtin_add_overflow(*total.example_score_bytes, *bytes, &sum))
      total.example_score_bytes.reset();
    else
      total.example_score_bytes = sum;
  }
  return total;
}

}  // namespace attn_opt
