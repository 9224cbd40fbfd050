#include "src/verify/site_cut.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "attn_opt/canonical.h"
#include "attn_opt/executor.h"
#include "attn_opt/operator_traits.h"
#include "src/emit/equal_sizes.h"
#include "src/verify/twin_inputs.h"

namespace attn_opt {
namespace {

using ValueSet = std::unordered_set<const Value*>;

bool is_of_file(const Node& node) { return node.placement == Placement::kOfFile; }

/// True of what a node that this edit or an earlier one wrote makes.
bool is_written(const Value& value) { return value.producer && !is_of_file(*value.producer); }
/// True of what was not there before, such as a mask expanded for several layers.
bool is_made_by_edit(const Value& value) { return value.is_new && is_written(value); }

class SiteCutter {
 public:
  SiteCutter(const Emission& emission, const Sdpa& sdpa, const CutContext& context)
      : emission_(emission), sdpa_(sdpa), context_(context) {}

  Expected<CutSite> cut() {
    // A mask that positions make is not drawn: the model's own is what both sides have. Nor is one of ones and zeros.
    for (const ScoreTerm& term : sdpa_.terms)
      if (term.causal || is_cast_by_edit(*term.value)) compute(*term.value);
    for (Value* value : emission_.computed) compute(*value);
    for (const auto& takeover : emission_.edit.takeovers()) {
      site_.replaced.push_back(takeover.existing);
      site_.written.push_back(takeover.made);
    }
    do {
      ATTN_OPT_CHECK(cut_after());
      do {
        ATTN_OPT_CHECK(cut_before());
      } while (uncut_made() || uncut_dependent() || uncut_copies() || uncut_earlier());
    } while (uncut_written());
    ATTN_OPT_CHECK(refuse_random());
    ATTN_OPT_CHECK(describe_inputs());
    choose_probes();
    site_.target = emission_.target;
    site_.attention_inputs = emission_.given();
    return std::move(site_);
  }

 private:
  static constexpr size_t kOperands = 3;

  std::array<const Operand*, kOperands> operands() const { return {&sdpa_.q, &sdpa_.k, &sdpa_.v}; }

  bool is_fixed(const Value& value) const { return context_.facts.constant(value) || context_.facts.uniform(value); }
  static bool is_cast_by_edit(const Value& value) { return is_written(value) && value.producer->is("Cast"); }

  /// VALUE is no cut, nor what a pattern made it of; shapes are the same whatever is drawn, and integers drawn as is legal.
  void compute(Value& value) {
    std::vector<Value*> pending{&value};
    while (!pending.empty()) {
      Value* next = pending.back();
      pending.pop_back();
      if (std::ranges::find(sdpa_.legal_integers, next, &LegalIntegers::value) != sdpa_.legal_integers.end()) continue;
      if (!computed_.insert(next).second || !is_written(*next)) continue;
      if (next->producer->is("Shape")) continue;
      for (Value* input : next->producer->inputs)
        if (input) pending.push_back(input);
    }
  }

  Status cut_after() {
    const std::unordered_set<const Node*> own(emission_.edit.nodes().begin(), emission_.edit.nodes().end());
    const std::function<bool(Value&)> is_existing = [&](Value& value) {
      return !own.count(value.producer) && !is_made_by_edit(value) && !written_.count(&value);
    };
    given_leaves_.clear();
    read_by_after_.clear();
    std::vector<Value*> made = site_.written;
    // A mask that the node says by an attribute, where the description made it: rows that it leaves no key are told by it.
    for (const ScoreTerm& term : sdpa_.terms)
      if (term.causal && is_made_by_edit(*term.value)) made.push_back(term.value);
    ATTN_OPT_TRY(site_.after, cone_of(made, is_existing, kMaxSiteNodes));
    for (Value* given : emission_.given()) {
      given_leaves_.push_back({given});
      if (!given || is_existing(*given)) continue;
      ATTN_OPT_TRY(const Cone above, cone_of({given}, is_existing, kMaxSiteNodes));
      given_leaves_.back() = {above.leaves.begin(), above.leaves.end()};
    }
    for (const Node* node : site_.after.nodes)
      if (!node->is("Shape") && !node->is("Size"))
        for (const Value* value : node->inputs)
          if (value) read_by_after_.insert(value);
    const ValueSet leaves(site_.after.leaves.begin(), site_.after.leaves.end());
    for (const Value* value : site_.replaced)
      if (leaves.count(value))
        return fail(ErrorCode::kInvalidInput, value->name, "what is written reads the value that it makes");
    return {};
  }

  Status cut_before() {
    const ValueSet boundary(site_.after.leaves.begin(), site_.after.leaves.end());
    const std::function<bool(Value&)> is_leaf = [&](Value& value) {
      if (computed_.count(&value)) return false;
      if (is_written(value)) return true;
      const bool is_boundary = boundary.count(&value) && read_by_after_.count(&value);
      const auto is_known = [&] { return known(value).source != SiteInput::Source::kDrawn && !is_known_by_calls(value); };
      return !is_counted(value, context_.facts) && (is_boundary || is_known());
    };
    ATTN_OPT_TRY(site_.before, cone_of(site_.replaced, is_leaf, kMaxSiteNodes));
    return {};
  }

  /// True if what is known of VALUE hangs on attributes that calls of functions tell: the side before makes it as the model
  /// that was read does.
  bool is_known_by_calls(Value& value) {
    std::vector<Value*> pending{&value};
    ValueSet seen{&value};
    for (size_t nodes = 0; !pending.empty() && nodes < kMaxDependenceNodes; ++nodes) {
      const Node* producer = pending.back()->producer;
      pending.pop_back();
      if (!producer) continue;
      if (context_.read.takes_attributes(*producer)) return true;
      for (Value* input : reads_of(*producer))
        if (known(*input).source != SiteInput::Source::kDrawn && seen.insert(input).second) pending.push_back(input);
    }
    return false;
  }

  /// A cut value that another output's node in the cone makes as well, or one makes alike, is no cut. False if there is none.
  bool uncut_made() {
    before_nodes_ = {site_.before.nodes.begin(), site_.before.nodes.end()};
    bool found = false;
    for (Value* leaf : site_.before.leaves)
      if (made_before(*leaf) ||
          (known(*leaf).source == SiteInput::Source::kDrawn && is_made_alike(*leaf, site_.before.nodes, context_.facts)))
        found |= computed_.insert(leaf).second;
    return found;
  }

  /// Where the side after reads a value that the side before does not, being cut below it, the cuts below it are none:
  /// they are computed from it. So are scores that an Attention node of an earlier edit makes, copies of a cut value, for which
  /// it may have been read, and cuts that one operand lies behind and the side after reads it above. False if there are none.
  bool uncut_dependent() {
    const ValueSet reached(site_.before.leaves.begin(), site_.before.leaves.end());
    const ValueSet read_after(site_.after.leaves.begin(), site_.after.leaves.end());
    bool found = false;
    // What an earlier edit wrote is read by both sides, and what it is computed from by one. What such an edit's node reads may
    // stand above what the site's own nodes read; so may what a guard of rows, or booleans, are made of.
    const bool has_earlier = holds_earlier();
    for (Value* below : site_.before.leaves)
      for (Value* value : site_.before.leaves) {
        const bool is_guarded =
            context_.computes_masks && !read_after.count(value) && !is_given_operand(*below) && is_reduced_alone(*value);
        const bool is_of_value = !is_given_operand(*below) && are_booleans_of(*below, *value, context_.facts);
        const bool may_be_bound = has_earlier || is_written(*below) || is_guarded || is_of_value;
        if (below->producer && may_be_bound && is_bound_to(*below, *value)) found |= computed_.insert(below).second;
      }
    for (Value* value : site_.after.leaves) {
      if (made_before(*value) || !read_by_after_.count(value)) continue;
      if (known(*value).source != SiteInput::Source::kDrawn) continue;
      for (Value* below : site_.before.leaves) {
        const bool is_cut = read_after.count(below) || is_written(*below);
        const bool are_copies = &canonical(*below, context_.facts) == &canonical(*value, context_.facts);
        if (!is_cut || (reached.count(value) && !are_copies && !is_passed(*below, *value))) continue;
        if (is_bound_to(*below, *value)) found |= computed_.insert(below).second;
      }
    }
    return found;
  }

  /// True if the side before holds nodes that an earlier edit wrote.
  bool holds_earlier() const {
    return std::ranges::any_of(site_.before.nodes, [](const Node* node) { return !is_of_file(*node); });
  }

  /// What an Attention node that an earlier edit wrote is given is computed by the side before from values of the model: an
  /// operand that the side after reads may be of the same. False if there is none.
  bool uncut_earlier() {
    bool found = false;
    for (const Node* node : site_.before.nodes) {
      if (is_of_file(*node)) continue;
      for (Value* input : node->inputs)
        if (input && is_written(*input)) found |= computed_.insert(input).second;
    }
    return found;
  }

  /// Values that an earlier edit wrote, such as its presents, and that the side before makes in its own way from what it reads:
  /// the side after computes them, and what is made of values that the side before reads at such an edit's node. False if none.
  bool uncut_written() {
    const std::vector<Value*>& read = site_.before.leaves;
    const bool has_earlier = holds_earlier();
    bool found = false;
    for (Value* value : site_.after.leaves) {
      if (!value->producer || !read_by_after_.count(value) || made_before(*value)) continue;
      if (std::ranges::find(read, value) != read.end()) continue;
      const bool was_written = is_written(*value);
      if (!was_written && !(has_earlier && known(*value).source == SiteInput::Source::kDrawn)) continue;
      const auto is_made_of = [&](Value* above) { return was_written ? depends(*value, *above) : is_bound_to(*value, *above); };
      if (std::ranges::any_of(read, is_made_of)) found |= written_.insert(value).second;
    }
    return found;
  }

  /// Where one value is cut under several names, those that are copies are computed from it: each would be drawn. False if
  /// there are none. Q, K and V may be one value: they are drawn apart, which shows more.
  bool uncut_copies() {
    std::unordered_map<const Value*, Value*> cut;
    bool found = false;
    for (Value* leaf : site_.before.leaves) {
      if (known(*leaf).source != SiteInput::Source::kDrawn) continue;
      const Value& source = canonical(*leaf, context_.facts);
      Value* const other = cut.try_emplace(&source, leaf).first->second;
      if (other == leaf || is_operand_apart(*leaf, *other) || is_operand_apart(*other, *leaf)) continue;
      for (Value* copy : {leaf, other}) found |= copy != &source && computed_.insert(copy).second;
    }
    return found;
  }

  /// True if BELOW is Q, K or V of this site, and none of these as ABOVE: it is drawn. Layers one behind the other would each
  /// be run with all that stands above them.
  bool is_operand_apart(const Value& below, const Value& above) const {
    bool is_operand = false;
    for (const Operand* operand : operands()) {
      if (!operand->has_view(below)) continue;
      const auto past = std::ranges::find(operand->views, &above, &OperandView::past);  // of new rows that may be known
      if (operand->has_view(above) || (past != operand->views.end() && is_fixed(*past->value))) return false;
      is_operand = true;
    }
    return is_operand;
  }

  /// True if the side after makes Q, K or V of VALUE.
  bool is_given_operand(const Value& value) const {
    const auto operands = std::span(given_leaves_).first(std::min(given_leaves_.size(), kOperands));
    return std::ranges::any_of(operands, [&](const ValueSet& leaves) { return leaves.contains(&value); });
  }

  /// True if the side before takes a number for each row of VALUE, and of no scores.
  bool is_reduced_alone(const Value& value) const {
    return std::ranges::any_of(site_.before.nodes, [&](const Node* node) {
      Value* made = has(*node, Trait::kReduces) ? node->output(0) : nullptr;
      return made && depends(*made, value) && std::ranges::none_of(site_.before.leaves, [&](const Value* leaf) {
               return is_given_operand(*leaf) && depends(*made, *leaf);
             });
    });
  }

  /// True if BELOW, a cut, has to be computed from ABOVE.
  bool is_bound_to(Value& below, const Value& above) const {
    return &below != &above && !is_operand_apart(below, above) && depends(below, above);
  }

  /// True if the side before reads Q, K or V behind BELOW, and the side after at ABOVE.
  bool is_passed(const Value& below, const Value& above) const {
    for (size_t index = 0; index < std::min(given_leaves_.size(), kOperands); ++index) {
      const Operand& operand = *operands()[index];
      const ValueSet& leaves = given_leaves_[index];
      if (operand.views.empty()) continue;
      if (leaves.count(&above) && !leaves.count(&below) && depends(*operand.views.front().value, below, leaves)) return true;
    }
    return false;
  }

  bool made_before(const Value& value) const { return value.producer && before_nodes_.count(value.producer); }

  /// What is known of VALUE's contents without running anything.
  const SiteInput& known(Value& value) {
    auto [entry, is_new] = known_.try_emplace(&value);
    SiteInput& input = entry->second;
    if (!is_new) return input;
    input.value = &value;
    input.type = context_.facts.type(value);
    if (const MaybeShape shape = context_.facts.shape(value)) input.shape = *shape;
    join_equals(input.shape, value, context_.facts);
    if (fill_fixed(value, input)) {
      input.source = SiteInput::Source::kFixed;
    } else if (fill_integers(value, input)) {
      input.source = SiteInput::Source::kIntegers;
    } else if (auto uniform = context_.facts.uniform(value); uniform && context_.facts.shape(value)) {
      input.source = SiteInput::Source::kUniform;
      input.uniform = *uniform;
    }
    return input;
  }

  bool fill_fixed(Value& value, SiteInput& input) {
    if (const Tensor* constant = context_.facts.constant(value)) {
      input.fixed = *constant;
    } else if (value.initializer) {
      auto tensor = to_tensor(*value.initializer, context_.tensors);
      if (!tensor) return false;
      input.fixed = *std::move(tensor);
    }
    return input.fixed.has_value();
  }

  bool fill_integers(Value& value, SiteInput& input) {
    const IntegerData* data = context_.facts.integers(value);
    if (!data || !std::ranges::all_of(data->values, [](const Dim& d) { return d.from_sizes(); })) return false;
    input.integers = *data;
    return true;
  }

  /// What is drawn cannot be compared.
  Status refuse_random() const {
    for (const Cone* cone : {&site_.before, &site_.after})
      for (const Node* node : cone->nodes)
        if (is_random(*node->proto) && !is_no_op(*node, context_.facts))
          return fail(ErrorCode::kUnsupported, node->proto->name(), "the result of " + node->op() + " is random");
    return {};
  }

  Status describe_inputs() {
    ValueSet seen;
    for (const Cone* cone : {&site_.before, &site_.after})
      for (Value* value : cone->leaves) {
        if (!seen.insert(value).second) continue;
        if (made_before(*value) && (read_by_after_.count(value) || is_counted(*value, context_.facts)))
          site_.handed_over.push_back(value);
        else
          ATTN_OPT_CHECK(describe(*value, cone == &site_.before || read_by_after_.count(value)));
      }
    return {};
  }

  Status describe(Value& value, bool is_read) {
    SiteInput input = known(value);
    if (input.type == onnx::TensorProto::UNDEFINED) return fail(ErrorCode::kUnsupported, value.name, "its type is not known");
    if (!context_.facts.shape(value)) return fail(ErrorCode::kUnsupported, value.name, "its rank is not known");
    if (input.source == SiteInput::Source::kDrawn && !is_read) input.source = SiteInput::Source::kShapeOnly;
    if (input.source == SiteInput::Source::kDrawn && is_floating(input.type))
      input.extremes = mask_contents(value, context_.facts);
    if (const IntegerData* data = context_.facts.integers(value)) input.integers = *data;
    site_.inputs.push_back(std::move(input));
    return {};
  }

  /// True for what a side is given or makes.
  bool is_there(const Value& value) const {
    const bool is_given = std::ranges::any_of(site_.inputs, [&](const SiteInput& input) { return input.value == &value; });
    return is_given || made_before(value) || site_.is_made_after(value);
  }

  /// Operands and terms that a side computes, for the bounds of the judgement.
  void choose_probes() {
    site_.probes = site_.handed_over;
    auto probe = [&](Value* value) {
      if (!value || (!made_before(*value) && !site_.is_made_after(*value))) return;
      auto& probes = made_before(*value) ? site_.probes : site_.probes_after;
      if (std::ranges::find(probes, value) == probes.end()) probes.push_back(value);
    };
    for (const Operand* operand : operands())
      for (const auto& view : operand->views) {
        if (!is_there(*view.value)) continue;  // a description's own value that nothing needs
        probe(view.value);
        probe(view.past);
        break;
      }
    for (const auto& term : sdpa_.terms) {
      probe(term.value);
      // What a node between makes of a constant mask, as Not, is a constant too, which alone is read.
      if (!is_there(*term.value) && known(*term.value).source == SiteInput::Source::kFixed)
        site_.constants.push_back(known(*term.value));
    }
    for (const auto& scale : sdpa_.tensor_scales) probe(scale.value);
    probe(sdpa_.nonpad_kv_seqlen);
  }

  const Emission& emission_;
  const Sdpa& sdpa_;
  const CutContext& context_;
  CutSite site_;
  ValueSet read_by_after_;              ///< for more than their shape
  std::vector<ValueSet> given_leaves_;  ///< what Q, K, V and so on are made of, as Emission::given() has them
  ValueSet written_;                    ///< by earlier edits, and computed by the side after
  ValueSet computed_;                   ///< by the side before, though known or read by the side after
  std::unordered_set<const Node*> before_nodes_;
  std::unordered_map<const Value*, SiteInput> known_;
};

}  // namespace

bool CutSite::is_made_after(const Value& value) const {
  return value.producer && std::ranges::find(after.nodes, value.producer) != after.nodes.end();
}

Expected<CutSite> cut_site(const Emission& emission, const Sdpa& sdpa, const CutContext& context) {
  return SiteCutter(emission, sdpa, context).cut();
}

}  // namespace attn_opt
