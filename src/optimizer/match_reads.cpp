#include "src/optimizer/match_reads.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

namespace attn_opt {
namespace {

/// True if one of READS, or what a node reads that serves them and is in no list yet, is made by no node any more.
bool any_gone(std::vector<const Value*> reads) {
  std::unordered_set<const Node*> seen;
  while (!reads.empty()) {
    const Value* value = reads.back();
    reads.pop_back();
    if (!value) continue;
    if (value->removed) return true;
    const Node* maker = value->producer;
    if (maker && maker->placement == Placement::kUnplaced && seen.insert(maker).second)
      reads.insert(reads.end(), maker->inputs.begin(), maker->inputs.end());
  }
  return false;
}

/// False of nearly all: no more has to be looked at.
bool may_be_gone(const Value* value) {
  return value && (value->removed || (value->producer && value->producer->placement == Placement::kUnplaced));
}

bool is_gone(const OperandView& view) {
  return (may_be_gone(view.value) || may_be_gone(view.past)) && any_gone({view.value, view.past});
}

/// Any view of an operand is the operand: what layout made of keys may go with the site that it was for.
bool is_gone_operand(const Operand* operand) { return !operand->views.empty() && std::ranges::all_of(operand->views, is_gone); }

}  // namespace

bool reads_what_is_gone(const Match& match) {
  const Sdpa& sdpa = match.sdpa;
  std::vector<const Value*> reads = {sdpa.nonpad_kv_seqlen};
  for (const TensorScale& scale : sdpa.tensor_scales) reads.push_back(scale.value);
  for (const ScoreTerm& term : sdpa.terms) reads.push_back(term.value);
  for (const OutputStep& step : sdpa.output_steps) reads.insert(reads.end(), step.operands.begin(), step.operands.end());
  for (const Edit::Takeover& copy : match.copies) reads.push_back(copy.made);
  // What joins parts of Y may join what edits have written for these.
  const auto is_written = [](const Value* input) {
    return input && input->producer && input->producer->placement == Placement::kAdded;
  };
  return std::ranges::any_of(match.insert_before->inputs, is_written) ||
         std::ranges::any_of(std::array{&sdpa.q, &sdpa.k, &sdpa.v}, is_gone_operand) ||
         std::ranges::any_of(sdpa.copies, [](const OperandCopy& copy) { return is_gone(copy.of); }) ||
         any_gone(std::move(reads));
}

}  // namespace attn_opt
