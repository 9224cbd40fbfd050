// What may stand between the softmax and its product with V.
//
//   Cast, CastLike, Identity, Dropout at inference, guards (row_guard.h), Transpose of the last two axes
//   Reshape, Flatten, (Un)squeeze of the leading axes, or of rows in front of all others
//   Mul, Div, Where with 0 of whole rows, or of keys of all rows alike, Add, Sub of other weights (linear_steps.h)
//   Slice, Split, Gather, Pad that cut off sinks (cut_columns.h), or pick rows, heads or batch elements (selected_scores.h)
//   Pad, Gather, Concat of the keys, as of those of V (moved_keys.h)           any layout at the product (parted_axes.h)
//   Slice, Split into parts that have products of their own (segmented_product.h)
#include "patterns/probabilities/probability_walk.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/probabilities/branches.h"
#include "patterns/probabilities/joint_step.h"
#include "patterns/probabilities/moved_keys.h"
#include "patterns/probabilities/parted_axes.h"
#include "patterns/probabilities/segmented_product.h"
#include "patterns/probabilities/summed_values.h"
#include "patterns/products/products.h"
#include "patterns/readers.h"
#include "patterns/scores/selected_scores.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr int kMaxProbabilitySteps = 32;
constexpr size_t kNowhere = 64;  ///< an axis that no value has

class ProbabilityWalker {
 public:
  ProbabilityWalker(const SoftmaxSite& softmax, const Node* wanted, bool parts_axes, MatchContext& context)
      : value_(softmax.output),
        softmax_(softmax.output),
        keys_(softmax.keys.value_or(0)),
        sum_(softmax.sum),
        divided_late_(softmax.divided ? softmax.product : nullptr),
        wanted_(wanted),
        parts_axes_(parts_axes),
        context_(context),
        facts_(context.facts) {
    walk_.sinks = softmax.cut_off;
    if (softmax.times != 1) begin_with_number(softmax.times);
  }

  Matched<ProbabilityWalk> run() {
    for (int step = 0; step < kMaxProbabilitySteps; ++step) {
      if (walk_.way.empty() || walk_.way.back() != value_) walk_.way.push_back(value_);
      const Readers readers = readers_here();
      if (takes_branch(readers, false) || pass_idle_guard(readers) || pass_guard(readers) || pass_step(readers) ||
          pass_infinity_guard(readers) || pass_joint_step(readers))
        continue;
      if (ends_in_segments(readers) || (parts_axes_ && ends_in_parted_axes(readers))) return walk_;
      if (takes_branch(readers, true)) continue;
      ATTN_OPT_MATCH(Node * next, next_node(readers));
      if (multiplies(*next, *value_, facts_)) {
        walk_.product = next;
        walk_.probabilities = value_;
        if (!walk_.is_last_product()) walk_.escaping.clear();
        return walk_;
      }
      ATTN_OPT_MATCH(value_, pass(*next));
    }
    return missed("probabilities.too-long", value_->producer, value_->name, walk_.peeled);
  }

 private:
  /// Makes of the softmax's result, which is so many TIMES the softmax, the first step. The model has no node for it: what a
  /// step says is its operator and its operand, and what reads the result is asked without it.
  void begin_with_number(double times) {
    InnerValues inner(*softmax_->producer, context_);
    Value* number = inner.build().scalar(times, facts_.type(*softmax_));
    walk_.steps.push_back({inner.build().node("Mul", {number, number})->producer});
    walk_.steps.back().is_number = walk_.is_multiple = true;
    walk_.peeled.emplace_back("Mul(number)");
  }

  bool pass_idle_guard(const Readers& readers) {
    Node* guard = walk_.steps.empty() ? idle_guard(readers, *value_, keys_from_last().value_or(kNowhere), facts_) : nullptr;
    if (!guard) return false;
    walk_.peeled.push_back(guard->op() + "(idle)");
    value_ = guard->outputs[0];
    return true;
  }

  bool pass_guard(const Readers& readers) {
    const auto guard = row_guard(readers, *value_, keys_from_last().value_or(kNowhere), facts_);
    const auto step = guard && !readers.is_output ? next_step(readers) : std::nullopt;
    // A mask that is the same for all keys of a row masks no scores.
    if (!guard || !walk_.steps.empty() || (walk_.row_split && !guard->asks_each()) ||
        (guard->mask && step && (step->is_of_rows || step->is_number)))
      return false;
    const bool escapes = others_read(readers, *guard->node, facts_);
    const auto whole = !walk_.guard ? guard : escapes ? std::nullopt : joined(*walk_.guard, *guard);
    if (!whole) return false;
    if (escapes) note_escape();
    walk_.guard = whole;
    if (step && !step->may_be_mask) walk_.guard_step = step;
    walk_.guard_transposed = walk_.transposed;
    walk_.guard_perm = walk_.perm;
    seen_.push_back(&canonical(*value_, facts_));
    walk_.peeled.push_back(guard->mask ? "Where(mask)" : guard->test ? "Where(row)" : "Where(IsNaN)");
    value_ = guard->node->outputs[0];
    return true;
  }

  bool pass_infinity_guard(const Readers& readers) {
    if (walk_.row_split || std::ranges::any_of(walk_.steps, &LinearStep::adds)) return false;
    seen_.push_back(&canonical(*value_, facts_));
    Node* guard = infinity_guard(readers, seen_, facts_);
    if (!guard) return false;
    if (others_read(readers, *guard, facts_)) note_escape();
    walk_.peeled.emplace_back("Where(IsInf)");
    value_ = guard->outputs[0];
    return true;
  }

  /// Where the keys lie; nullopt where it is not known.
  std::optional<size_t> keys_from_last() const {
    if (!walk_.perm.empty() || keys_ > 1) return std::nullopt;
    return walk_.transposed ? 1 - keys_ : keys_;
  }

  bool has_keys_last() const { return keys_ < 2 && walk_.perm.empty(); }  ///< or queries behind them
  std::optional<Cut> cut_here(const Node& node) const {
    return columns_cut_off(node, keys_from_last().value_or(keys_), facts_);
  }
  /// Where the keys lie, also where axes have moved.
  std::optional<size_t> keys_wherever() const {
    if (walk_.perm.empty()) return walk_.transposed && keys_ < 2 ? 1 - keys_ : keys_;
    const MaybeShape first = facts_.shape(*softmax_);
    const auto keys = std::ranges::find(walk_.perm, first ? std::ssize(*first) - 1 - static_cast<int64_t>(keys_) : kNoAxis);
    if (!first || keys == walk_.perm.end()) return std::nullopt;
    const auto from_last = static_cast<size_t>(walk_.perm.end() - keys - 1);
    return walk_.transposed && from_last < 2 ? 1 - from_last : from_last;
  }

  std::optional<LinearStep> next_step(const Readers& readers) {
    auto step = linear_step(readers, *value_, keys_wherever(), context_);
    if (step) step->at = walk_.way.size() - 1;
    // What is added is moved as the sum is: as it lies, with all axes.
    const bool is_moved = step && step->adds && !keys_from_last();
    return is_moved && facts_.shape(step->operand()).known() != facts_.shape(*value_).known() ? std::nullopt : step;
  }

  bool pass_step(const Readers& readers) {
    const auto step = next_step(readers);
    if (!step || (step->adds && (divided_late_ || is_made_of(step->operand(), *softmax_)))) return false;
    if (readers.is_output) note_escape();
    walk_.steps.push_back(*step);
    walk_.peeled.push_back(step->node->op() + (step->adds ? "(product)" : step->is_of_rows ? "(rows)" : "(values)"));
    value_ = step->node->outputs[0];
    return true;
  }

  bool pass_joint_step(const Readers& readers) {
    const auto joint = joint_step(readers, *value_, {walk_.steps.empty(), divided_late_ != nullptr}, context_);
    if (!joint) return false;
    if (joint->one && !pass_guard({{*joint->one}, readers.is_output}) && !pass_step({{*joint->one}, readers.is_output}))
      return false;
    if (!joint->one && readers.is_output) note_escape();
    value_ = joint->made;
    return true;
  }

  /// True if READERS make the product with V in parts, or of moved keys.
  bool ends_in_segments(const Readers& readers) {
    const auto keys = keys_wherever();
    auto whole = keys ? segmented_product(readers, *value_, *keys, context_) : std::nullopt;
    if (keys && !whole) whole = product_of_moved_keys(readers, *value_, *keys, context_);
    if (!whole || (divided_late_ && divided_late_ != whole->whole->producer)) return false;
    if (readers.is_output || whole->others_read) note_escape();
    walk_.values_factor = whole->largest_factor;
    walk_.drops_values = whole->drops_values;
    return end_at(*whole->product, *whole->whole, "(segments)");
  }

  /// True if READERS lead to a product with V that takes axes for others.
  bool ends_in_parted_axes(const Readers& readers) {
    const auto keys = keys_wherever();
    const auto parted = keys ? parted_product(readers, *value_, *keys, context_) : std::nullopt;
    if (!parted || (divided_late_ && !makes_all_axes(*parted, *divided_late_, facts_))) return false;
    if (parted->others_read) note_escape();
    if (!parted->perm.empty() && !moves_axes(parted->perm, parted->perm.size())) {
      if (parted->others_read) walk_.escaping.pop_back();
      return false;
    }
    walk_.regrouped |= parted->is_regrouped;
    walk_.guard_step.reset();
    value_ = parted->probabilities;
    walk_.way.push_back(value_);
    return end_at(*parted->product, *parted->whole, "(axes)");
  }

  /// Ends at PRODUCT of VALUE_, for nodes of which the last makes WHOLE. True.
  bool end_at(Node& product, Value& whole, const char* how) {
    walk_.products = {&product};
    walk_.product = &product;
    walk_.probabilities = value_;
    walk_.summed = &whole;
    walk_.peeled.push_back(whole.producer->op() + how);
    return true;
  }

  /// Who reads VALUE_: what adds up its products with V, where these are elementwise, in the place of the Muls.
  Readers readers_here() const {
    Readers readers = readers_of(*value_, facts_);
    if (sum_) std::erase_if(readers.all, [this](const Reader& reader) { return leads_alone_to(reader, *sum_, facts_); });
    if (const auto keys = keys_wherever()) take_sums(readers, *keys, facts_);
    if (branch_at_ == value_) ways_here().keep_branch(readers, *branch_);
    return readers;
  }

  void note_escape() {
    walk_.escaping.push_back({value_, walk_.transposed, walk_.steps.size(), walk_.guard.has_value(), walk_.perm});
  }

  WayReader ways_here() const { return {*value_, keys_wherever(), keys_from_last().has_value(), context_}; }

  /// True if READERS lead to several products, one behind steps of its own, or BY_MOVES: those of one are followed alone.
  bool takes_branch(const Readers& readers, bool by_moves) {
    if (readers.all.size() < 2 || divided_late_ || branch_at_ == value_) return false;
    const Branches found = ways_here().branches(readers, by_moves);
    if (found.ways.empty()) return false;
    if (found.others_read) note_escape();
    go_on_with(found.ways);
    branch_ = wanted_way(found.ways).product.node;
    branch_at_ = value_;
    return true;
  }

  /// The node to go on with; VALUE_ becomes the copy that it reads.
  Matched<Node*> next_node(const Readers& readers) {
    std::vector<Reader> candidates;
    std::vector<Way> ways;
    const WayReader here = ways_here();
    for (const Reader& reader : readers.all) {
      if (!reader.node || reader.node->graph != value_->graph || reader.reads_type_alone()) continue;
      if (!is_on_the_way(*reader.node) && !multiplies(*reader.node, *reader.read, facts_) &&
          !(readers.only_one() && (cut_here(*reader.node) || (reader.input == 0 && axis_picked_by(*reader.node)))))
        continue;
      if (const auto product = here.product_at_end(reader, readers)) ways.push_back({reader, *product});
      candidates.push_back(reader);
    }
    if (ways.size() > 1) here.keep_readable(ways);
    if (readers.is_output || readers.all.size() > std::max<size_t>(1, ways.size())) note_escape();
    if (candidates.empty()) return nothing_reached(readers);
    if (ways.empty() && !here.keep_leading(candidates))
      return missed("probabilities.many-readers", candidates[0].node,
                    std::to_string(readers.all.size()) + " readers of '" + value_->name + "'", walk_.peeled);
    go_on_with(ways);
    const Reader next = ways.empty() ? candidates[0] : wanted_way(ways).first;
    value_ = next.read;
    return next.node;
  }

  /// Notes the products of WAYS, if none are known.
  void go_on_with(const std::vector<Way>& ways) {
    if (walk_.products.empty())
      for (const Way& way : ways) walk_.products.push_back(way.product.node);
  }

  /// That of WAYS to the product that is wanted, or the first.
  const Way& wanted_way(const std::vector<Way>& ways) const {
    const auto wanted = std::ranges::find(ways, wanted_, [](const Way& way) { return way.product.node; });
    return wanted == ways.end() ? ways[0] : *wanted;
  }

  /// A softmax that is no attention ends elsewhere (a router); one that is changed on the way to a product is worth a miss.
  tl::unexpected<Miss> nothing_reached(const Readers& readers) const {
    for (const Reader& reader : readers.all)
      if (reader.node && quantizes_for_product(*reader.node))
        return missed("probabilities.quantized", reader.node, "'" + value_->name + "' is quantized", walk_.peeled);
    const Node* unread = unread_weights(*value_, context_);
    if (!unread) unread = unread_weights(*softmax_, context_);  // another reader than was followed may change it
    if (!unread && divided_late_) unread = readers.all.empty() ? divided_late_ : readers.all.back().node;
    if (unread && !facts_.shape(*value_))
      return missed("softmax.unknown-rank", unread, "the rank of '" + value_->name + "' is not known", walk_.peeled);
    if (unread) return missed("probabilities.operator", unread, unread->op(), walk_.peeled);
    return missed(std::string(kNotAttention), nullptr, "", walk_.peeled);
  }

  /// The axis of the softmax's result along which NODE picks; nullopt if that is the keys', or too much has been done before.
  std::optional<size_t> axis_picked_by(const Node& node) {
    const bool is_other = walk_.guard || walk_.sinks || walk_.row_split || walk_.regrouped || !walk_.steps.empty() ||
                          !walk_.escaping.empty() || divided_late_ || node.outputs.size() != 1 || !node.outputs[0];
    const auto keys = keys_from_last();
    const auto axis = is_other || !keys ? std::nullopt : picked_axis(*node.outputs[0], facts_);
    if (!axis) return std::nullopt;
    const size_t from_end = facts_.shape(*node.inputs[0]).known().size() - 1 - *axis;
    return from_end == *keys ? std::nullopt : std::optional(*axis + (walk_.transposed && from_end < 2 ? 2 * from_end - 1 : 0));
  }

  /// True if NODE adds or leaves out axes of size 1, and moves_axes() by that.
  bool moves_unit_axes(const Node& node) {
    const MaybeShape before = facts_.shape(*value_), after = facts_.shape(*node.outputs[0]);
    const auto origins = before && after ? unit_moves(*before, *after) : std::nullopt;
    const bool names_sizes = !node.is("Squeeze") && !node.is("Unsqueeze");  // which what is added may lack
    if (names_sizes && std::ranges::any_of(walk_.steps, &LinearStep::adds)) return false;
    return origins && moves_axes(*origins, before->size());
  }

  /// Takes a node, which makes the axis ORIGINS[i] of RANK its axis i, or one of size 1 if that is kNoAxis, for one that puts
  /// the axes of the softmax's result in the product's places, or for the next of several that do together. What stood above
  /// would lie otherwise.
  bool moves_axes(const std::vector<int64_t>& origins, size_t rank) {
    if (walk_.regrouped) return false;
    std::vector<int64_t> before = walk_.perm;
    if (before.empty()) {
      before.resize(rank);
      std::iota(before.begin(), before.end(), 0);
    }
    if (before.size() != rank) return false;
    if (walk_.transposed) std::swap(before[before.size() - 2], before.back());
    walk_.transposed = false;
    walk_.perm.clear();
    for (const int64_t axis : origins) walk_.perm.push_back(axis == kNoAxis ? kNoAxis : before[static_cast<size_t>(axis)]);
    return true;
  }

  /// What nodes from FIRST on, each the only reader of the one before, make by regrouping rows, where the keys have their axis
  /// again: the softmax takes each row by itself. What stood above would be of other rows. Null if there is none.
  Value* end_of_rows(Node& first) {
    const MaybeShape before = facts_.shape(*value_);
    const bool guards_other_rows = walk_.guard && (walk_.guard_transposed || !walk_.guard_perm.empty());
    if (keys_from_last() != 0 || guards_other_rows || std::ranges::any_of(walk_.steps, &LinearStep::adds) || walk_.regrouped ||
        !before || before->empty())
      return nullptr;
    for (Value* made : regroupings(first, kMaxTogether, facts_)) {
      const MaybeShape after = facts_.shape(*made);
      if (!after || after->size() < 2 || !is_taken_for(before->back(), after->back(), facts_) || unit_moves(*before, *after))
        continue;
      walk_.row_split = rows_regrouped(*before, *after);
      walk_.guard_step.reset();  // of rows that the product does not have
      return made;
    }
    return nullptr;
  }

  Matched<Value*> pass(Node& node) {
    Value* next = node.outputs[0];
    if (node.inputs[0] != value_ || !next) return missed("probabilities.operand", &node, "not its first input", walk_.peeled);
    if (node.is("Cast") || node.is("CastLike")) {
      if (!is_floating(facts_.type(*next)))
        return missed("probabilities.cast", &node, type_name(facts_.type(*next)), walk_.peeled);
    } else if (node.is("Transpose")) {
      next = has_keys_last() ? end_of_chain(*value_, node, swapped_from, facts_) : nullptr;
      walk_.transposed = walk_.transposed != (next != nullptr);
      const std::vector<int64_t> perm = permutation(node, facts_);
      if (!next && perm.size() >= 2 && moves_axes(perm, perm.size())) next = node.outputs[0];
      if (!next) return missed("probabilities.transpose", &node, "more than a swap of queries and keys", walk_.peeled);
    } else if (const auto cut = cut_here(node)) {
      if (!walk_.perm.empty() || walk_.guard || walk_.has_turned_steps() || !are_alike_for_keys(walk_.steps, keys_, facts_))
        return missed("probabilities.operator", &node, "columns cut off probabilities that were changed", walk_.peeled);
      walk_.sinks = cut->columns.with(walk_.sinks.value_or(CutColumns()));
      next = cut->rest;
    } else if (const auto axis = axis_picked_by(node)) {
      walk_.picked.push_back({next, *axis});
    } else if (node.is("Dropout")) {
      return missed("probabilities.dropout", &node, "in training mode", walk_.peeled);
    } else {
      bool moves = !has_keys_last() && moves_unit_axes(node);
      if (!moves) next = end_of_chain(*value_, node, regrouped_from, facts_);
      if (!next) next = end_of_rows(node);
      if (!next) moves = moves_unit_axes(node);
      if (moves) next = node.outputs[0];
      walk_.regrouped |= next && !moves;
      if (!next) return missed("probabilities.reshape", &node, node.op() + " of queries or keys", walk_.peeled);
    }
    walk_.peeled.push_back(node.op());
    return next;
  }

  Value* value_;
  Value* softmax_;                ///< what it makes
  size_t keys_;                   ///< of the softmax's result; where they are asked for, no axis has moved
  const Node* sum_;               ///< adds up what is divided behind the product
  const Node* divided_late_;      ///< what makes what is divided behind the product
  const Node* wanted_;            ///< of several products; null: the first
  const Node* branch_ = nullptr;  ///< the product whose branch is followed alone from BRANCH_AT_ on
  const Value* branch_at_ = nullptr;
  bool parts_axes_;
  MatchContext& context_;
  Facts& facts_;
  ProbabilityWalk walk_;
  std::vector<Value*> seen_;  ///< probabilities on the way
};

}  // namespace

Matched<ProbabilityWalk> walk_probabilities(const SoftmaxSite& softmax, const Node* wanted, MatchContext& context,
                                            bool parts_axes) {
  return ProbabilityWalker(softmax, wanted, parts_axes, context).run();
}

}  // namespace attn_opt
