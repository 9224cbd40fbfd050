#include "patterns/probabilities/parted_axes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "patterns/layout_checks.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/probabilities/summed_values.h"
#include "patterns/products/axis_factors.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"

namespace attn_opt {
namespace {

/// The product that reads READ, of which each axis holds factors of the probabilities.
struct FactoredOperand {
  Node* product = nullptr;
  Value* read = nullptr;
  AxisMap axes;
  bool others_read = false;  ///< what stands in between, too
};

class AxisParter {
 public:
  AxisParter(Value& probabilities, size_t keys, MatchContext& context)
      : probabilities_(probabilities),
        own_(context.facts.shape(probabilities).known()),
        keys_(keys),
        context_(context),
        facts_(context.facts) {}

  std::optional<PartedProduct> read(const Readers& readers) {
    std::vector<Role> roles(own_.size(), Role::kBatch);
    roles[keys_] = Role::kFeature;
    operand_ = operand_behind(readers, AxisMap::of(own_, roles), 0);
    if (!operand_ || !read_letters() || !take_factors()) return std::nullopt;
    const auto query = query_axis();
    if (!query) return std::nullopt;
    units_ = units_to_add(*query);
    const PartedProduct parted = with_order(*query);
    const LetteredShape apart = probabilities_apart(parted.perm, *query);
    auto values = values_apart();
    auto result = values ? term_of_result(*query) : std::nullopt;
    return result ? build(parted, apart, *values, *result) : std::nullopt;
  }

 private:
  static constexpr char kKeys = 'k';
  static constexpr int kMostVisits = 24;

  /// What layout operators from READERS of a value of AXES on lead to; nullopt if that is no product, or several.
  std::optional<FactoredOperand> operand_behind(Readers readers, const AxisMap& axes, int step) {
    const auto keys = axis_of_keys(axes);
    if (step == kMaxTogether) return std::nullopt;
    if (keys) take_sums(readers, axes.rank() - 1 - *keys, facts_);
    std::optional<FactoredOperand> found;
    for (const Reader& reader : readers.all) {
      auto operand = operand_of(reader, axes, step);
      if (operand && found) return std::nullopt;
      if (operand) found = std::move(operand);
    }
    if (found) found->others_read |= !readers.only_one();
    return found;
  }

  /// The same of one reader.
  std::optional<FactoredOperand> operand_of(const Reader& reader, const AxisMap& axes, int step) {
    Node* node = reader.node;
    if (!node || node->graph != probabilities_.graph || ++visits_ > kMostVisits) return std::nullopt;
    if (multiplies(*node, *reader.read, facts_))
      return step > 0 && axis_of_keys(axes) ? std::optional(FactoredOperand{node, reader.read, axes}) : std::nullopt;
    const auto behind = reader.input == 0 ? axes_after(*node, axes, context_) : std::nullopt;
    return behind ? operand_behind(readers_of(*node->outputs[0], facts_), *behind, step + 1) : std::nullopt;
  }

  /// The axis that holds the keys, all of them and nothing else.
  static std::optional<size_t> axis_of_keys(const AxisMap& axes) {
    const std::vector<int> keys = axes.all_of_role(Role::kFeature);
    for (size_t axis = 0; keys.size() == 1 && axis < axes.rank(); ++axis)
      if (std::ranges::equal(axes.axis(axis), keys)) return axis;
    return std::nullopt;
  }

  /// Gives each letter of the product those of the factors that it holds.
  bool read_letters() {
    const auto letters = product_letters(*operand_->product, facts_);
    const std::vector<Value*> operands = operands_of(*operand_->product, facts_);
    if (!letters || operands.size() != 2 || operands[0] == operands[1]) return false;
    const size_t at = operands[0] == operand_->read ? 0 : 1;
    values_ = operands[1 - at];
    letters_ = {{letters->operands[at], letters->operands[1 - at]}, letters->result};
    const std::string& term = letters_.operands[0];
    if (operands[at] != operand_->read || !facts_.shape(*values_) || term.size() != operand_->axes.rank()) return false;
    for (size_t axis = 0; axis < term.size(); ++axis) {
      std::string& factors = factors_[term[axis]];
      if (!factors.empty()) return false;
      for (const int factor : operand_->axes.axis(axis)) factors += letter_of(factor);
    }
    const auto is_kept = [&](char letter) { return has_letter(letters_.result, letter); };
    return std::ranges::all_of(term, [&](char letter) {
      const std::string& factors = factors_[letter];
      return factors.empty() || (factors == std::string(1, kKeys)) != is_kept(letter);
    });
  }

  char letter_of(int factor) const {
    const bool is_key = operand_->axes.factors()[static_cast<size_t>(factor)].role == Role::kFeature;
    return is_key ? kKeys : static_cast<char>('A' + factor);
  }

  /// Tells which factors each axis of the probabilities has.
  bool take_factors() {
    constexpr size_t kMostFactors = 16;  // each is a letter
    const std::vector<Factor>& factors = operand_->axes.factors();
    if (factors.size() > kMostFactors) return false;
    parts_.resize(own_.size());
    int next = 0;
    for (size_t axis = 0; axis < own_.size(); ++axis) {
      if (axis == keys_) continue;
      for (Dim rest = own_[axis]; !rest.is(1); ++next) {
        if (next == std::ssize(factors)) return false;  // of no elements, and never 1
        const auto left = exact_quotient(rest, factors[static_cast<size_t>(next)].size);
        if (!left) return false;
        parts_[axis].push_back(next);
        rest = *left;
      }
    }
    parts_[keys_] = operand_->axes.all_of_role(Role::kFeature);
    return true;
  }

  bool has_values_for(int factor) {
    return std::ranges::any_of(letters_.operands[1], [&](char letter) {
      return letter != kUnitAxis && factors_.contains(letter) && !size_of_values(letter).is(1) &&
             has_letter(factors_[letter], letter_of(factor));
    });
  }

  const Dim& size_of_values(char letter) { return facts_.shape(*values_).known()[letters_.operands[1].find(letter)]; }

  /// The axis of the queries: that before the keys, if V has nothing of it, or the last one of which V has nothing.
  std::optional<size_t> query_axis() {
    std::optional<size_t> found;
    for (size_t axis = 0; axis < own_.size(); ++axis) {
      const bool is_free = axis != keys_ && std::ranges::none_of(parts_[axis], [&](int part) { return has_values_for(part); });
      const bool is_better = !found || parts_[*found].empty() || !parts_[axis].empty() || axis + 1 == keys_;
      if (is_free && is_better) found = axis;
    }
    return found && parts_[*found].size() < 2 ? found : std::nullopt;
  }

  /// Letters of the leading axes of size 1 that the product has and the probabilities lack.
  std::string units_to_add(size_t query) {
    std::ptrdiff_t lacking = std::ranges::count_if(letters_.operands[1], [&](char letter) {
      const auto factors = factors_.find(letter);
      return letter != kUnitAxis && factors != factors_.end() && factors->second.empty() && size_of_values(letter).is(1);
    });
    for (size_t axis = 0; axis < own_.size(); ++axis)
      if (axis != query && own_[axis].is(1)) --lacking;
    std::string units;
    while (std::ssize(units) < lacking) units += static_cast<char>('a' + units.size());
    return units;
  }

  PartedProduct with_order(size_t query) const {
    PartedProduct parted;
    for (size_t axis = 0; axis < own_.size(); ++axis)
      if (axis != query && axis != keys_) parted.perm.push_back(static_cast<int64_t>(axis));
    parted.perm.push_back(static_cast<int64_t>(query));
    parted.perm.push_back(static_cast<int64_t>(keys_));
    if (std::ranges::is_sorted(parted.perm)) parted.perm.clear();
    return parted;
  }

  /// The probabilities, transposed by PERM, with an axis for each factor; those of size 1 keep theirs, of small letters.
  LetteredShape probabilities_apart(const std::vector<int64_t>& perm, size_t query) {
    LetteredShape apart;
    for (const char unit : units_) apart.add(1, unit, std::nullopt);
    for (size_t at = 0; at < own_.size(); ++at) {
      const size_t axis = perm.empty() ? at : static_cast<size_t>(perm[at]);
      const std::vector<int>& parts = parts_[axis];
      if (parts.empty()) {
        const char letter = axis == query ? 'q' : static_cast<char>('a' + units_.size());
        if (axis != query) units_ += letter;
        apart.add(1, letter, std::nullopt);
      }
      for (const int part : parts)
        apart.add(operand_->axes.factors()[static_cast<size_t>(part)].size, letter_of(part),
                  parts.size() == 1 ? std::optional(static_cast<int64_t>(at)) : std::nullopt);
    }
    return apart;
  }

  /// V with an axis for each factor that it has, and one of size 1 for each of the probabilities.
  std::optional<LetteredShape> values_apart() {
    LetteredShape apart;
    for (const char unit : units_) apart.add(1, unit, std::nullopt);
    const Shape& shape = facts_.shape(*values_).known();
    const std::string& term = letters_.operands[1];
    for (size_t axis = 0; axis < term.size(); ++axis) {
      if (shape[axis].is(1)) continue;
      if (!factors_.contains(term[axis])) {
        factors_[term[axis]] = features_ += static_cast<char>('u' + features_.size());
        factors_[term[axis]].erase(0, features_.size() - 1);
      }
      const std::string& factors = factors_[term[axis]];
      Dim size = 1;
      for (const char factor : factors) {
        const Dim part = has_letter(features_, factor) ? shape[axis] : size_of(factor);
        apart.add(part, factor, factors.size() == 1 ? std::optional(static_cast<int64_t>(axis)) : std::nullopt);
        size = size * part;
      }
      if (size != shape[axis]) return std::nullopt;
    }
    const bool has_keys = has_letter(apart.term, kKeys);
    return has_keys && !features_.empty() ? std::optional(apart) : std::nullopt;
  }

  Dim size_of(char letter) const {
    const std::vector<Factor>& factors = operand_->axes.factors();
    return letter == kKeys ? own_[keys_] : factors[static_cast<size_t>(letter - 'A')].size;
  }

  /// The letters of the result, which has an axis of size 1 for each that the probabilities have, where it had them if it did.
  std::optional<std::string> term_of_result(size_t query) {
    std::string term, units = units_, queries = parts_[query].empty() ? "q" : "";
    const auto add_first = [&term](std::string& left) {
      term += left.substr(0, 1);
      left.erase(0, 1);
    };
    for (const char letter : letters_.result) {
      if (letter == kUnitAxis) continue;
      if (factors_[letter].empty()) add_first(has_letter(letters_.operands[1], letter) ? units : queries);
      term += factors_[letter];
    }
    if (!queries.empty()) term.insert(std::min(term.find_first_of(features_), term.size()), queries);
    return has_letter(term, kKeys) ? std::nullopt : std::optional(units + term);
  }

  std::optional<PartedProduct> build(PartedProduct parted, const LetteredShape& apart, const LetteredShape& values,
                                     const std::string& result) {
    InnerValues inner(*operand_->product, context_);
    const auto factor = factor_of_sum(*operand_->product, facts_);
    Value* moved = parted.perm.empty() ? &probabilities_ : inner.transposed(&probabilities_, parted.perm);
    parted.is_regrouped = apart.sizes.size() != own_.size();
    parted.probabilities = parted.is_regrouped ? reshaped(*moved, apart, inner, facts_) : moved;
    Value* own_values = reshaped(*values_, values, inner, facts_);
    if (!factor || !parted.probabilities || !own_values) return std::nullopt;
    const std::string equation = apart.term + "," + values.term + "->" + result;
    Value* made = inner.build().node("Einsum", {parted.probabilities, inner.scaled(own_values, *factor)},
                                     {GraphBuilder::attribute("equation", equation)});
    parted.product = made->producer;
    parted.whole = operand_->product->outputs[0];
    parted.others_read = operand_->others_read;
    const MaybeShape whole = facts_.shape(*parted.whole), own = facts_.shape(*made);
    const bool has_places = whole && own && (whole->size() != own->size() || *whole == *own);
    return has_places ? std::optional(parted) : std::nullopt;
  }

  Value& probabilities_;
  const Shape& own_;
  size_t keys_;
  MatchContext& context_;
  Facts& facts_;
  std::optional<FactoredOperand> operand_;
  Value* values_ = nullptr;
  ProductLetters letters_;               ///< of what the product reads, V and the result
  std::map<char, std::string> factors_;  ///< letters of factors, by the product's letters
  std::vector<std::vector<int>> parts_;  ///< factors, by the probabilities' axes
  std::string units_, features_;
  int visits_ = 0;
};

}  // namespace

std::optional<PartedProduct> parted_product(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                            MatchContext& context) {
  const MaybeShape shape = context.facts.shape(probabilities);
  constexpr size_t kMostAxes = 8;
  if (!shape || shape->size() <= keys_from_last || shape->size() < 2 || shape->size() > kMostAxes) return std::nullopt;
  const size_t keys = shape->size() - 1 - keys_from_last;
  return (*shape)[keys].is(1) ? std::nullopt : AxisParter(probabilities, keys, context).read(readers);
}

bool makes_all_axes(const PartedProduct& parted, const Node& node, Facts& facts) {
  const MaybeShape whole = facts.shape(*parted.whole);
  if (!whole || parted.whole->producer != &node) return false;
  return facts.shape(*parted.product->outputs[0]).has_rank(whole->size());
}

}  // namespace attn_opt
