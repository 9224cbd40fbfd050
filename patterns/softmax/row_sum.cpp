#include "patterns/softmax/row_sum.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/joined_parts.h"
#include "patterns/products/cut_columns.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/scaled_values.h"
#include "patterns/scores/conditions.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/lowered_scores.h"
#include "patterns/softmax/row_words.h"
#include "src/match/node_forms.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

/// What may be added to sums of exponentials of which one is 1.
constexpr double kMostAdded = 1e-6;
/// A number is 1 up to this.
constexpr double kRounding = 1e-6;
/// Factors of a logarithm that are looked through.
constexpr int kMostScales = 4;

/// Reads a divisor upward, a form at a time.
class SumReader {
 public:
  SumReader(Node& reader, MatchContext& context)
      : reader_(reader), context_(context), facts_(context.facts), forms_(reader, context) {}

  std::optional<RowSum> read(Value& value, bool inverse, size_t rank) {
    const TakenAxis sum = [this](const Node& node, const RowReduction& after) {
      axes_ = after.axes;
      return before_sum(node, after);
    };
    auto rows = reduction_in(value, rank, sum, [this](Value& seen) { return before_step(seen); }, facts_);
    const bool is_whole = std::abs(power_ - (inverse ? -1 : 1)) <= kRounding && std::isfinite(read_.factor);
    if (!rows || !is_whole || !sizes_.is_one()) return std::nullopt;
    read_.rows = *std::move(rows);
    if (inverse) read_.factor = 1 / read_.factor;
    for (AddedToSum& other : read_.others) other.raised -= std::log(read_.factor);
    if (read_.little) read_.little->raised -= std::log(read_.factor);
    return read_;
  }

  std::optional<RowSum> read_logarithm(Value& log, double factor, size_t rank) {
    log_factor_ = factor;
    return read(log, false, rank);
  }

 private:
  /// What the value at hand is in the divisor: that many of it.
  double share() const { return power_ < 0 ? 1 / read_.factor : read_.factor; }
  /// The divisor, or its inverse, is FACTOR times a power of what is read next: that is NUMBER times another.
  void multiply(double number) { read_.factor *= std::pow(is_absolute_ ? std::abs(number) : number, power_); }
  /// True where sums can be told from what is added to them.
  bool is_divisor() const { return std::abs(std::abs(power_) - 1) <= kRounding; }

  /// Log(t)  =>  t      c * Log(t)  =>  t, which stand times 1 / c
  Value* before_logarithm(Node& node) {
    if (node.is("Log")) return ends_logarithm() ? node.inputs[0] : nullptr;
    const auto [log, factor] = scaled_by(node, context_);
    *log_factor_ *= factor;
    return log;
  }

  /// True where what is read is a logarithm of what is read from there on, of which that is a power then.
  bool ends_logarithm() {
    power_ *= *std::exchange(log_factor_, std::nullopt);
    return power_ != 0;
  }

  Value* before_step(Value& value) {
    if (log_factor_) return before_logarithm(*value.producer);
    // Exp(Log(t))  =>  t      Pow(b, Log(t))  =>  t^ln(b)
    log_factor_ = log_of_base(*value.producer, facts_);
    if (log_factor_) return &exponent_input(*value.producer);
    if (read_.is_never_zero) return nullptr;  // of other numbers than the sum a bound means something else
    if (Value* power_of = before_power(*value.producer)) return power_of;
    if (Value* sized = sizes_.take_from(*value.producer, power_, facts_)) return sized;
    if (!is_divisor()) return nullptr;
    Value* bounded = sizes_.is_one() ? before_bound(*value.producer) : nullptr;
    return bounded ? bounded : before_form(value);
  }

  /// 1 / t  =>  t      t^c  =>  t      x / t  =>  t      t * t  =>  t      |t|  =>  t
  Value* before_power(const Node& node) {
    const auto number_at = [&](size_t at) {
      return node.input(static_cast<int>(at)) ? facts_.uniform(*node.inputs[at]).value_or(0) : 0;
    };
    const bool divides = node.is("Div") && number_at(0) != 0 && std::isfinite(number_at(0));
    const double power = divides || node.is("Reciprocal")                                            ? -1
                         : node.is("Pow")                                                            ? number_at(1)
                         : node.is("Sqrt")                                                           ? 0.5
                         : node.is("Mul") && computes_same(*node.inputs[0], *node.inputs[1], facts_) ? 2
                         : node.is("Abs")                                                            ? 1
                                                                                                     : 0;
    if (power == 0 || !std::isfinite(power)) return nullptr;
    if (divides) multiply(number_at(0));
    is_absolute_ |= node.is("Abs");
    read_.is_absolute |= std::abs(power) != 1 || node.is("Abs");
    power_ *= power;
    return node.inputs[divides ? 1 : 0];
  }

  /// Max(t, x)  =>  t      Clip(t, x)  =>  t, x being positive and less than t      Clip(t)  =>  t
  Value* before_bound(const Node& node) {
    if (node.is("Clip")) return before_clip(node);
    if (!node.is("Max") || node.inputs.size() != 2) return nullptr;
    for (const size_t at : {0, 1})
      if (Value* sum = bounded_by(facts_.uniform(*node.inputs[1 - at]), node.inputs[at])) return sum;
    return nullptr;
  }

  Value* before_clip(const Node& node) {
    const double largest = largest_finite(facts_.type(*node.outputs[0]));
    const auto least = clip_bound(node, 1, facts_), most = clip_bound(node, 2, facts_);
    if (!most || *most < largest) return nullptr;
    return least && *least <= -largest ? node.inputs[0] : bounded_by(least, node.inputs[0]);
  }

  /// SUM, no less than NUMBER; null if that may be more than it.
  Value* bounded_by(std::optional<double> number, Value* sum) {
    if (!number || !(*number > 0) || *number > kMostBound) return nullptr;
    read_.is_inexact = read_.is_never_zero = true;
    read_.bound = *number;
    return sum;
  }

  /// The nearest value that VALUE is a number times, plus what may be added to a sum, but perhaps where that is 0; null if
  /// there is none.
  Value* before_form(Value& value) {
    const MaybeShape whole = facts_.shape(value);
    const Value& seen = canonical(value, facts_);
    const auto is_sum = [&](Value& source) {
      const MaybeShape own = facts_.shape(source);
      if (&source == &seen || !own || !whole || *own != *whole || facts_.uniform(source) ||
          is_exponential_of_no_sum(unmoved(source, facts_)))
        return false;
      const auto form = forms_.in_terms_of(source, value);
      return form && (form->size() == 1 ? take_sum(form->front(), source) : take_selection(*form, source));
    };
    return nearest_source(value, is_sum, facts_);
  }

  /// False for exp() of a number of logarithms of a sum, which is a power of that sum.
  bool is_exponential_of_no_sum(Value& value) {
    static constexpr OperatorSet kLogarithms = {"ReduceLogSumExp", "ReduceLogSum", "Log"};
    const Node* node = canonical(value, facts_).producer;
    Value* exponent = node && log_of_base(*node, facts_) ? &exponent_input(*node) : nullptr;
    for (int step = 0; step < kMostScales && exponent; ++step) {
      Node* maker = canonical(*exponent, facts_).producer;
      if (!maker || kLogarithms.has(*maker)) return !maker;
      exponent = scaled_by(*maker, context_).first;
    }
    return is_exponential(value, context_);
  }

  /// Where(t > 0, t, 1)  =>  t      Where(t == 0, 1, t)  =>  t
  bool take_selection(const ScoreForm& form, Value& sum) {
    if (form.size() != 2 || form[0].guard.size() != 1 || form[0].scale != 0 || form[1].scale == 0) return false;
    const Literal& otherwise = form[0].guard[0];
    const double number = forms_.number_added(form, 0);
    bool is_zero = false;
    Value* asked = asked_for(*otherwise.condition, is_zero);
    if (!asked || is_zero != otherwise.holds || !std::isfinite(number) || number == 0 || forms_.number_added(form, 1) != 0)
      return false;
    if (!computes_same(*asked, sum, facts_)) return false;
    multiply(form[1].scale);
    read_.is_never_zero = true;
    if (!is_zero) read_.is_positive = otherwise.condition;
    return true;
  }

  /// The sum that CONDITION, of numbers t, asks for: true where t > 0, or where t = 0 if IS_ZERO; null if it asks for anything
  /// else.
  Value* asked_for(Value& condition, bool& is_zero) {
    Value* sum = nullptr;
    const Matcher above = either({op("Greater", {any(&sum), number_is(0)}), op("Less", {number_is(0), any(&sum)})});
    const Matcher zero = either({commuted("Equal", any(&sum), number_is(0)), op("LessOrEqual", {any(&sum), number_is(0)})});
    is_zero = zero(condition, facts_);
    return is_zero || above(condition, facts_) ? sum : nullptr;
  }

  /// a t + b  =>  t, b being positive and as good as nothing      t + Cast(t == 0)  =>  t      a t + b + c Exp(x)  =>  t
  bool take_sum(const ScoreCase& read, Value& sum) {
    if (read.scale == 0 || !std::isfinite(read.scale)) return false;
    if (!sizes_.is_one() && (read.number != 0 || !read.addends.empty())) return false;
    const double more = read.number / read.scale;
    const bool is_almost_alone = read.addends.empty() && more > 0 && more <= kMostAdded;
    const bool is_sum_or_one = read.addends.size() == 1 && read.number == 0 && is_one_for_zero(*read.addends[0].value, sum);
    if (is_almost_alone || is_sum_or_one) {
      read_.is_never_zero = true;
      read_.is_inexact = is_almost_alone;
      if (is_almost_alone) read_.little = number_added(read.number);
    } else if (!enter_all(read)) {
      return false;
    }
    multiply(read.scale);
    return true;
  }

  /// Enters what is added to the core; false if that may make the sum smaller.
  bool enter_all(const ScoreCase& read) {
    if (read.number == 0 && read.addends.empty()) return true;
    std::vector<AddedToSum> others;
    if (read.number != 0) others.push_back(number_added(read.number));
    for (const Addend& addend : read.addends)
      for (const Addend& part : linear_terms_of(*addend.value, addend.coefficient, facts_))
        others.push_back(added(*part.value, part.coefficient, axes_));
    const auto may_be_smaller = [&](const AddedToSum& other) {
      if (std::isnan(other.raised) || !other.value) return std::isnan(other.raised) || !(other.number > 0);
      Value& source = unmoved(*other.value, facts_);
      return !is_exponential(source, context_) && !is_constant_above_0(source, facts_);
    };
    if (!(read.scale * share() > 0) || std::ranges::any_of(others, may_be_smaller)) return false;
    read_.others.insert(read_.others.end(), others.begin(), others.end());
    return true;
  }

  AddedToSum number_added(double number) const {
    return {nullptr, std::abs(number), axes_, std::log(std::copysign(1, number) * share())};
  }

  /// PART, which so many TIMES is added to rows whose axes lie at AXES.
  ///
  ///   t - c  =>  t + -c, c being constants below 0
  AddedToSum added(Value& part, double times, const std::vector<int>& axes) {
    const auto number = facts_.uniform(part);
    if (number) return {nullptr, *number, axes, std::log(times * share())};
    const bool is_negated = times * share() < 0 && facts_.constant(part);
    Value* value = is_negated ? InnerValues(reader_, context_).build().node("Neg", {&part}) : &part;
    return {value, 0, axes, std::log((is_negated ? -times : times) * share())};
  }

  /// True if NUMBER is 1 where SUM is 0, and 0 elsewhere.
  bool is_one_for_zero(Value& number, Value& sum) {
    const auto condition = condition_of_number(number, facts_);
    bool is_zero = false;
    Value* asked = condition ? asked_for(*condition->value, is_zero) : nullptr;
    return asked && is_zero == condition->is_true && computes_same(*asked, sum, facts_);
  }

  std::optional<RowReduction> before_sum(const Node& node, const RowReduction& after) {
    if (log_factor_) return before_sum_of_log(node, after);
    read_.is_absolute |= node.is("ReduceL1") || node.is("ReduceSumSquare") || node.is("ReduceL2");
    if (node.is("ReduceSum") || node.is("ReduceL1")) return before_concat(before_reduction(node, after, facts_));
    if (node.is("ReduceMean") || node.is("AveragePool")) return before_mean(node, after);
    if (node.is("ReduceSumSquare") || node.is("ReduceL2")) return before_sum_of_squares(node, after);
    if (has(node, Trait::kAdds)) return before_sum_of_parts(node, after);
    if (auto before = before_running_sum(after, facts_)) return before_concat(std::move(before));
    for (size_t at = 0; at < node.inputs.size(); ++at)
      if (auto before = are_ones_beside(node, at) ? before_product(node, at, after, facts_) : std::nullopt) {
        multiply(*factor_of_sum(node, facts_));
        return before;
      }
    return before_part(after);
  }

  /// sum(e cut in front) + sum(e cut behind)  =>  sum(e)
  std::optional<RowReduction> before_sum_of_parts(const Node& node, const RowReduction& after) {
    const LinearTerms terms = linear_terms_of(*node.outputs[0], 1, facts_);
    if (terms.size() < 2) return std::nullopt;
    const double times = terms[0].coefficient;
    std::vector<Value*> sums;
    for (const Addend& term : terms) {
      if (term.coefficient != times) return std::nullopt;
      sums.push_back(term.value);
    }
    for (RowParts& rows : parts_of_rows(sums, "ReduceSum", after, facts_))
      for (const bool is_reversed : {false, true}) {
        if (is_reversed) std::ranges::reverse(rows.parts);
        Value* joined = joined_parts(rows.parts, rows.axis, reader_, context_);
        if (!joined) continue;
        multiply(times);
        return RowReduction{joined, rows.axes, &node};
      }
    return std::nullopt;
  }

  /// ReduceSumSquare(e)  =>  e e      ReduceL2(e)  =>  e e, of which that is the root of the sum
  std::optional<RowReduction> before_sum_of_squares(const Node& node, const RowReduction& after) {
    auto before = before_reduction(node, after, facts_);
    if (!before) return std::nullopt;
    if (node.is("ReduceL2")) power_ *= 0.5;
    before->value = InnerValues(reader_, context_).build().node("Mul", {before->value, before->value});
    return before;
  }

  /// ReduceLogSum(e)  =>  e      ReduceLogSumExp(x)  =>  Exp(x)
  std::optional<RowReduction> before_sum_of_log(const Node& node, const RowReduction& after) {
    const bool is_of_exponents = node.is("ReduceLogSumExp");
    if (!(is_of_exponents || node.is("ReduceLogSum")) || !ends_logarithm()) return std::nullopt;
    auto before = before_reduction(node, after, facts_);
    read_.is_of_exponents = is_of_exponents;
    if (before && is_of_exponents) before->value = InnerValues(reader_, context_).build().node("Exp", {before->value});
    return before;
  }

  /// True for a product of which all operands but that number AT are ones.
  bool are_ones_beside(const Node& node, size_t at) {
    if (!is_product(node) || node.is("Gemm")) return false;
    for (size_t other = 0; other < node.inputs.size(); ++other)
      if (other != at && (!node.inputs[other] || facts_.uniform(*node.inputs[other]) != 1.0)) return false;
    return true;
  }

  /// ROWS, or what they hold beside single columns that are put there, which are entered.
  ///
  ///   sum(Concat(e, Exp(x)))  =>  sum(e) + Exp(x)
  std::optional<RowReduction> before_concat(std::optional<RowReduction> rows) {
    const Node* node = rows ? rows->value->producer : nullptr;
    const MaybeShape whole = node && node->is("Concat") ? facts_.shape(*rows->value) : nullptr;
    const auto axis = rows ? std::ranges::find(rows->axes, RowReduction::kTaken) - rows->axes.begin() : 0;
    if (!whole || whole->size() != rows->axes.size() ||
        axis_in(node->int_attribute("axis", 0), whole->size()) != static_cast<size_t>(axis))
      return rows;
    const auto is_column = [&](Value* input) {
      const MaybeShape shape = facts_.shape(*input);
      return shape && shape->size() == whole->size() && (*shape)[static_cast<size_t>(axis)].is(1);
    };
    if (std::ranges::count_if(node->inputs, is_column) + 1 != std::ssize(node->inputs)) return rows;
    for (Value* input : node->inputs) {
      if (is_column(input))
        read_.others.push_back(added(*input, 1, rows->axes));
      else
        rows->value = &canonical(*input, facts_);
    }
    return rows;
  }

  /// ReduceMean(e)  =>  1 / S times the sum of S elements
  std::optional<RowReduction> before_mean(const Node& node, const RowReduction& after) {
    auto before =
        node.is("ReduceMean") ? before_reduction(node, after, facts_) : before_pooling("AveragePool", node, after, facts_);
    const MaybeShape shape = facts_.shape(*node.inputs[0]);
    if (!before || !shape || read_.is_inexact) return std::nullopt;
    const auto axis = std::ranges::find(before->axes, RowReduction::kTaken) - before->axes.begin();
    const Dim& size = (*shape)[static_cast<size_t>(axis)];
    if (size.is(0)) return std::nullopt;
    if (size.is_constant()) multiply(1 / static_cast<double>(size.value()));
    return size.is_constant() || sizes_.multiply(size, -power_, facts_) ? before : std::nullopt;
  }

  /// A part of a product of V and ones side by side, which is that of the ones.
  std::optional<RowReduction> before_part(const RowReduction& after) {
    const auto part = part_of_product(*after.value, reader_, context_);
    if (!part || part->values) return std::nullopt;
    RowReduction whole{part->product->outputs[0], {}, nullptr};
    whole.axes.resize(facts_.shape(*whole.value).known().size(), -1);
    for (size_t axis = 0; axis < part->axes.size(); ++axis)
      whole.axes[static_cast<size_t>(part->axes[axis])] = after.axes[axis];
    return before_product(*part->product, 1 - part->operand, whole, facts_);
  }

  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
  FormReader forms_;
  RowSum read_;
  std::vector<int> axes_;             ///< of the rows, where those of what is looked at lie
  double power_ = 1;                  ///< of what is read, that the divisor or its inverse is
  SizeFactor sizes_;                  ///< that the divisor is multiplied with beside read_.factor
  bool is_absolute_ = false;          ///< signs above do not count
  std::optional<double> log_factor_;  ///< of a logarithm, which is read first
};

}  // namespace

std::optional<RowSum> row_sum(Value& value, bool inverse, size_t rank, Node& reader, MatchContext& context) {
  return SumReader(reader, context).read(value, inverse, rank);
}

std::optional<RowSum> row_sum_of_log(Value& log, double factor, size_t rank, Node& reader, MatchContext& context) {
  return SumReader(reader, context).read_logarithm(log, factor, rank);
}

}  // namespace attn_opt
