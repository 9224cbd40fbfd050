#include "patterns/probabilities/branches.h"

#include <algorithm>
#include <utility>

#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/probabilities/summed_values.h"
#include "patterns/products/products.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

/// Readers looked at behind one of probabilities.
constexpr size_t kMostReaders = 16;

/// True for what probabilities pass on a branch: element by element, moves, and sums of rows.
bool may_be_on_branch(const Node& node) {
  return node.domain().empty() && (has(node, Trait::kElementwise) || has(node, Trait::kKeepsAll) || has(node, Trait::kReduces));
}

/// True if something changes the probabilities on WAY.
bool has_steps(const Way& way) { return way.first.node != way.product.node && !is_on_the_way(*way.first.node); }

bool leads_to(const std::vector<Way>& ways, const Node& product) {
  return std::ranges::any_of(ways, [&](const Way& way) { return way.product.node == &product; });
}

}  // namespace

bool is_on_the_way(const Node& node) {
  static constexpr OperatorSet kOperators = {"Cast",    "CastLike", "Identity",  "Dropout",   "Reshape",
                                             "Flatten", "Squeeze",  "Unsqueeze", "Transpose", "Concat"};
  return kOperators.has(node);
}

std::optional<Reader> WayReader::product_at_end(const Reader& first, const Readers& readers) const {
  if (multiplies(*first.node, *first.read, facts_)) return first;
  const Node* next = readers.all.size() > 1 ? first.node : nullptr;
  for (int step = 0; next && next->is("Transpose") && step < kMaxTogether; ++step) {
    const Readers further = summed_readers_of(*next->outputs[0]);
    next = further.only_one() ? further.all[0].node : nullptr;
    if (next && keys_in(*further.all[0].read) && multiplies(*next, *further.all[0].read, facts_)) return further.all[0];
  }
  return std::nullopt;
}

/// How many axes lie behind the keys of MADE, which is the probabilities or those with their axes moved.
std::optional<size_t> WayReader::keys_in(Value& made) const {
  return keys_ ? axis_in_moved(value_, *keys_, made, facts_) : std::nullopt;
}

/// Who reads MADE: what adds up its products with V, where these are elementwise, in the place of the Muls.
Readers WayReader::summed_readers_of(Value& made) const {
  Readers readers = readers_of(made, facts_);
  if (const auto keys = keys_in(made)) take_sums(readers, *keys, facts_);
  return readers;
}

void WayReader::keep_readable(std::vector<Way>& ways) const {
  std::ranges::stable_sort(ways, {}, [](const Way& way) { return way.product.node->position; });
  // Not std::ranges::unique: Clang below 16 does not compile what it returns.
  const auto same_product = [](const Way& one, const Way& other) { return one.product.node == other.product.node; };
  ways.erase(std::unique(ways.begin(), ways.end(), same_product), ways.end());  // NOLINT(modernize-use-ranges)
  const Way first = ways[0];
  std::erase_if(ways, [this](const Way& way) { return !sums_over_keys(way); });
  if (ways.empty()) ways.push_back(first);
}

bool WayReader::sums_over_keys(const Way& way) const {
  const auto read = value_product(*way.product.node, *way.product.read, context_);
  if (!read) return false;
  const ScoreLayout& layout = read->probabilities;
  if (!layout.order.empty() && !layout.swaps_last_two()) return true;
  const size_t summed = layout.order.empty() ? 0 : 1;
  if (!has_steps(way)) return !has_kept_axes_ || keys_in(*way.product.read) == summed;
  const MaybeShape before = facts_.shape(value_), after = facts_.shape(*way.product.read);
  if (!keys_ || *keys_ > 1 || !before || before->size() < 2 || !after) return false;
  Shape lying = *before;
  if (*keys_ != summed) std::swap(lying[lying.size() - 2], lying.back());
  return lying == *after;
}

/// The only product that all ends in which is made of what FIRST makes; nullopt if there are several, or if anything else comes
/// of it.
std::optional<Reader> WayReader::product_behind(const Reader& first) const {
  std::optional<Reader> product;
  std::vector<Reader> pending{first};
  for (size_t i = 0; i < pending.size(); ++i) {
    const Reader next = pending[i];
    if (!next.node || i == kMostReaders || next.node->graph != value_.graph) return std::nullopt;
    if (multiplies(*next.node, *next.read, facts_)) {
      if (product && product->node != next.node) return std::nullopt;
      product = next;
      continue;
    }
    if (!may_be_on_branch(*next.node) || next.node->outputs.size() != 1) return std::nullopt;
    const Readers further = summed_readers_of(*next.node->outputs[0]);
    if (further.is_output || further.all.empty()) return std::nullopt;
    for (const Reader& behind : further.all)
      if (std::ranges::find(pending, behind.node, &Reader::node) == pending.end()) pending.push_back(behind);
  }
  return product;
}

Branches WayReader::branches(const Readers& readers, bool by_moves) const {
  std::vector<Way> all;
  for (const Reader& reader : readers.all)
    if (const auto product = product_behind(reader)) all.push_back({reader, *product});
  const auto is_behind = [&](const Way& way) { return by_moves ? !product_at_end(way.first, readers) : has_steps(way); };
  if (std::ranges::none_of(all, is_behind)) return {};
  Branches found{all, readers.is_output || all.size() < readers.all.size()};
  keep_readable(found.ways);
  if (found.ways.size() < 2) return {};
  found.others_read |= !std::ranges::all_of(all, [&](const Way& way) { return leads_to(found.ways, *way.product.node); });
  return found;
}

bool WayReader::keep_leading(std::vector<Reader>& candidates) const {
  if (candidates.size() == 1) return true;
  const auto leads = [this](const Reader& reader) { return product_behind(reader).has_value(); };
  const auto only = std::ranges::find_if(candidates, leads);
  if (only == candidates.end() || std::any_of(only + 1, candidates.end(), leads)) return false;
  candidates = {*only};
  return true;
}

void WayReader::keep_branch(Readers& readers, const Node& product) const {
  readers.is_output = false;
  std::erase_if(readers.all, [&](const Reader& reader) {
    const auto behind = product_behind(reader);
    return !behind || behind->node != &product;
  });
}

}  // namespace attn_opt
