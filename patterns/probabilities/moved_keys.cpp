#include "patterns/probabilities/moved_keys.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/cut_columns.h"
#include "patterns/products/product_letters.h"
#include "src/match/node_forms.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr size_t kMostCopies = 8;

/// What the axis of W that KEYS lie along holds for the probabilities that MOVE moves, MOVE being a node that alone reads them.
class KeyMove {
 public:
  KeyMove(const Node& move, Value& probabilities, size_t keys, MatchContext& context)
      : move_(move), probabilities_(probabilities), keys_(keys), facts_(context.facts) {}

  /// VALUES, which have moved keys along AXIS, with those of the probabilities; null if that is not known.
  Value* undone(Value& values, size_t axis, InnerValues& inner) const {
    const MaybeShape shape = facts_.shape(probabilities_);
    if (!shape || shape->size() <= keys_) return nullptr;
    const auto along = static_cast<int64_t>(axis);
    if (move_.is("Pad")) return before_pad(values, along, inner);
    if (axis_in(move_.int_attribute("axis", 0), shape->size()) != shape->size() - 1 - keys_) return nullptr;
    if (move_.is("Gather")) return ungathered(values, along, inner);
    const Dim& count = from_last(*shape, keys_);
    return count.is_constant() ? added_up(values, along, count.value(), inner) : nullptr;
  }

 private:
  /// Of values that were padded, too: 0 times others need not be 0.
  Value* before_pad(Value& values, int64_t axis, InnerValues& inner) const {
    const auto added = padded_zeros(move_, keys_, facts_);
    if (!added) return nullptr;
    const int64_t end = added->behind == 0 ? std::numeric_limits<int64_t>::max() : -added->behind;
    Value* rest = inner.slice(&values, inner.build().ints({added->in_front}), inner.build().ints({end}), axis);
    Value& unpadded = canonical(*rest, facts_);
    return &unpadded == rest ? nullptr : &unpadded;
  }

  /// Each key is at one place.
  Value* ungathered(Value& values, int64_t axis, InnerValues& inner) const {
    const auto order = gathered_order(move_, facts_);
    if (!order) return nullptr;
    std::vector<int64_t> back(order->places.size());
    for (size_t place = 0; place < back.size(); ++place)
      back[static_cast<size_t>(order->places[place])] = static_cast<int64_t>(place);
    return inner.build().node("Gather", {&values, inner.build().ints(back)}, {GraphBuilder::attribute("axis", axis)});
  }

  /// All parts are the probabilities.
  Value* added_up(Value& values, int64_t axis, int64_t count, InnerValues& inner) const {
    Value& whole = canonical(probabilities_, facts_);
    const auto is_copy = [&](Value* part) { return part && &canonical(*part, facts_) == &whole; };
    if (move_.inputs.size() > kMostCopies || !std::ranges::all_of(move_.inputs, is_copy)) return nullptr;
    std::vector<Value*> parts;
    for (int64_t part = 0; part < std::ssize(move_.inputs); ++part) {
      Value *begin = inner.build().ints({part * count}), *end = inner.build().ints({(part + 1) * count});
      parts.push_back(&canonical(*inner.slice(&values, begin, end, axis), facts_));
    }
    if (std::ranges::all_of(parts, [&](const Value* part) { return part == parts[0]; }))
      return inner.scaled(parts[0], static_cast<double>(parts.size()));
    return std::accumulate(parts.begin() + 1, parts.end(), parts[0], [&](Value* a, Value* b) { return inner.sum(a, b); });
  }

  const Node& move_;
  Value& probabilities_;
  size_t keys_;
  Facts& facts_;
};

/// The only node of READERS that may move keys; null if there is none.
Node* only_move(const Readers& readers, const Value& probabilities) {
  Node* node = readers.is_output || readers.all.empty() ? nullptr : readers.all[0].node;
  const bool may_move = node && node->domain().empty() && node->graph == probabilities.graph &&
                        (node->is("Pad") || node->is("Gather") || node->is("Concat"));
  const auto is_its = [node](const Reader& reader) { return reader.node == node && (reader.input == 0 || node->is("Concat")); };
  return may_move && std::ranges::all_of(readers.all, is_its) ? node : nullptr;
}

/// The product that alone reads moved probabilities, or what Transposes make of those.
struct MovedProduct {
  Node* node = nullptr;
  Value* moved = nullptr;     ///< its operand
  std::vector<int64_t> axes;  ///< of the moved probabilities, in the order in which it has them
};

/// What Transposes make VALUE, which has TERM, of, and the letters of its axes.
std::pair<Value*, std::string> before_transposes(Value& value, const std::string& term, Facts& facts) {
  const Untransposed source = untransposed(value, facts);
  std::string letters(term.size(), kUnitAxis);
  if (source.at.size() != term.size() || !facts.shape(*source.value).has_rank(term.size())) return {&value, term};
  for (size_t i = 0; i < term.size(); ++i) {
    if (source.at[i] == kNoAxis) return {&value, term};
    letters[static_cast<size_t>(source.at[i])] = term[i];
  }
  return {source.value, letters};
}

std::optional<MovedProduct> product_of(Value& moved, Facts& facts) {
  const MaybeShape shape = facts.shape(moved);
  MovedProduct product{nullptr, &moved, std::vector<int64_t>(shape ? shape->size() : 0)};
  std::iota(product.axes.begin(), product.axes.end(), int64_t{0});
  for (int step = 0; step <= kMaxTogether && shape; ++step) {
    const Readers readers = readers_of(*product.moved, facts);
    Node* node = readers.only_one() ? readers.all[0].node : nullptr;
    if (!node || node->graph != moved.graph) return std::nullopt;
    const std::vector<int64_t> perm = permutation(*node, product.axes.size());
    product.moved = perm.empty() ? readers.all[0].read : node->outputs[0];
    product.node = node;
    if (perm.empty()) return product;
    const std::vector<int64_t> before = product.axes;
    for (size_t i = 0; i < perm.size(); ++i) product.axes[i] = before[static_cast<size_t>(perm[i])];
  }
  return std::nullopt;
}

}  // namespace

std::optional<SegmentedProduct> product_of_moved_keys(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                                      MatchContext& context) {
  Facts& facts = context.facts;
  Node* move = only_move(readers, probabilities);
  const auto product = move ? product_of(*move->outputs[0], facts) : std::nullopt;
  const auto letters = product ? product_letters(*product->node, facts) : std::nullopt;
  const std::vector<Value*> operands = letters ? operands_of(*product->node, facts) : std::vector<Value*>();
  if (operands.size() != 2 || letters->operands.size() != 2) return std::nullopt;
  const size_t at = operands[0] == product->moved ? 0 : 1;
  const std::string& moved = letters->operands[at];
  const auto [values_moved, other] = before_transposes(*operands[1 - at], letters->operands[1 - at], facts);
  const size_t rank = product->axes.size();
  if (operands[at] != product->moved || moved.size() != rank || rank <= keys_from_last) return std::nullopt;
  std::string own(rank, kUnitAxis);
  for (size_t i = 0; i < rank; ++i) own[static_cast<size_t>(product->axes[i])] = moved[i];
  const char keys = own[rank - 1 - keys_from_last];
  const size_t axis = other.find(keys);
  if (axis == std::string::npos || has_letter(letters->result, keys) || has_letter(own + other + letters->result, kUnitAxis))
    return std::nullopt;
  InnerValues inner(*product->node, context);
  Value* values = KeyMove(*move, probabilities, keys_from_last, context).undone(*values_moved, axis, inner);
  const auto factor = values ? factor_of_sum(*product->node, facts) : std::nullopt;
  if (!factor) return std::nullopt;
  const std::string equation = own + "," + other + "->" + letters->result;
  Value* made = inner.build().node("Einsum", {&probabilities, inner.scaled(&canonical(*values, facts), *factor)},
                                   {GraphBuilder::attribute("equation", equation)});
  const double copies = move->is("Concat") ? static_cast<double>(move->inputs.size()) : 1;
  return SegmentedProduct{made->producer, product->node->outputs[0], false, move->is("Pad"),
                          std::max(1.0, copies * std::abs(*factor))};
}

}  // namespace attn_opt
