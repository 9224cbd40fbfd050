#include "patterns/score_walk.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "patterns/products.h"

namespace attn_opt {
namespace {

// Bounds the ways tried for one softmax: an Add of two Adds of two Adds ... can be read in exponentially many.
constexpr int kMaxPeels = 512;

class Walker {
 public:
  explicit Walker(MatchContext& context) : context_(context) {}

  Matched<ScoreWalk> walk(ScoreWalk walk) {
    for (;;) {
      walk.value = &canonical(*walk.value, context_.facts);
      Node* node = walk.value->producer;
      if (!node) return missed("scores.input", nullptr, "'" + walk.value->name + "' is not computed", walk.peeled);
      if (is_product(*node)) return walk;
      const auto& peels = score_peels();
      const auto row = std::find_if(peels.begin(), peels.end(), [&](const ScorePeel& peel) { return node->is(peel.op); });
      if (row == peels.end()) return missed("scores.operator", node, node->op(), walk.peeled);
      if (++peels_ > kMaxPeels) return missed("scores.too-many-ways", node, "gave up", walk.peeled);
      ATTN_OPT_MATCH(auto ways, row->peel(*node, walk, context_));
      if (ways.size() > 1) return first_of(ways);
      walk = std::move(ways.front());
    }
  }

 private:
  Matched<ScoreWalk> first_of(const std::vector<ScoreWalk>& ways) {
    Miss miss;
    for (const ScoreWalk& way : ways) {
      auto found = walk(way);
      if (found) return found;
      miss = miss.id.empty() ? found.error() : deeper(miss, found.error());
    }
    return tl::unexpected<Miss>(miss);
  }

  MatchContext& context_;
  int peels_ = 0;
};

}  // namespace

Matched<ScoreWalk> walk_scores(Value& softmax_input, MatchContext& context) {
  ScoreWalk start;
  start.value = &softmax_input;
  return Walker(context).walk(start);
}

}  // namespace attn_opt
