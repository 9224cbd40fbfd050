// Attention operators of com.microsoft that Attention does not express: each is a miss of its own, so that a report says why.
#include <algorithm>
#include <array>

#include "attn_opt/pattern.h"

namespace attn_opt {
namespace {

struct Unwritten {
  std::string_view op, id, why;
};

constexpr std::array kUnwritten{
    Unwritten{"DecoderAttention", "contrib.decoder-attention", "whether its caches are static is an input"},
    Unwritten{"DecoderMaskedMultiHeadAttention", "contrib.decoder-masked", "its cache is one buffer, written in place"},
    Unwritten{"DecoderMaskedSelfAttention", "contrib.decoder-masked", "its cache is one buffer, written in place"},
    Unwritten{"DynamicSparseAttention", "contrib.sparse", "each query has keys of its own"},
    Unwritten{"LongformerAttention", "contrib.sparse", "each query has keys of its own"},
    Unwritten{"PackedAttention", "contrib.packed", "padding is removed, so that rows of a batch lie one behind the other"},
    Unwritten{"PackedMultiHeadAttention", "contrib.packed",
              "padding is removed, so that rows of a batch lie one behind the other"},
    Unwritten{"PagedAttention", "contrib.paged", "its cache lies in pages"},
    Unwritten{"QOrderedAttention", "contrib.quantized", "its operands are quantized"},
    Unwritten{"SparseAttention", "contrib.sparse", "each query has keys of its own"},
    Unwritten{"SparsePagedAttention", "contrib.paged", "its cache lies in pages"},
};

const Unwritten* find(const Node& node) {
  if (node.domain() != "com.microsoft") return nullptr;
  const auto found = std::ranges::find(kUnwritten, node.op(), &Unwritten::op);
  return found == kUnwritten.end() ? nullptr : &*found;
}

class ContribUnwritten : public Pattern {
 public:
  std::string_view name() const override { return "contrib_unwritten"; }
  std::string_view summary() const override { return "other attention of com.microsoft: reported, never fused"; }
  bool is_anchor(const Node& node) const override { return find(node) != nullptr; }
  Matched<Match> match(Node& node, MatchContext&) const override {
    const Unwritten& known = *find(node);
    return missed(std::string(known.id), &node, std::string(known.why));
  }
};

}  // namespace

ATTN_OPT_REGISTER_PATTERN(ContribUnwritten)

}  // namespace attn_opt
