#include "patterns/softmax/late_division.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/probabilities/factor_maps.h"
#include "patterns/probabilities/part_moves.h"
#include "patterns/probabilities/segmented_product.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/readers.h"
#include "patterns/softmax/row_reduction.h"
#include "patterns/softmax/row_sum.h"
#include "patterns/softmax/shares.h"
#include "patterns/softmax/weights.h"
#include "src/match/cut_range.h"

namespace attn_opt {
namespace {

/// Weights that a product reads, and how their axes lie.
struct ReadWeights {
  FactorSide terms;
  Weights read;
};

/// Of what nodes that move or cast it make an operand of a product of, of AXES there, and of that itself, those that are
/// weights.
std::vector<ReadWeights> weights_behind(FactorSide operand, Node& reader, MatchContext& context) {
  std::vector<ReadWeights> found;
  for (int step = 0; step < kMaxTogether; ++step) {
    operand.value = &before_float_casts(*operand.value, context.facts);
    if (auto read = weights_in(*operand.value, reader, context)) found.push_back({operand, *std::move(read)});
    const auto views = walk_movement({operand.value, operand.axes}, context).views;
    if (views.size() < 2) break;
    operand = {views[1].value, views[1].axes};
  }
  return found;
}

/// What a node divides, which is made of a product with V by moves and linear maps.
class DividedRows {
 public:
  /// Of weights that are WANTED, if that is not null.
  DividedRows(Node& division, size_t numerator, const Value* wanted, MatchContext& context)
      : division_(division), numerator_(numerator), wanted_(wanted), context_(context) {}

  std::optional<SoftmaxSite> find() { return above(numerator()); }

 private:
  /// What is divided, before it is cast for that.
  Value& numerator() { return before_float_casts(*division_.inputs[numerator_], context_.facts); }

  static constexpr int kMostVisits = 12;

  std::optional<SoftmaxSite> above(Value& value) {
    Node* node = canonical(value, context_.facts).producer;
    if (!node || visits_ == kMostVisits || maps_.size() == kMaxTogether) return std::nullopt;
    ++visits_;
    if (makes_product(*node, context_.facts))
      if (auto site = of(*node, *node, operands_of(*node, context_.facts).size())) return site;
    if (node->is("Concat") || has(*node, Trait::kAdds))
      if (auto site = of_parts(*node)) return site;
    for (size_t input = 0; input < inputs_mapped(*node); ++input) {
      maps_.push_back({node, input});
      auto site = above(*node->inputs[input]);
      maps_.pop_back();
      if (site) return site;
    }
    return std::nullopt;
  }

  /// Products in parts, of which JOINT makes one, above all maps.
  std::optional<SoftmaxSite> of_parts(Node& joint) {
    for (Value* whole : multiplied_in_parts(joint)) {
      const MaybeShape shape = context_.facts.shape(*whole);
      const Readers readers = readers_of(*whole, context_.facts);
      for (size_t keys = 0; shape && keys < shape->size(); ++keys) {
        const auto parts = segmented_product(readers, *whole, keys, context_);
        auto site = parts && parts->whole->producer == &joint ? of(*parts->product, joint, 1) : std::nullopt;
        if (site) return site;
      }
    }
    return std::nullopt;
  }

  /// What the first of the products that JOINT joins multiplies, each operand as it was before it was cut.
  std::vector<Value*> multiplied_in_parts(const Node& joint) {
    Facts& facts = context_.facts;
    const Node* node = &joint;
    for (int step = 0; step < kMaxTogether && node && !makes_product(*node, facts); ++step)
      node = node->input(0) ? before_moves(*node->inputs[0], facts).value->producer : nullptr;
    if (!node || !makes_product(*node, facts)) return {};
    std::vector<Value*> wholes;
    for (Value* operand : operands_of(*node, facts)) {
      Value* whole = &canonical(*operand, facts);
      for (int step = 0; step < kMaxTogether; ++step) {
        const Node* cut = before_moves(*whole, facts).value->producer;
        if (!cut || !cuts_out(*cut)) break;
        whole = &canonical(*cut->inputs[0], facts);
      }
      wholes.push_back(whole);
      if (Value* unmoved = &canonical(*before_moves(*whole, facts).value, facts); unmoved != whole) wholes.push_back(unmoved);
    }
    return wholes;
  }

  /// PRODUCT, which MAKER makes the result of, above all maps, of weights that are one of its first OPERANDS.
  std::optional<SoftmaxSite> of(Node& product, const Node& maker, size_t operands) {
    for (size_t at = 0; at < operands; ++at) {
      Value* operand = operands_of(product, context_.facts)[at];
      const auto whole = operand ? value_product(product, *operand, context_) : tl::unexpected(Miss());
      const auto maps = whole ? factor_maps(*operand, *whole, context_.facts) : std::nullopt;
      if (!maps) continue;
      for (const ReadWeights& weights : weights_behind(maps->probabilities, division_, context_)) {
        if (wanted_ && wanted_ != weights.terms.value) continue;
        if (auto site = divided_by_sums(weights, *maps, maker); site && enter_maps(*site)) return site;
      }
    }
    return std::nullopt;
  }

  std::optional<SoftmaxSite> divided_by_sums(const ReadWeights& weights, const FactorMaps& maps, const Node& product) {
    Value& terms = *weights.terms.value;
    Value* divisor = divisor_beside(weights.terms, maps.output.axes);
    const size_t rank = context_.facts.shape(terms).known().size();
    const auto sum = divisor ? row_sum(*divisor, !division_.is("Div"), rank, division_, context_) : std::nullopt;
    const auto keys =
        sum && sum->rows.node != &product ? summed_axis(*sum, terms, weights.read, false, division_, context_) : std::nullopt;
    auto site = keys ? softmax_over(*sum, *keys, weights.read, division_, context_) : std::nullopt;
    if (!site) return std::nullopt;
    site->output = &terms;
    site->sum = sum->rows.node;
    site->product = &product;
    site->divided = division_.outputs[0];
    return site;
  }

  /// What the node divides by, or multiplies with, as it broadcasts to TERMS, the weights that make Y of AXES; null if it does
  /// not.
  Value* divisor_beside(const FactorSide& terms, AxisMap axes) {
    for (size_t i = maps_.size(); i-- > 0;) {
      auto behind = axes_behind(maps_[i], axes, context_);
      if (!behind) return nullptr;
      axes = *std::move(behind);
    }
    const FactorSide divided{division_.inputs[numerator_], std::move(axes)};
    const Broadcast divisor = broadcast_of(*division_.inputs[1 - numerator_], divided, context_);
    return placed_beside(divisor, Role::kRow, terms, false, division_, context_);
  }

  /// Enters in SITE where the linear maps begin; false if what they map with is made of Y.
  bool enter_maps(SoftmaxSite& site) {
    const auto moves = [](const RowMap& map) { return map.moves(); };
    site.maps.assign(maps_.rbegin(), maps_.rend());
    site.maps.erase(site.maps.begin(), std::ranges::find_if_not(site.maps, moves));
    Value& moved = site.maps.empty() ? numerator() : site.maps.front().rows();
    site.moved = &canonical(moved, context_.facts);
    return std::ranges::none_of(site.maps, [&](const RowMap& map) {
      return std::ranges::any_of(map.node->inputs, [&](const Value* input) {
        return input && input != &map.rows() && is_made_of(*input, *site.product->outputs[0]);
      });
    });
  }

  Node& division_;
  size_t numerator_;
  const Value* wanted_;
  MatchContext& context_;
  std::vector<RowMap> maps_;  ///< from what is divided upwards
  int visits_ = 0;
};

/// Enters in SOFTMAX what its product is moved to before it is divided, by sums that are known to be its rows' wherever they
/// lie; false if they are not.
bool moved_before_division(SoftmaxSite& softmax, MatchContext& context) {
  Node& division = *softmax.divided->producer;
  for (size_t numerator = 0; numerator < (division.is("Div") ? 1U : 2U); ++numerator) {
    auto site = DividedRows(division, numerator, softmax.output, context).find();
    if (!site || site->product != softmax.product) continue;
    softmax.moved = site->moved;
    softmax.maps = std::move(site->maps);
    return true;
  }
  return false;
}

/// SHAPE with its last two axes swapped if IS_SWAPPED.
Shape turned(MaybeShape shape, bool is_swapped) {
  if (!shape || shape->size() < 2) return {};
  Shape turned = *shape;
  if (is_swapped) std::swap(turned[turned.size() - 2], turned.back());
  return turned;
}

/// True if what is divided is known to have the sizes of OUTPUT, which the product of WALK makes, and what is summed those of
/// what it reads.
bool has_known_sizes(const SoftmaxSite& softmax, const ProbabilityWalk& walk, const ProductSide& output, Facts& facts) {
  Shape made = turned(facts.shape(*output.value), softmax.swapped);
  const Shape divided = turned(facts.shape(*softmax.divided), false);
  if (softmax.values && made.size() == divided.size())
    made[made.size() - 1 - softmax.features] = divided[made.size() - 1 - softmax.features];
  Shape summed = turned(facts.shape(*softmax.output), false);
  const Shape read = turned(facts.shape(*walk.probabilities), walk.transposed);
  if (walk.sinks && !read.empty()) summed.back() = read.back();
  // Factors of an elementwise product have an axis for the features.
  return !made.empty() && made == divided && !summed.empty() && (summed == read || unit_moves(summed, read));
}

}  // namespace

std::optional<SoftmaxSite> divided_moved_product(Node& node, size_t numerator, MatchContext& context) {
  return DividedRows(node, numerator, nullptr, context).find();
}

bool is_divided_late(const SoftmaxSite& softmax, const ProbabilityWalk& walk) {
  return softmax.divided && softmax.divided != walk.summed;
}

Matched<void> divide_behind_product(SoftmaxSite& softmax, Reading& reading, MatchContext& context) {
  const ProbabilityWalk& walk = reading.probabilities;
  if (!is_divided_late(softmax, walk)) return {};
  ProductSide& output = reading.value_product.output;
  ProductSide& values = reading.value_product.value;
  const auto miss = [&](const char* why) {
    return missed("softmax.divided-late", softmax.divided->producer, why, walk.peeled);
  };
  if (softmax.values) {
    const MaybeShape own = context.facts.shape(*softmax.values);
    if (!own || own->size() > values.roles.size()) return miss("values of another rank than what is multiplied with them");
    values.value = InnerValues(*walk.product, context).raised(softmax.values, values.roles.size());
  }
  if (walk.last_node() != softmax.product) return miss("another product of the exponentials is divided");
  // Of what rows are chosen 0 by, the sums may be divided by later; of what was NaN they are NaN.
  const bool hides_nan = walk.guard && (walk.guard->asks_each() || walk.guard->hides_nan);
  const bool are_exponentials = softmax.sum || !walk.summed;
  if (hides_nan && are_exponentials) return miss("the exponentials are changed before the product");
  const bool may_be_moved = std::ranges::all_of(walk.steps, &LinearStep::is_number) && !walk.sinks;
  if (softmax.moved) return may_be_moved ? Matched<void>() : miss("the exponentials are changed before the product");
  const bool is_plain = may_be_moved && !softmax.values && !softmax.swapped;
  const auto moved_or_miss = [&](const char* why) {
    return is_plain && moved_before_division(softmax, context) ? Matched<void>() : miss(why);
  };
  if (!has_known_sizes(softmax, walk, output, context.facts)) return moved_or_miss("sizes that are not known to be equal");
  std::vector<Role> roles = output.roles;
  if (softmax.swapped) std::swap(roles[roles.size() - 2], roles.back());
  const ScoreLayout& layout = reading.value_product.probabilities;
  const bool keeps_order = output.order.empty() && walk.perm.empty() && (layout.order.empty() || layout.swaps_last_two());
  const auto features = roles.end() - 1 - static_cast<std::ptrdiff_t>(softmax.features);
  const auto rows = roles.end() - 2 + static_cast<std::ptrdiff_t>(softmax.features);
  const size_t rank = context.facts.shape(*softmax.output).known().size();
  const bool has_rows = roles.size() == rank && *rows == Role::kRow && *features == Role::kFeature &&
                        std::is_sorted(roles.begin(), roles.end() - 2);
  if (!keeps_order || !has_rows) return moved_or_miss("the sums do not lie as the rows of the product do");
  output.value = softmax.divided;
  output.roles = std::move(roles);
  return {};
}

void take_summed(Reading& reading, SoftmaxSite& softmax, Facts& facts) {
  Value* summed = reading.probabilities.summed;
  Value*& output = reading.value_product.output.value;
  const MaybeShape made = facts.shape(*output), whole = summed ? facts.shape(*summed) : nullptr;
  if (!summed || (softmax.moved && softmax.moved->is_new)) return;
  if (!made || !whole || made->size() == whole->size()) {
    output = summed;
    return;
  }
  softmax.product = reading.probabilities.last_node();
  softmax.moved = output;
  softmax.divided = summed;
}

Matched<void> enter_moved_outputs(const SoftmaxSite& softmax, Sdpa& sdpa, MatchContext& context) {
  const AxisMap& made = sdpa.outputs.front().axes;
  if (const auto axes = softmax.moved->is_new ? axes_after(*softmax.moved->producer, made, context) : std::nullopt) {
    sdpa.outputs = walk_output(*softmax.divided, *axes, context);
    return {};
  }
  const auto moved = std::ranges::find_if(
      sdpa.outputs, [&](const OutputView& view) { return &canonical(*view.value, context.facts) == softmax.moved; });
  const auto miss = [&](const std::string& why) { return missed("softmax.divided-late", softmax.divided->producer, why); };
  if (moved == sdpa.outputs.end()) return miss("'" + softmax.moved->name + "' lies otherwise than Y");
  auto axes = std::optional(moved->axes);
  for (const RowMap& map : softmax.maps) axes = axes ? axes_behind(map, *axes, context) : std::nullopt;
  const MaybeShape whole = context.facts.shape(*softmax.divided);
  if (axes && whole && softmax.maps.empty()) axes = axes->regrouped(*whole);
  if (!axes) return miss("'" + softmax.divided->name + "' lies otherwise than Y");
  sdpa.output_steps = steps_of(softmax.maps);
  if (!sdpa.output_steps.empty()) sdpa.output_steps.front().axes = moved->axes;
  sdpa.outputs = walk_output(*softmax.divided, *axes, context);
  return {};
}

}  // namespace attn_opt
