#include "patterns/scores/form_terms.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "attn_opt/internal/mask_contents.h"
#include "patterns/inner_values.h"
#include "patterns/preconditions.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/peel_steps.h"
#include "src/io/number_text.h"

namespace attn_opt {
namespace {

using Kind = ScoreTerm::Kind;

bool is_kept(const ScoreCase& one) { return one.scale != 0; }

bool has(const std::vector<Addend>& addends, const Addend& addend) {
  return std::ranges::find(addends, addend) != addends.end();
}

/// FORM with what is no scores in front, so that the rest is scores: where these stood first, they do not hold.
ScoreForm with_fills_first(const ScoreForm& form) {
  ScoreForm fills, kept;
  for (const ScoreCase& one : form) {
    if (is_kept(one)) {
      kept.push_back(one);
      continue;
    }
    std::vector<std::vector<Literal>> guards = {one.guard};
    for (const ScoreCase& earlier : kept) {
      std::vector<std::vector<Literal>> further;
      for (const auto& guard : guards)
        for (const Literal& literal : earlier.guard) {
          if (std::ranges::find(guard, literal) != guard.end()) continue;
          further.push_back(guard);
          if (std::ranges::find(guard, literal.negated()) == guard.end()) further.back().push_back(literal.negated());
        }
      guards = std::move(further);
    }
    for (auto& guard : guards) {
      fills.push_back(one);
      fills.back().guard = std::move(guard);
    }
  }
  if (!kept.empty()) kept.back().guard.clear();
  fills.insert(fills.end(), kept.begin(), kept.end());
  return fills;
}

class Writer {
 public:
  Writer(const ScoreForm& form, DataType type, Node& node, MatchContext& context)
      : left_(with_fills_first(form)), type_(type), node_(node), reader_(node, context), context_(context) {}

  Matched<FormTerms> run() {
    found_.drops_nan = drops_nan(left_);
    if (left_.empty() || !is_kept(left_.back())) return missed("scores.where", &node_, "no case is a score");
    while (!is_kept(left_.front())) {
      if (is_nowhere(with_fills(known_in(left_, 0)))) {
        left_.erase(left_.begin());
        continue;
      }
      std::vector<Addend> common = take_common();
      take_numbers(common);
      ATTN_OPT_DONE(make_numbers(left_.front(), known_in(left_, 0)));
      if (!(left_.front().number <= kHighestMaskFill)) ATTN_OPT_DONE(absorb(common));
      for (const Addend& addend : common) add_bias(addend);
      add_fill(left_.front());
      const std::vector<Literal> guard = left_.front().guard;
      left_.erase(left_.begin());
      if (guard.size() == 1) behind_.hold.push_back(guard[0].negated());
      behind_.excluded.push_back(guard);
    }
    ATTN_OPT_DONE(add_kept());
    return std::move(found_);
  }

 private:
  /// True if what FORM leaves out, or a value that it adds and that is numbers, may be NaN.
  bool drops_nan(const ScoreForm& form) {
    return std::ranges::any_of(form, [this](const ScoreCase& one) {
      const auto is_of_drops = [this](const Addend& addend) {
        const auto numbers = reader_.numbers(*addend.value);
        return numbers && drops_nan(*numbers);
      };
      return std::ranges::any_of(one.dropped, [this](Value* value) { return !is_known_finite(*value, context_.facts); }) ||
             std::ranges::any_of(one.addends, is_of_drops);
    });
  }

  /// What all cases add, which no longer do.
  std::vector<Addend> take_common() {
    std::vector<Addend> common;
    for (const Addend& addend : left_.front().addends)
      if (std::ranges::all_of(left_, [&](const ScoreCase& one) { return has(one.addends, addend); })) common.push_back(addend);
    for (ScoreCase& one : left_)
      for (const Addend& addend : common) one.addends.erase(std::ranges::find(one.addends, addend));
    return common;
  }

  Known with_fills(Known known) const {
    known.hold.insert(known.hold.end(), behind_.hold.begin(), behind_.hold.end());
    known.excluded.insert(known.excluded.end(), behind_.excluded.begin(), behind_.excluded.end());
    return known;
  }

  /// True if all that KNOWN says of constant masks of one shape holds in no place: a mask may be made several times, or lie
  /// within another.
  bool is_nowhere(const Known& known) const {
    std::vector<bool> holds;
    Dims dims;
    for (const Literal& literal : known.hold) {
      const Tensor* mask = context_.facts.constant(*literal.condition);
      if (!mask || mask->type() != onnx::TensorProto::BOOL || (!holds.empty() && mask->dims() != dims)) continue;
      dims = mask->dims();
      const auto booleans = mask->data<bool>();
      holds.resize(booleans.size(), true);
      for (size_t i = 0; i < booleans.size(); ++i) holds[i] = holds[i] && booleans[i] == literal.holds;
    }
    return !holds.empty() && std::ranges::none_of(holds, [](bool place) { return place; });
  }

  /// ONE, where KNOWN holds, without addends: they are numbers there.
  Matched<void> make_numbers(ScoreCase& one, const Known& known) {
    const auto number = reader_.number_where(one.addends, with_fills(known));
    if (!number) {
      const auto is_none = [&](const Addend& addend) { return !reader_.number_where({&addend, 1}, with_fills(known)); };
      const auto addend = std::ranges::find_if(one.addends, is_none);
      const Value& named = *(addend == one.addends.end() ? one.addends.front() : *addend).value;
      return missed("scores.where", one.met, "no branch is a number: '" + named.name + "'");
    }
    one.number += *number;
    one.addends.clear();
    return {};
  }

  /// ADDENDS with what sums among them add up: that may be numbers where the sum is none.
  std::vector<Addend> without_sums(const std::vector<Addend>& addends) {
    FormReader sums(context_.facts);
    std::vector<Addend> found;
    for (const Addend& addend : addends)
      for (const Addend& part : sums.linear_terms(*addend.value))
        found.push_back({part.value, part.coefficient * addend.coefficient, addend.frame});
    return found;
  }

  /// Puts those of COMMON that are numbers in each fill into the fills, and back to the scores. What several come to together
  /// makes more cases.
  Matched<void> absorb(std::vector<Addend>& common) {
    common = without_sums(common);
    std::erase_if(common, [this](const Addend& addend) { return absorb(addend); });
    const auto is_no_fill = [](const ScoreCase& one) {
      return !is_kept(one) && one.addends.empty() && !(one.number <= kHighestMaskFill);
    };
    const auto total = std::ranges::any_of(left_, is_no_fill) ? reader_.numbers(common) : std::nullopt;
    if (auto more = total ? sum(left_, *total) : std::nullopt) {
      left_ = with_fills_first(*more);
      common.clear();
    }
    if (left_.front().number <= kHighestMaskFill) return {};
    return missed("scores.where", left_.front().met, "fill " + number_text(left_.front().number) + " is no mask value");
  }

  bool absorb(const Addend& addend) {
    std::vector<double> numbers;
    for (size_t i = 0; i < left_.size() && !is_kept(left_[i]); ++i) {
      const auto number = reader_.number_where({&addend, 1}, with_fills(known_in(left_, i)));
      if (!number) return false;
      numbers.push_back(*number);
    }
    for (size_t i = 0; i < left_.size(); ++i) {
      const auto number =
          i < numbers.size() ? std::optional(numbers[i]) : reader_.number_where({&addend, 1}, with_fills(known_in(left_, i)));
      if (number)
        left_[i].number += *number;
      else
        left_[i].addends.insert(left_[i].addends.begin(), addend);
    }
    return true;
  }

  void add_bias(const Addend& addend) {
    found_.terms.push_back({Kind::kBias, addend.value, addend.coefficient, 0, addend.frame});
  }

  /// LITERAL as booleans.
  static Value* booleans(const Literal& literal, InnerValues& inner) {
    return literal.holds ? literal.condition : inner.build().node("Not", {literal.condition});
  }

  Value* all_of(const std::vector<Literal>& guard, InnerValues& inner) {
    Value* all = nullptr;
    for (const Literal& literal : guard) {
      Value* one = booleans(literal, inner);
      all = all ? inner.build().node("And", {all, one}) : one;
    }
    return all;
  }

  void add_fill(const ScoreCase& one) {
    const bool is_single = one.guard.size() == 1;
    InnerValues inner(node_, context_);
    Value* condition = is_single ? one.guard[0].condition : all_of(one.guard, inner);
    const Kind kind = is_single && !one.guard[0].holds ? Kind::kKeep : Kind::kDrop;
    found_.terms.push_back({kind, condition, 1, one.number, one.guard[0].frame});
  }

  /// Takes those of COMMON that are one number behind the fills so far for that.
  void take_numbers(std::vector<Addend>& common) {
    std::erase_if(common, [this](const Addend& addend) {
      const auto number = reader_.number_where({&addend, 1}, with_fills({}));
      for (ScoreCase& one : left_) one.number += number.value_or(0);
      return number.has_value();
    });
  }

  /// ADDEND with NUMBER, as numbers of which each is 0 or a fill, and not all are fills: beside one that is, the scores are
  /// rounded as the model rounds them. Nullopt if it is something else.
  std::optional<ScoreForm> mask_with(double number, const Addend& addend) {
    const auto numbers = reader_.numbers({&addend, 1});
    auto mask = numbers && numbers->size() > 1 ? sum(*numbers, number_form(number)) : std::nullopt;
    const auto is_part = [](const ScoreCase& one) { return one.number == 0 || one.number <= kHighestMaskFill; };
    const auto keeps = [](const ScoreCase& one) { return one.number == 0; };
    return mask && std::ranges::all_of(*mask, is_part) && std::ranges::any_of(*mask, keeps) ? mask : std::nullopt;
  }

  /// s + m * 1e4 - 1e4  =>  s + (m ? 0 : -1e4): a number that all cases add makes a mask of one of what else they add.
  void add_mask_with_number(std::vector<Addend>& common, InnerValues& inner) {
    const double number = left_.front().number;
    const bool is_one = std::ranges::all_of(left_, [&](const ScoreCase& one) { return one.number == number; });
    for (auto addend = common.begin(); is_one && number != 0 && addend != common.end(); ++addend) {
      const auto mask = mask_with(number, *addend);
      if (!mask) continue;
      add_bias(in_cases(*mask, addend->frame, inner));
      found_.terms.back().cancelled = std::abs(number);
      common.erase(addend);
      for (ScoreCase& one : left_) one.number = 0;
      return;
    }
  }

  Matched<void> add_kept() {
    InnerValues inner(node_, context_);
    std::vector<Addend> common = take_common();
    take_numbers(common);
    add_mask_with_number(common, inner);
    for (const Addend& addend : common) add_bias(addend);
    found_.scale = left_.front().scale;
    for (const ScoreCase& one : left_)
      if (one.scale != found_.scale)
        return missed("scores.scale-per-score", &node_,
                      number_text(one.scale) + " and " + number_text(found_.scale) + " times the scores");
    const auto adds_nothing = [](const ScoreCase& one) { return one.number == 0 && one.addends.empty(); };
    if (std::ranges::all_of(left_, adds_nothing)) return {};
    const MaybeShape whole = context_.facts.shape(*node_.outputs[0]);
    if (left_.front().guard.empty() && !whole)
      return missed("product.unknown-rank", &node_, "the rank of the scores is not known");
    const Shape& frame = left_.front().guard.empty() ? *whole : left_.front().guard[0].frame;
    add_bias(in_cases(left_, frame, inner));
    return {};
  }

  /// What FORM adds in each of its cases. A number below all of the type is the lowest, multiplied as the model multiplies it.
  Addend in_cases(const ScoreForm& form, const Shape& frame, InnerValues& inner) {
    double times = 1;
    for (const ScoreCase& one : form)
      if (std::isfinite(one.number)) times = std::max(times, one.number / lowest_finite(type_));
    Value* sum = nullptr;
    for (auto one = form.rbegin(); one != form.rend(); ++one) {
      Value* own = added(*one, times, inner);
      sum = sum ? inner.build().node("Where", {all_of(one->guard, inner), own, sum}) : own;
    }
    return {sum, times, frame};
  }

  /// What ONE adds, as a value that is multiplied by TIMES.
  Value* added(const ScoreCase& one, double times, InnerValues& inner) {
    Value* sum = nullptr;
    const auto add = [&](Value* value) { sum = sum ? inner.build().node("Add", {sum, value}) : value; };
    for (const Addend& addend : one.addends) add(inner.scaled(addend.value, addend.coefficient / times));
    if (!sum || one.number != 0) add(inner.build().scalar(one.number / times, type_));
    return sum;
  }

  ScoreForm left_;
  DataType type_;
  Node& node_;
  FormReader reader_;
  MatchContext& context_;
  Known behind_;  ///< what is known behind the fills so far
  FormTerms found_;
};

}  // namespace

Matched<FormTerms> terms_of(const ScoreForm& form, DataType type, Node& node, MatchContext& context) {
  return Writer(form, type, node, context).run();
}

}  // namespace attn_opt
