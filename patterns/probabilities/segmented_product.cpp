#include "patterns/probabilities/segmented_product.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/probabilities/added_parts.h"
#include "patterns/probabilities/part_moves.h"
#include "patterns/probabilities/part_ranges.h"
#include "patterns/probabilities/summed_values.h"
#include "patterns/products/joined_product.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// The product of a part, unplaced where that is multiplied in parts itself, and what the model makes.
struct PartMade {
  Node* product = nullptr;
  Value* made = nullptr;
};

/// A part's product: letters of the probabilities' axes and of the values', and those of what the model makes of all parts.
struct PartProduct {
  Value* values = nullptr;
  std::string of_values, of_whole = {};
  double times = 1;  ///< what the values are multiplied with
};

/// In the place of a letter: the axis that is cut, where a part of one element has none for it.
constexpr char kCutAxis = '#';

/// The letters of the source, of RANK axes, of MADE, which has those of TERM.
std::string letters_of_source(const Untransposed& made, const std::string& term, size_t rank) {
  std::string letters(rank, kCutAxis);
  for (size_t i = 0; i < term.size(); ++i)
    if (made.at[i] != kNoAxis) letters[static_cast<size_t>(made.at[i])] = term[i];
  return letters;
}

/// TERM with the letters that stand in FROM as those in TO at the same place.
std::string renamed(std::string term, const std::string& from, const std::string& to) {
  for (char& letter : term)
    if (const size_t at = from.find(letter); at != std::string::npos) letter = to[at];
  return term;
}

class SegmentReader {
 public:
  /// The parts are cut along AXIS, which the KEYS are or not; nullopt: each is all of the probabilities.
  SegmentReader(Value& probabilities, std::optional<size_t> axis, size_t keys, MatchContext& context)
      : probabilities_(probabilities),
        axis_(axis),
        keys_(keys),
        sums_(axis == keys),
        context_(context),
        facts_(context.facts) {}

  std::optional<SegmentedProduct> read(const Readers& readers) {
    std::vector<PartRange> parts = axis_ ? parts_of(readers) : std::vector<PartRange>();
    std::vector<PartMade> products = axis_ ? products_of(parts) : products_of_whole(readers);
    Value* made = products.empty() ? nullptr : sums_ ? sum_of(products) : side_by_side_of(products);
    if (!made) return std::nullopt;
    if (!axis_) parts.assign(products.size(), {&probabilities_});
    InnerValues inner(*made->producer, context_);
    PartProduct whole;
    double largest_factor = 1;
    for (size_t i = 0; i < parts.size(); ++i) {
      auto own = read_product(parts[i], *products[i].product, *find_addend(addends_, products[i]), inner);
      if (!own || !has_values_of(parts[i], *own)) return std::nullopt;
      largest_factor = std::max(largest_factor, std::abs(own->times));
      if (i == 0 && !take_cut_letter(*own)) return std::nullopt;
      if (i > 0 && !join(whole, *own, inner)) return std::nullopt;
      if (i == 0) whole = *std::move(own);
    }
    const std::string equation = own_letters() + "," + whole.of_values + "->" + whole.of_whole;
    Value* product =
        inner.build().node("Einsum", {&probabilities_, inner.scaled(&canonical(*whole.values, facts_), whole.times)},
                           {GraphBuilder::attribute("equation", equation)});
    return SegmentedProduct{product->producer, made, others_read_, false, largest_factor};
  }

 private:
  std::vector<PartRange> parts_of(const Readers& readers) {
    std::vector<PartRange> parts;
    for (const Reader& reader : readers.all) {
      const bool may_cut = reader.node && reader.node->graph == probabilities_.graph && reader.input == 0;
      const auto own = may_cut ? parts_by(*reader.node, *axis_, facts_) : std::vector<PartRange>();
      others_read_ |= own.empty();
      parts.insert(parts.end(), own.begin(), own.end());
    }
    return in_order(std::move(parts), facts_.shape(probabilities_).known()[*axis_]);
  }

  /// VALUE, or what is made of it by moves alone, each the only reader of the one before.
  Value& behind_moves(Value& value) {
    Value* made = &value;
    for (int step = 0; step < kMaxTogether; ++step) {
      const Readers readers = readers_of(*made, facts_);
      if (!readers.only_one() || !readers.all[0].node || !has(*readers.all[0].node, Trait::kKeepsAll)) break;
      made = readers.all[0].node->outputs[0];
    }
    return *made;
  }

  /// The only reader of VALUE, or of what moves make of it; null if there are others.
  Node* only_reader(Value& value) {
    const Readers readers = readers_of(behind_moves(value), facts_);
    Node* node = readers.only_one() ? readers.all[0].node : nullptr;
    return node && node->graph == value.graph ? node : nullptr;
  }

  /// Which axis of the probabilities each of those AT of PART is.
  std::vector<int64_t> axes_of(const PartRange& part, std::vector<int64_t> at) const {
    for (int64_t& axis : at)
      if (part.drops_axis && axis >= static_cast<int64_t>(*axis_)) ++axis;
    return at;
  }

  std::optional<PartMade> product_by(Node* node) {
    Node* sum = node && node->is("Mul") ? only_sum(*node, facts_) : nullptr;
    Node* product = sum ? sum : node;
    if (!product || !makes_product(*product, facts_) || operands_of(*product, facts_).size() != 2) return std::nullopt;
    return PartMade{product, product->outputs[0]};
  }

  /// What alone is made of PART by a product, perhaps itself in parts; nullopt if anything else is.
  std::optional<PartMade> product_of(const PartRange& part) {
    Value& moved = behind_moves(*part.part);
    if (auto product = product_by(only_reader(moved))) return product;
    const std::vector<int64_t> at = axes_of(part, before_moves(moved, facts_).at);
    const auto keys = std::ranges::find(at, static_cast<int64_t>(keys_));
    if (keys == at.end()) return std::nullopt;
    const auto inner = segmented_product(readers_of(moved, facts_), moved, static_cast<size_t>(at.end() - keys - 1), context_);
    return inner && !inner->others_read ? std::optional(PartMade{inner->product, inner->whole}) : std::nullopt;
  }

  std::vector<PartMade> products_of(const std::vector<PartRange>& parts) {
    std::vector<PartMade> products;
    for (const PartRange& part : parts) {
      const auto product = product_of(part);
      if (!product) return {};
      products.push_back(*product);
    }
    return products;
  }

  /// The products that READERS of all probabilities are; none if there are not several.
  std::vector<PartMade> products_of_whole(const Readers& readers) {
    std::vector<PartMade> products;
    for (const Reader& reader : readers.all) {
      const bool is_here = reader.node && reader.node->graph == probabilities_.graph;
      const bool moves = is_here && has(*reader.node, Trait::kKeepsAll);
      Node* node = moves ? only_reader(*reader.node->outputs[0]) : is_here ? reader.node : nullptr;
      const auto product = product_by(node);
      others_read_ |= !product;
      if (product) products.push_back(*product);
    }
    return products.size() > 1 ? products : std::vector<PartMade>();
  }

  /// What adds up what PRODUCTS make, and nothing else, the first that does as it is if one does; null if there is nothing.
  /// Leaves its addends.
  Value* sum_of(const std::vector<PartMade>& products) {
    std::vector<Value*> made{products.front().made};
    Value* found = nullptr;
    for (size_t i = 0; i < made.size() && i < kMaxTogether; ++i) {
      std::vector<Addend> addends = addends_within(*made[i], context_);
      const bool is_sum = addends.size() == products.size() && std::ranges::all_of(products, [&](const PartMade& product) {
                            return find_addend(addends, product) != addends.end();
                          });
      const bool is_plain = std::ranges::all_of(addends, [](const Addend& one) { return one.coefficient == 1; });
      if (is_sum && (!found || is_plain)) {
        found = made[i];
        addends_ = std::move(addends);
      }
      if (is_sum && is_plain) break;
      for (const Reader& reader : readers_of(*made[i], facts_).all)
        if (reader.node && reader.node->graph == probabilities_.graph && may_lead_to_sum(*reader.node))
          made.push_back(reader.node->outputs[0]);
    }
    return found;
  }

  /// The Concat of what PRODUCTS make, each perhaps moved, and of nothing else; null if there is none. Products of parts stand
  /// there in their order, those of all probabilities are put into its. Leaves what it joins.
  Value* side_by_side_of(std::vector<PartMade>& products) {
    const Node* concat = only_reader(*products.front().made);
    if (!concat || !concat->is("Concat") || concat->inputs.size() != products.size()) return nullptr;
    for (size_t i = 0; i < products.size(); ++i) {
      const Node* maker = before_moves(*concat->inputs[i], facts_).value->producer;
      const auto from = products.begin() + static_cast<std::ptrdiff_t>(i);
      const auto found =
          std::find_if(from, products.end(), [&](const PartMade& product) { return product.made->producer == maker; });
      if (found == products.end() || (axis_ && found != from)) return nullptr;
      std::iter_swap(from, found);
      addends_.push_back({concat->inputs[i], 1});
    }
    const MaybeShape shape = facts_.shape(*concat->outputs[0]);
    const auto place = shape ? axis_in(concat->int_attribute("axis", 0), shape->size()) : std::nullopt;
    place_ = place.value_or(0);
    return place ? concat->outputs[0] : nullptr;
  }

  /// Takes the letter along which the parts, of which FIRST is one, lie: that of the axis that is cut, and of all
  /// probabilities one of the values' own. False if it is another.
  bool take_cut_letter(const PartProduct& first) {
    const char letter = sums_ ? kCutAxis : first.of_whole[place_];
    cut_ = axis_ ? own_letters()[*axis_] : letter;
    if (axis_) return sums_ || letter == cut_;
    return !has_letter(own_letters(), cut_) && has_letter(first.of_values, cut_);
  }

  /// What of ADDENDS is made of PRODUCT by Transposes.
  std::vector<Addend>::const_iterator find_addend(const std::vector<Addend>& addends, const PartMade& product) const {
    return std::ranges::find_if(addends, [&](const Addend& addend) {
      return before_moves(*addend.value, facts_).value->producer == product.made->producer;
    });
  }

  /// The letters of all axes of the probabilities.
  std::string own_letters() const {
    std::string letters;
    for (size_t axis = 0; axis < facts_.shape(probabilities_).known().size(); ++axis) letters += static_cast<char>('a' + axis);
    return letters;
  }

  /// PRODUCT of PART with other values, of which ADDEND is added up; the probabilities' axes have their own letters, the others
  /// capital ones in the order of the sum's.
  std::optional<PartProduct> read_product(const PartRange& range, const Node& product, const Addend& addend,
                                          InnerValues& inner) {
    const auto letters = product_letters(product, facts_);
    const auto factor = factor_of_sum(product, facts_);
    if (!letters || !factor) return std::nullopt;
    const std::vector<Value*> operands = operands_of(product, facts_);
    const size_t at = before_moves(*operands[0], facts_).value == &canonical(*range.part, facts_) ? 0 : 1;
    Untransposed own = before_moves(*operands[at], facts_);
    const Untransposed added = before_moves(*addend.value, facts_);
    if (own.value != &canonical(*range.part, facts_) || before_moves(*operands[1 - at], facts_).value == own.value)
      return std::nullopt;
    own.at = axes_of(range, std::move(own.at));
    std::string from = letters_of_source(own, letters->operands[at], own_letters().size()), to = own_letters();
    std::string of_whole = letters_of_axes(added.at, letters->result, kCutAxis);
    const bool has_all = std::ranges::all_of(letters->result, [&](char letter) { return has_letter(of_whole, letter); });
    const auto lost = has_all ? lost_axes(range, from) : std::nullopt;
    if (!lost || !put_back(*lost, of_whole)) return std::nullopt;
    PartProduct read = values_in(*operands[1 - at], letters->operands[1 - at], *lost, inner);
    for (const char letter : of_whole)
      if (!has_letter(from, letter)) {
        if (!has_letter(read.of_values, letter)) return std::nullopt;
        from += letter;
        to += static_cast<char>('A' + (to.size() - own_letters().size()));
      }
    read.times = addend.coefficient * *factor;
    read.of_values = renamed(read.of_values, from, to);
    read.of_whole = renamed(of_whole, from, to);
    const bool has_units = has_letter(from + read.of_values, kUnitAxis);
    return has_units || (sums_ && !has_letter(read.of_values, own_letters()[*axis_])) ? std::nullopt : std::optional(read);
  }

  /// The axes of the probabilities that FROM, their letters in a part, lacks: that which is cut, and those of size 1, which get
  /// letters. Nullopt if it lacks others.
  std::optional<std::string> lost_axes(const PartRange& range, std::string& from) const {
    const Shape& shape = facts_.shape(probabilities_).known();
    // Of several axes of size 1 any may be told to be the one that is left out.
    for (size_t axis = 0; axis_ && !sums_ && range.count.is(1) && axis < from.size(); ++axis)
      if (from[axis] == kCutAxis && from[*axis_] != kCutAxis && shape[axis].is(1)) std::swap(from[axis], from[*axis_]);
    std::string lost;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      if (from[axis] != kCutAxis) continue;
      const bool is_cut = axis_ == axis && !sums_;
      if (!is_cut && !shape[axis].is(1)) return std::nullopt;
      if (!is_cut) from[axis] = static_cast<char>('0' + axis);
      lost += from[axis];
    }
    return lost;
  }

  /// Gives axes of size 1 in OF_WHOLE, the letters of what is joined or added up, those of LOST; false if they are not as many.
  bool put_back(std::string lost, std::string& of_whole) const {
    const bool lacks_cut = has_letter(lost, kCutAxis);
    if (lacks_cut && of_whole[place_] != kCutAxis) return false;
    std::erase(lost, kCutAxis);
    size_t next = 0;
    for (size_t place = 0; place < of_whole.size(); ++place) {
      if (of_whole[place] != kCutAxis || (lacks_cut && place == place_)) continue;
      if (next == lost.size()) return false;
      of_whole[place] = lost[next++];
    }
    return next == lost.size();
  }

  /// VALUES of TERM, with the axes that the probabilities LOST: which they lost, too, or if that is the one that is cut, of
  /// size 1.
  PartProduct values_in(Value& values, const std::string& term, const std::string& lost, InnerValues& inner) {
    const Untransposed whole = before_moves(values, facts_), turned = untransposed(values, facts_);
    PartProduct read{whole.value, letters_of_source(whole, term, facts_.shape(*whole.value).known().size())};
    const auto lacking = static_cast<size_t>(std::ranges::count(read.of_values, kCutAxis));
    const auto taken = lacking < lost.size() ? taken_range(*whole.value, facts_) : std::nullopt;
    const bool is_taken = taken && taken->drops_axis && taken->first.is_constant();
    if (is_taken) {
      const int64_t first = taken->first.value();
      Value *begin = inner.build().ints({first}), *end = inner.build().ints({first + 1});
      read.values = inner.slice(taken->source, begin, end, static_cast<int64_t>(taken->axis));
      read.of_values.insert(taken->axis, 1, kCutAxis);
    }
    if (lacking + (is_taken ? 1 : 0) == lost.size()) {
      size_t next = 0;
      for (char& letter : read.of_values)
        if (letter == kCutAxis) letter = lost[next++];
      return read;
    }
    const std::string own = letters_of_source(turned, term, term.size());
    if (!has_letter(lost, kCutAxis)) return {turned.value, own};
    return {inner.unsqueezed(turned.value, {0}), kCutAxis + own};
  }

  /// True unless the values of OWN are shared by what PART has several of, or the other way round.
  bool has_values_of(const PartRange& part, const PartProduct& own) {
    const size_t at = axis_ ? own.of_values.find(own_letters()[*axis_]) : std::string::npos;
    const MaybeShape values = facts_.shape(*own.values);
    return sums_ || at == std::string::npos || (values && (*values)[at] == part.count);
  }

  /// Gives the values of PART axes of size 1 where they are shared by what OTHERS, letters of values, have an axis for: beside
  /// the features, where heads that share values have theirs.
  void spread(PartProduct& part, const std::string& others, InnerValues& inner) const {
    const std::string own = own_letters();
    std::string lacking;
    for (const char letter : others)
      if (letter != cut_ && has_letter(own, letter) && !has_letter(part.of_values, letter)) lacking += letter;
    if (lacking.empty()) return;
    const auto features = std::ranges::find_if(part.of_values, [&](char letter) { return !has_letter(own, letter); });
    const auto at = static_cast<size_t>(features - part.of_values.begin());
    std::vector<int64_t> axes(lacking.size());
    std::iota(axes.begin(), axes.end(), static_cast<int64_t>(at));
    part.values = inner.unsqueezed(part.values, axes);
    part.of_values.insert(at, lacking);
  }

  /// Puts the values of FURTHER behind those of WHOLE; false if they do not fit.
  bool join(PartProduct& whole, const PartProduct& further, InnerValues& inner) {
    PartProduct next = further;
    if (next.times != whole.times)
      for (PartProduct* part : {&whole, &next}) part->values = inner.scaled(part->values, std::exchange(part->times, 1));
    spread(whole, next.of_values, inner);
    spread(next, whole.of_values, inner);
    if (next.of_whole != whole.of_whole || !std::ranges::is_permutation(next.of_values, whole.of_values) ||
        facts_.type(*next.values) != facts_.type(*whole.values))
      return false;
    if (!has_letter(whole.of_values, cut_))
      return next.of_values == whole.of_values && computes_same(*next.values, *whole.values, facts_);
    std::vector<int64_t> perm;
    for (const char letter : whole.of_values) perm.push_back(static_cast<int64_t>(next.of_values.find(letter)));
    Value* own = std::ranges::is_sorted(perm) ? next.values : inner.transposed(next.values, perm);
    const auto axis = static_cast<int64_t>(whole.of_values.find(cut_));
    whole.values = side_by_side(*whole.values, *own, axis, inner, facts_);
    return whole.values != nullptr;
  }

  Value& probabilities_;
  std::optional<size_t> axis_;
  size_t keys_;
  bool sums_;
  MatchContext& context_;
  Facts& facts_;
  size_t place_ = 0;             ///< the axis along which the parts are joined
  char cut_ = kCutAxis;          ///< the letter along which the parts lie
  std::vector<Addend> addends_;  ///< of the sum, or what stands side by side
  bool others_read_ = false;     ///< than what cuts the probabilities
};

}  // namespace

std::optional<SegmentedProduct> segmented_product(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                                  MatchContext& context) {
  const MaybeShape shape = context.facts.shape(probabilities);
  const auto is_cut = [](const Reader& reader) { return reader.node && cuts_out(*reader.node); };
  const bool cuts = std::ranges::any_of(readers.all, is_cut);
  if (!shape || shape->size() <= keys_from_last || (!cuts && readers.all.size() < 2)) return std::nullopt;
  const size_t keys = shape->size() - 1 - keys_from_last;
  if (!cuts) return SegmentReader(probabilities, std::nullopt, keys, context).read(readers);
  for (size_t behind = 0; behind < shape->size(); ++behind) {
    const size_t axis = (keys + behind) % shape->size();
    if (auto found = SegmentReader(probabilities, axis, keys, context).read(readers)) return found;
  }
  return std::nullopt;
}

}  // namespace attn_opt
