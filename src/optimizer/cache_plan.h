// Which of a model's caches can be buffers of a fixed length, and what of the model reads them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/miss.h"

namespace attn_opt {

/// A past (B, Hkv, P, D), an input of the model, and the present (B, Hkv, P + S, D), its output.
struct GrowingCache {
  Value* past = nullptr;
  Value* present = nullptr;
};

/// An operator that puts new keys and values behind a cache.
struct CacheSite {
  Node* node = nullptr;
  Value* keys = nullptr;               ///< the new ones: (B, Hkv, S, D) or (B, S, Hkv*D)
  bool takes_buffers = false;          ///< the operator itself does: GroupQueryAttention
  std::array<GrowingCache, 2> caches;  ///< of keys, of values
};

/// All caches of a model: they grow together, and become buffers together.
struct CachePlan {
  std::vector<CacheSite> sites;  ///< in the order of the file
  std::string past;              ///< the symbol of the pasts' length
  std::string queries;           ///< that of the new keys' number; empty if it is none
};

/// How the operator takes a past; none for what takes none that can be a buffer.
struct PastInputs {
  size_t key = 0;  ///< number of the input past_key; past_value is the next
  bool takes_buffers = false;
};
const PastInputs* past_inputs_of(const Node& node);

/// The axis of the rows of VALUE, (B, H, S, D) or (B, S, H*D), of RANK.
constexpr int64_t row_axis(size_t rank) { return rank == 4 ? 2 : 1; }

/// Misses: "cache.*", of what keeps the caches growing.
Matched<CachePlan> plan_static_caches(ModelGraph& view, Facts& facts);

}  // namespace attn_opt
