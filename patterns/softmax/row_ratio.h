// A number for each row, as a ratio of sums of products of powers of unknowns.
//
//   c x^p y^q (1 + a x + ...) / (1 + b y + ...)
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace attn_opt {

/// The powers of unknowns that are not 0, by their numbers: of a few of many.
using Powers = std::vector<std::pair<size_t, double>>;

/// Orders powers as their sums with others are ordered.
struct LessPowers {
  bool operator()(const Powers& one, const Powers& other) const;
};

/// Coefficients of products of powers, none of them 0.
using ProductSum = std::map<Powers, double, LessPowers>;

class RowRatio {
 public:
  static RowRatio number(double number);
  static RowRatio unknown(size_t index);

  bool is_zero() const { return coefficient_ == 0; }
  /// True if it is NUMBER whatever the unknowns are.
  bool is(double number) const;
  /// How many products are made where it is multiplied with one like it.
  size_t work() const;
  /// What it adds up, if it is no ratio; nullopt if it is one.
  std::optional<ProductSum> products() const;

  // All below are nullopt where sums become too long, or 0 divides.
  std::optional<RowRatio> times(const RowRatio& other) const;
  std::optional<RowRatio> plus(const RowRatio& other, double times = 1) const;
  std::optional<RowRatio> inverse() const;
  std::optional<RowRatio> power(double exponent) const;

 private:
  /// Takes out of SUM its first product, so that equal sums are told whatever they are multiplied with.
  void multiply_with(ProductSum sum);
  void cancel();

  double coefficient_ = 1;
  Powers powers_;
  std::vector<ProductSum> above_, below_;  ///< each begins with 1
};

}  // namespace attn_opt
