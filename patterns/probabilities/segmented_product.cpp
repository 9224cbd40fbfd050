#include "patterns/probabilities/segmented_product.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/joined_product.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/row_sum.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// The keys, queries, heads or batch elements from FIRST on that a part of probabilities has.
struct PartRange {
  Value* part = nullptr;
  Dim first = 0, count = 0;
};

/// A part's product: letters of the probabilities' axes and of the values', and those of what the model makes of all parts.
struct PartProduct {
  Value* values = nullptr;
  std::string of_values, of_whole;
};

/// The parts along AXIS that NODE, a Slice, Split or Gather, makes; empty if it does anything else.
std::vector<PartRange> parts_by(const Node& node, size_t axis, Facts& facts) {
  std::vector<PartRange> parts;
  for (Value* part : node.outputs) {
    const auto range = part ? cut_range(*part, facts) : std::nullopt;
    if (!range || range->axis != axis) return {};
    parts.push_back({part, range->first, range->count});
  }
  return parts;
}

/// PARTS in their order along the axis that is cut, if they are all of its COUNT, each once; else none.
std::vector<PartRange> in_order(std::vector<PartRange> parts, const Dim& count) {
  Dim next = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto from = parts.begin() + static_cast<std::ptrdiff_t>(i);
    const auto found = std::ranges::find(from, parts.end(), next, &PartRange::first);
    if (found == parts.end()) return {};
    std::iter_swap(from, found);
    next = next + parts[i].count;
  }
  return next == count && parts.size() > 1 ? parts : std::vector<PartRange>();
}

/// In the place of a letter: the axis that is cut, where a part of one element has none for it.
constexpr char kCutAxis = '#';

/// The letters of the source, of RANK axes, of MADE, which has those of TERM.
std::string letters_of_source(const Untransposed& made, const std::string& term, size_t rank) {
  std::string letters(rank, kCutAxis);
  for (size_t i = 0; i < term.size(); ++i)
    if (made.at[i] != kNoAxis) letters[static_cast<size_t>(made.at[i])] = term[i];
  return letters;
}

/// As unit_moves(): of axes that sizes do not tell apart those in front are added, or left out.
std::optional<std::vector<int64_t>> unit_moves_in_front(Shape before, Shape after) {
  const int64_t last = std::ssize(before) - 1;
  std::ranges::reverse(before);
  std::ranges::reverse(after);
  auto origins = unit_moves(before, after);
  if (!origins) return std::nullopt;
  std::ranges::reverse(*origins);
  for (int64_t& axis : *origins)
    if (axis != kNoAxis) axis = last - axis;
  return origins;
}

/// Which axis of what NODE regroups each axis of what it makes is, where it adds or leaves out axes of size 1; nullopt if it
/// does more. Squeeze and Unsqueeze name those that sizes alone do not tell apart.
std::optional<std::vector<int64_t>> unit_moves_of(const Node& node, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  if (!before || !after) return std::nullopt;
  const bool adds = node.is("Unsqueeze");
  const auto axes = adds || node.is("Squeeze") ? reduced_axes(node, (adds ? after : before)->size(), facts) : std::nullopt;
  if (!axes || axes->empty()) return unit_moves_in_front(*before, *after);
  std::vector<int64_t> origins;
  int64_t next = 0;
  for (size_t axis = 0; axis < (adds ? after : before)->size(); ++axis) {
    const bool is_unit = std::ranges::binary_search(*axes, axis);
    if (adds || !is_unit) origins.push_back(is_unit ? kNoAxis : next);
    if (!adds || !is_unit) ++next;
  }
  return origins;
}

/// VALUE before Transposes, and what adds or leaves out axes of size 1.
Untransposed before_moves(Value& value, Facts& facts) {
  Untransposed seen = untransposed(value, facts);
  for (int step = 0; step < kMaxTogether; ++step) {
    const Node* node = seen.value->producer;
    const auto origins = node && has(*node, Trait::kRegroups) ? unit_moves_of(*node, facts) : std::nullopt;
    if (!origins) return seen;
    const Untransposed above = untransposed(*node->inputs[0], facts);
    for (int64_t& axis : seen.at) {
      if (axis != kNoAxis) axis = (*origins)[static_cast<size_t>(axis)];
      if (axis != kNoAxis) axis = above.at[static_cast<size_t>(axis)];
    }
    seen.value = above.value;
  }
  return seen;
}

/// True for what moves axes, or adds or leaves out such of size 1.
bool may_move(const Node& node) { return node.is("Transpose") || has(node, Trait::kRegroups); }

/// TERM with the letters that stand in FROM as those in TO at the same place.
std::string renamed(std::string term, const std::string& from, const std::string& to) {
  for (char& letter : term)
    if (const size_t at = from.find(letter); at != std::string::npos) letter = to[at];
  return term;
}

/// True for what may stand between a product and a sum of it, or be that.
bool may_lead_to_sum(const Node& node) {
  return has(node, Trait::kAdds) || has(node, Trait::kMultiplies) || node.is("Neg") || node.is("Transpose");
}

class SegmentReader {
 public:
  /// The parts are cut along AXIS, which holds the keys if SUMS.
  SegmentReader(Value& probabilities, size_t axis, bool sums, MatchContext& context)
      : probabilities_(probabilities), axis_(axis), sums_(sums), context_(context), facts_(context.facts) {}

  std::optional<SegmentedProduct> read(const Readers& readers) {
    const auto parts = parts_of(readers);
    std::vector<Node*> products;
    for (const PartRange& part : parts) {
      Node* product = product_of(*part.part);
      if (!product) return std::nullopt;
      products.push_back(product);
    }
    Value* made = parts.empty() ? nullptr : sums_ ? sum_of(products) : side_by_side_of(products);
    if (!made) return std::nullopt;
    InnerValues inner(*made->producer, context_);
    PartProduct whole;
    for (size_t i = 0; i < parts.size(); ++i) {
      auto own = read_product(*parts[i].part, *products[i], *find_addend(addends_, *products[i]), inner);
      if (!own || !has_values_of(parts[i], *own) || (i > 0 && !join(whole, *own, inner))) return std::nullopt;
      if (i == 0) whole = *std::move(own);
    }
    if (!sums_ && !lies_along_cut(whole, *made)) return std::nullopt;
    const std::string equation = own_letters() + "," + whole.of_values + "->" + whole.of_whole;
    Value* product =
        inner.build().node("Einsum", {&probabilities_, whole.values}, {GraphBuilder::attribute("equation", equation)});
    return SegmentedProduct{product->producer, made, others_read_};
  }

 private:
  std::vector<PartRange> parts_of(const Readers& readers) {
    std::vector<PartRange> parts;
    for (const Reader& reader : readers.all) {
      const bool may_cut = reader.node && reader.node->graph == probabilities_.graph && reader.input == 0;
      const auto own = may_cut ? parts_by(*reader.node, axis_, facts_) : std::vector<PartRange>();
      others_read_ |= own.empty();
      parts.insert(parts.end(), own.begin(), own.end());
    }
    return in_order(std::move(parts), facts_.shape(probabilities_).known()[axis_]);
  }

  /// The only reader of VALUE, or of what Transposes make of it; null if there are others.
  Reader only_reader(Value& value) {
    Value* made = &value;
    for (int step = 0; step < kMaxTogether; ++step) {
      const Readers readers = readers_of(*made, facts_);
      if (!readers.only_one() || !readers.all[0].node || readers.all[0].node->graph != value.graph) return {};
      if (!may_move(*readers.all[0].node)) return readers.all[0];
      made = readers.all[0].node->outputs[0];
    }
    return {};
  }

  /// The product that alone reads PART; null if there is none.
  Node* product_of(Value& part) {
    const Reader reader = only_reader(part);
    return reader.node && is_product(*reader.node) && reader.node->inputs.size() == 2 ? reader.node : nullptr;
  }

  /// What adds up what PRODUCTS make, and nothing else, the first that does as it is if one does; null if there is nothing.
  /// Leaves its addends.
  Value* sum_of(const std::vector<Node*>& products) {
    std::vector<Value*> made{products.front()->outputs[0]};
    Value* found = nullptr;
    for (size_t i = 0; i < made.size() && i < kMaxTogether; ++i) {
      std::vector<Addend> addends = addends_in(*made[i]);
      const bool is_sum = addends.size() == products.size() && std::ranges::all_of(products, [&](const Node* product) {
                            return find_addend(addends, *product) != addends.end();
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

  /// The Concat of what PRODUCTS make, each perhaps transposed, in their order and of nothing else; null if there is none.
  /// Leaves what it joins.
  Value* side_by_side_of(const std::vector<Node*>& products) {
    const Reader reader = only_reader(*products.front()->outputs[0]);
    const Node* concat = reader.node && reader.node->is("Concat") ? reader.node : nullptr;
    if (!concat || concat->inputs.size() != products.size()) return nullptr;
    for (size_t i = 0; i < products.size(); ++i) {
      if (before_moves(*concat->inputs[i], facts_).value->producer != products[i]) return nullptr;
      addends_.push_back({concat->inputs[i], 1});
    }
    return concat->outputs[0];
  }

  /// True if MADE, the Concat of parts of WHOLE, joins them along the axis that the probabilities are cut along.
  bool lies_along_cut(const PartProduct& whole, const Value& made) const {
    const auto axis = axis_in(made.producer->int_attribute("axis", 0), whole.of_whole.size());
    return axis && whole.of_whole[*axis] == own_letters()[axis_];
  }

  std::vector<Addend> addends_in(Value& value) {
    std::vector<Addend> addends;
    enter_addends(value, 1, kMaxTogether, addends);
    return addends;
  }

  /// Enters in ADDENDS what VALUE, which is added up so many TIMES, is made of, by so many STEPS upward.
  void enter_addends(Value& value, double times, int steps, std::vector<Addend>& addends) {
    Value& sum = canonical(value, facts_);
    const auto [scaled, factor] = sum.producer && steps > 0 ? scaled_by(*sum.producer, context_) : std::pair<Value*, double>();
    const auto terms = scaled ? std::vector<Addend>{{scaled, factor}} : FormReader(facts_).linear_terms(sum);
    const MaybeShape whole = facts_.shape(sum);
    const bool is_made_of_others = steps > 0 && std::ranges::all_of(terms, [&](const Addend& term) {
                                     const MaybeShape own = facts_.shape(*term.value);
                                     return term.value != &sum && own && whole && *own == *whole;
                                   });
    const auto known = std::ranges::find(addends, &sum, &Addend::value);
    if (!is_made_of_others && known != addends.end()) known->coefficient += times;
    if (!is_made_of_others && known == addends.end()) addends.push_back({&sum, times});
    if (!is_made_of_others) return;
    for (const Addend& term : terms) enter_addends(*term.value, times * term.coefficient, steps - 1, addends);
  }

  /// What of ADDENDS is made of PRODUCT by Transposes.
  std::vector<Addend>::const_iterator find_addend(const std::vector<Addend>& addends, const Node& product) const {
    return std::ranges::find_if(
        addends, [&](const Addend& addend) { return before_moves(*addend.value, facts_).value->producer == &product; });
  }

  /// The letters of all axes of the probabilities.
  std::string own_letters() const {
    std::string letters;
    for (size_t axis = 0; axis < facts_.shape(probabilities_).known().size(); ++axis) letters += static_cast<char>('a' + axis);
    return letters;
  }

  /// PRODUCT of PART with other values, of which ADDEND is added up; the probabilities' axes have their own letters, the others
  /// capital ones in the order of the sum's.
  std::optional<PartProduct> read_product(Value& part, const Node& product, const Addend& addend, InnerValues& inner) {
    const auto letters = product_letters(product, facts_);
    if (!letters) return std::nullopt;
    const Untransposed first = before_moves(*product.inputs[0], facts_);
    const size_t at = first.value == &canonical(part, facts_) ? 0 : 1;
    const Untransposed own = before_moves(*product.inputs[at], facts_), values = untransposed(*product.inputs[1 - at], facts_),
                       added = before_moves(*addend.value, facts_);
    const bool adds_axes = std::ranges::find(own.at, kNoAxis) != own.at.end();
    if (adds_axes || own.value != &canonical(part, facts_) || values.value == own.value) return std::nullopt;
    const std::string& values_term = letters->operands[1 - at];
    std::string from = letters_of_source(own, letters->operands[at], own_letters().size()), to = own_letters();
    const std::string of_whole = letters_of_axes(added.at, letters->result, kCutAxis);
    const bool has_all = std::ranges::all_of(letters->result, [&](char letter) { return has_letter(of_whole, letter); });
    if (!has_all || !lacks_no_other(from) || !lacks_no_other(of_whole)) return std::nullopt;
    for (const char letter : of_whole)
      if (!has_letter(from, letter)) {
        from += letter;
        to += static_cast<char>('A' + (to.size() - own_letters().size()));
      }
    PartProduct read{inner.scaled(values.value, addend.coefficient), letters_of_source(values, values_term, values_term.size()),
                     renamed(of_whole, from, to)};
    if (has_letter(from, kCutAxis)) give_cut_axis(read, *product.inputs[1 - at], values_term, addend.coefficient, inner);
    read.of_values = renamed(read.of_values, from, to);
    const bool has_units = has_letter(from + read.of_values, kUnitAxis);
    return has_units || (sums_ && !has_letter(read.of_values, own_letters()[axis_])) ? std::nullopt : std::optional(read);
  }

  /// Gives the values of PART, which VALUES of TERM are, the axis that is cut: that which they lost, or one of size 1.
  void give_cut_axis(PartProduct& part, Value& values, const std::string& term, double times, InnerValues& inner) {
    const Untransposed whole = before_moves(values, facts_);
    const size_t rank = facts_.shape(*whole.value).known().size();
    if (rank == term.size() + 1 && std::ranges::find(whole.at, kNoAxis) == whole.at.end()) {
      part.values = inner.scaled(whole.value, times);
      part.of_values = letters_of_source(whole, term, rank);
    } else {
      part.values = inner.unsqueezed(part.values, {0});
      part.of_values.insert(0, 1, kCutAxis);
    }
  }

  /// True if TERM, letters of all axes of probabilities or what is made of them, lacks no axis, or that which is cut.
  bool lacks_no_other(const std::string& term) const {
    const auto lacking = std::ranges::count(term, kCutAxis);
    return lacking == 0 || (lacking == 1 && !sums_ && (term.size() != own_letters().size() || term[axis_] == kCutAxis));
  }

  /// True unless the values of OWN are shared by what PART has several of, or the other way round.
  bool has_values_of(const PartRange& part, const PartProduct& own) {
    const size_t at = own.of_values.find(own_letters()[axis_]);
    const MaybeShape values = facts_.shape(*own.values);
    return sums_ || at == std::string::npos || (values && (*values)[at] == part.count);
  }

  /// Gives the values of PART axes of size 1 where they are shared by what OTHERS, letters of values, have an axis for: beside
  /// the features, where heads that share values have theirs.
  void spread(PartProduct& part, const std::string& others, InnerValues& inner) const {
    const std::string own = own_letters();
    std::string lacking;
    for (const char letter : others)
      if (letter != own[axis_] && has_letter(own, letter) && !has_letter(part.of_values, letter)) lacking += letter;
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
    spread(whole, next.of_values, inner);
    spread(next, whole.of_values, inner);
    if (next.of_whole != whole.of_whole || !std::ranges::is_permutation(next.of_values, whole.of_values) ||
        facts_.type(*next.values) != facts_.type(*whole.values))
      return false;
    if (!has_letter(whole.of_values, own_letters()[axis_]))
      return next.of_values == whole.of_values && computes_same(*next.values, *whole.values, facts_);
    std::vector<int64_t> perm;
    for (const char letter : whole.of_values) perm.push_back(static_cast<int64_t>(next.of_values.find(letter)));
    Value* own = std::ranges::is_sorted(perm) ? next.values : inner.transposed(next.values, perm);
    const auto axis = static_cast<int64_t>(whole.of_values.find(own_letters()[axis_]));
    whole.values = side_by_side(*whole.values, *own, axis, inner, facts_);
    return whole.values != nullptr;
  }

  Value& probabilities_;
  size_t axis_;
  bool sums_;
  MatchContext& context_;
  Facts& facts_;
  std::vector<Addend> addends_;  ///< of the sum, or what stands side by side
  bool others_read_ = false;     ///< than what cuts the probabilities
};

}  // namespace

std::optional<SegmentedProduct> segmented_product(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                                  MatchContext& context) {
  const MaybeShape shape = context.facts.shape(probabilities);
  const auto is_cut = [](const Reader& reader) { return reader.node && cuts_out(*reader.node); };
  if (!shape || shape->size() <= keys_from_last || std::ranges::none_of(readers.all, is_cut)) return std::nullopt;
  const size_t keys = shape->size() - 1 - keys_from_last;
  for (size_t behind = 0; behind < shape->size(); ++behind) {
    const size_t axis = (keys + behind) % shape->size();
    if (auto found = SegmentReader(probabilities, axis, axis == keys, context).read(readers)) return found;
  }
  return std::nullopt;
}

}  // namespace attn_opt
