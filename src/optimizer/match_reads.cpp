#include "src/optimizer/match_reads.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace attn_opt {
namespace {

std::vector<const Value*> reads_of(const Match& match) {
  const Sdpa& sdpa = match.sdpa;
  std::vector<const Value*> reads = {sdpa.nonpad_kv_seqlen};
  const auto add_view = [&](const OperandView& view) { reads.insert(reads.end(), {view.value, view.past}); };
  for (const Operand* operand : {&sdpa.q, &sdpa.k, &sdpa.v}) std::ranges::for_each(operand->views, add_view);
  for (const OperandCopy& copy : sdpa.copies) add_view(copy.of);
  for (const TensorScale& scale : sdpa.tensor_scales) reads.push_back(scale.value);
  for (const ScoreTerm& term : sdpa.terms) reads.push_back(term.value);
  for (const OutputStep& step : sdpa.output_steps) reads.insert(reads.end(), step.operands.begin(), step.operands.end());
  for (const Edit::Takeover& copy : match.copies) reads.push_back(copy.made);
  return reads;
}

}  // namespace

bool reads_what_is_gone(const Match& match) {
  std::vector<const Value*> pending = reads_of(match);
  std::unordered_set<const Value*> seen;
  while (!pending.empty()) {
    const Value* value = pending.back();
    pending.pop_back();
    if (!value || !seen.insert(value).second) continue;
    if (value->removed) return true;
    if (value->producer && value->producer->placement == Placement::kUnplaced)
      pending.insert(pending.end(), value->producer->inputs.begin(), value->producer->inputs.end());
  }
  return false;
}

}  // namespace attn_opt
