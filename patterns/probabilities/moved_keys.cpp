#include "patterns/probabilities/moved_keys.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
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
    if (move_.is("Pad")) return unpadded(values, along, inner);
    if (axis_in(move_.int_attribute("axis", 0), shape->size()) != shape->size() - 1 - keys_) return nullptr;
    if (move_.is("Gather")) return ungathered(values, along, inner);
    const Dim& count = from_last(*shape, keys_);
    return count.is_constant() ? added_up(values, along, count.value(), inner) : nullptr;
  }

 private:
  Value* unpadded(Value& values, int64_t axis, InnerValues& inner) const {
    const bool adds_zeros = move_.string_attribute("mode", "constant") == "constant" &&
                            (!move_.input(2) || facts_.uniform(*move_.inputs[2]) == 0.0);
    const auto added = adds_zeros ? padded_columns(move_, keys_, facts_) : std::nullopt;
    if (!added || added->is_none() || added->in_front < 0 || added->behind < 0) return nullptr;
    const int64_t end = added->behind == 0 ? std::numeric_limits<int64_t>::max() : -added->behind;
    return inner.slice(&values, inner.build().ints({added->in_front}), inner.build().ints({end}), axis);
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

}  // namespace

std::optional<SegmentedProduct> product_of_moved_keys(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                                      MatchContext& context) {
  Facts& facts = context.facts;
  Node* move = only_move(readers, probabilities);
  if (!move) return std::nullopt;
  const Readers further = readers_of(*move->outputs[0], facts);
  Node* product = further.only_one() ? further.all[0].node : nullptr;
  const auto letters = product && product->graph == probabilities.graph ? product_letters(*product, facts) : std::nullopt;
  const std::vector<Value*> operands = letters ? operands_of(*product, facts) : std::vector<Value*>();
  if (operands.size() != 2 || letters->operands.size() != 2) return std::nullopt;
  const size_t at = operands[0] == further.all[0].read ? 0 : 1;
  const std::string &moved = letters->operands[at], &other = letters->operands[1 - at];
  if (operands[at] != further.all[0].read || moved.size() <= keys_from_last) return std::nullopt;
  const char keys = moved[moved.size() - 1 - keys_from_last];
  const size_t axis = other.find(keys);
  if (keys == kUnitAxis || axis == std::string::npos || has_letter(letters->result, keys)) return std::nullopt;
  InnerValues inner(*product, context);
  Value* values = KeyMove(*move, probabilities, keys_from_last, context).undone(*operands[1 - at], axis, inner);
  Value* made = values ? product_with(*product, *operands[at], &probabilities, inner, facts) : nullptr;
  if (made) made = product_with(*made->producer, *operands[1 - at], &canonical(*values, facts), inner, facts);
  return made ? std::optional(SegmentedProduct{made->producer, product->outputs[0], false}) : std::nullopt;
}

}  // namespace attn_opt
