// tanh() in other words: ratios of sums of exponentials of one value.
//
//   2 * Sigmoid(2 x) - 1      1 - 2 / (Exp(2 x) + 1)      (Exp(x) - Exp(-x)) / (Exp(x) + Exp(-x))      Sigmoid(x)
//
// Sums, products and quotients of such ratios are ratios again. Exp(p x) stands for the power p of one unknown.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// SIZE * tanh(FACTOR * VALUE), and a number.
struct TanhOf {
  Value* value = nullptr;
  double factor = 1, size = 1, number = 0;
  bool may_be_nan = false;  ///< of values beyond the range of exp(), which VALUE's own words divide by each other
};

/// What VALUE is in terms of tanh(); nullopt if it is not, or says so by Tanh.
std::optional<TanhOf> tanh_in(Value& value, Facts& facts);

/// exp(FACTOR * VALUE).
struct ExponentialOf {
  Value* value = nullptr;
  double factor = 1;
};

/// What VALUE is exp() of, where the ratio leaves one power; nullopt if it leaves more, or a multiple of one.
///
///   Sigmoid(x) / (1 - Sigmoid(x))      Sigmoid(x) / Sigmoid(-x)      Elu(x) + 1, x being no more than 0
std::optional<ExponentialOf> exponential_in_ratio(Value& value, Facts& facts);

/// x, and FACTOR, where ONE is Sigmoid(FACTOR * x) and OTHER what is left of 1, in whatever words; nullopt if they are not.
///
///   (Tanh(x / 2) + 1) / 2 and Sigmoid(-x)      Sigmoid(x) and 1 - Sigmoid(x)
std::optional<ExponentialOf> odds_of_two(Value& one, Value& other, Facts& facts);

}  // namespace attn_opt
