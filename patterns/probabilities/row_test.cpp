#include "patterns/probabilities/row_test.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "attn_opt/canonical.h"
#include "patterns/scores/conditions.h"
#include "patterns/softmax/row_reduction.h"

namespace attn_opt {
namespace {

constexpr int kMaxCasts = 8;

/// A number that nodes compare with another one.
enum class Comparison { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

struct Compared {
  Value* value = nullptr;
  Comparison comparison;
  double number = 0;

  bool holds_of(double x) const {
    switch (comparison) {
      case Comparison::kEqual: return x == number;
      case Comparison::kLess: return x < number;
      case Comparison::kLessOrEqual: return x <= number;
      case Comparison::kGreater: return x > number;
      case Comparison::kGreaterOrEqual: return x >= number;
    }
    return false;
  }
};

std::optional<Comparison> comparison_of(const Node& node, bool is_turned) {
  if (node.is("Equal")) return Comparison::kEqual;
  if (node.is(is_turned ? "Greater" : "Less")) return Comparison::kLess;
  if (node.is(is_turned ? "GreaterOrEqual" : "LessOrEqual")) return Comparison::kLessOrEqual;
  if (node.is(is_turned ? "Less" : "Greater")) return Comparison::kGreater;
  if (node.is(is_turned ? "LessOrEqual" : "GreaterOrEqual")) return Comparison::kGreaterOrEqual;
  return std::nullopt;
}

/// What NODE compares with a number: x > 0, 0 < x, IsInf(x) of -inf alone.
std::optional<Compared> compared_by(const Node& node, Facts& facts) {
  if (node.is("IsInf") && node.int_attribute("detect_positive", 1) == 0 && node.input(0))
    return Compared{node.inputs[0], Comparison::kEqual, -INFINITY};
  for (const bool is_turned : {false, true}) {
    const auto comparison =
        node.inputs.size() == 2 && node.inputs[0] && node.inputs[1] ? comparison_of(node, is_turned) : std::nullopt;
    if (!comparison) continue;
    if (const auto number = facts.uniform(*node.inputs[is_turned ? 0 : 1]))
      return Compared{node.inputs[is_turned ? 1 : 0], *comparison, *number};
  }
  return std::nullopt;
}

/// True if TYPE holds each number of keys that there may be, or what is as far above 0.
bool holds_counts(DataType type) {
  return is_floating(type) || (type != onnx::TensorProto::BOOL && element_size(type) >= sizeof(int32_t));
}

/// VALUE before casts of numbers that are 0 or 1, or counts: these only through types that hold them.
Value& uncast(Value& value, Facts& facts, bool are_counts = false) {
  Value* seen = &canonical(value, facts);
  for (int cast = 0; cast < kMaxCasts && seen->producer && seen->producer->is("Cast"); ++cast) {
    if (are_counts && !holds_counts(facts.type(*seen))) break;
    seen = &canonical(*seen->producer->inputs[0], facts);
  }
  return *seen;
}

class RowTestReader {
 public:
  RowTestReader(size_t keys_from_last, Facts& facts) : keys_from_last_(keys_from_last), facts_(facts) {}

  std::optional<SharesTest> read_shares(Value& condition, const Value& shares) {
    const Condition seen = affirmed({&condition, true}, facts_);
    const Node* node = seen.value->producer;
    const auto compared = node && node->domain().empty() ? compared_by(*node, facts_) : std::nullopt;
    if (!compared || compared->number > 0) return std::nullopt;
    const bool is_of_shares = std::ranges::any_of(std::array{"ReduceSum", "ReduceMax"}, [&](const char* op_type) {
      const Value* rows = reduced(op_type, *compared->value);
      return rows && rows == &shares;
    });
    const bool holds = compared->holds_of(1) == seen.is_true;
    return is_of_shares ? std::optional(SharesTest{holds, !seen.is_true}) : std::nullopt;
  }

  std::optional<RowTest> read(Value& condition) {
    const Condition seen = affirmed({&condition, true}, facts_);
    auto test = of_affirmed(*seen.value);
    if (test && !seen.is_true) test->holds_for_kept = !test->holds_for_kept;
    return test;
  }

 private:
  std::optional<RowTest> of_affirmed(Value& condition) {
    const Node* node = condition.producer;
    if (!node || !node->domain().empty() || !node->input(0)) return std::nullopt;
    const auto compared = compared_by(*node, facts_);
    if (compared && compared->number == -INFINITY) return of_maximum(*compared);
    if (compared) return of_count(*compared->value, *compared);
    const bool is_number_or_sum = node->is("Cast") || node->is("ReduceMax") || node->is("ReduceMin");
    return is_number_or_sum ? of_count(condition, {&condition, Comparison::kGreater, 0}) : std::nullopt;
  }

  /// What is true of a largest element that is -inf, and of one that is not.
  std::optional<RowTest> of_maximum(const Compared& compared) {
    Value* rows = reduced("ReduceMax", *compared.value);
    const bool holds_for_kept = compared.holds_of(0);
    if (!rows || holds_for_kept == compared.holds_of(-INFINITY)) return std::nullopt;
    return RowTest{rows, true, false, holds_for_kept, true};
  }

  /// What is true of a number of elements that are 1, the largest of them, or the least.
  std::optional<RowTest> of_count(Value& value, const Compared& compared) {
    const bool of_none = compared.holds_of(0), of_one = compared.holds_of(1);
    if (of_none == of_one) return std::nullopt;
    Value& counted = uncast(value, facts_);
    if (Value* rows = reduced("ReduceMax", counted)) return any_of(*rows, true, of_one);
    if (Value* rows = reduced("ReduceMin", counted)) return any_of(*rows, false, of_none);
    const bool is_the_same_of_more = compared.comparison != Comparison::kEqual || compared.number == 0;
    Value* rows = is_the_same_of_more ? reduced("ReduceSum", uncast(value, facts_, true)) : nullptr;
    return rows ? any_of(*rows, true, of_one) : std::nullopt;
  }

  /// The test that HOLDS where any of ROWS, booleans or such as numbers, is WANTED.
  std::optional<RowTest> any_of(Value& rows, bool wanted, bool holds) {
    Value& booleans = uncast(rows, facts_);
    if (facts_.type(booleans) != onnx::TensorProto::BOOL) return std::nullopt;
    const Condition seen = affirmed({&booleans, wanted}, facts_);
    const auto compared = seen.value->producer ? compared_by(*seen.value->producer, facts_) : std::nullopt;
    if (!compared || compared->number != -INFINITY) return RowTest{seen.value, false, seen.is_true, holds};
    const bool is_of_numbers = compared->holds_of(0) == seen.is_true && compared->holds_of(-INFINITY) != seen.is_true;
    if (!is_of_numbers) return std::nullopt;
    return RowTest{&canonical(*compared->value, facts_), true, false, holds, seen.is_true};
  }

  Value* reduced(const std::string& op_type, Value& value) {
    const MaybeShape shape = facts_.shape(value);
    return shape && shape->size() > keys_from_last_ ? reduced_rows(op_type, value, shape->size(), facts_, keys_from_last_, true)
                                                    : nullptr;
  }

  size_t keys_from_last_;
  Facts& facts_;
};

}  // namespace

std::optional<SharesTest> shares_test(Value& condition, Value& shares, size_t keys_from_last, Facts& facts) {
  return RowTestReader(keys_from_last, facts).read_shares(condition, canonical(shares, facts));
}

std::optional<RowTest> row_test(Value& condition, size_t keys_from_last, Facts& facts) {
  return RowTestReader(keys_from_last, facts).read(condition);
}

}  // namespace attn_opt
