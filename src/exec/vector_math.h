// Vectors of 32 bytes as the compiler knows them, and functions of one.
#pragma once

#include <cmath>
#include <cstdint>

namespace attn_opt {

template <class C>
struct VectorOf {
  static constexpr int kSize = 32 / sizeof(C);
  using Vec [[gnu::vector_size(32), gnu::may_alias]] = C;
};

/// x = exp(x) for x <= 0, to about one unit in the last place; results below the smallest normal number are 0.
/// After Cephes' expf: exp(x) = 2^n exp(f), |f| <= ln(2) / 2.
[[gnu::always_inline]] inline void exponential(VectorOf<float>::Vec& x) {
  using Vec = VectorOf<float>::Vec;
  using Integers = VectorOf<int32_t>::Vec;
  constexpr float kRounds = 0x1.8p23f;  // added and taken away, it leaves an integer
  const Vec n = (x * 1.44269504088896341f + kRounds) - kRounds;
  const Vec f = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec power = f * 1.9875691500e-4f + 1.3981999507e-3f;
  power = power * f + 8.3334519073e-3f;
  power = power * f + 4.1665795894e-2f;
  power = power * f + 1.6666665459e-1f;
  power = power * f + 5.0000001201e-1f;
  power = power * (f * f) + f + 1.0f;
  const Integers exponent = (__builtin_convertvector(n, Integers) + 127) << 23;
  const Vec result = power * reinterpret_cast<const Vec&>(exponent);
  x = x < -87.3f ? Vec{} : result;
}

/// x = tanh(x), to about two units in the last place. After Cephes' tanhf.
[[gnu::always_inline]] inline void hyperbolic_tangent(VectorOf<float>::Vec& x) {
  using Vec = VectorOf<float>::Vec;
  const Vec magnitude = x < 0 ? -x : x;
  const Vec square = x * x;
  Vec near_zero = square * -5.70498872745e-3f + 2.06390887954e-2f;
  near_zero = near_zero * square - 5.37397155531e-2f;
  near_zero = near_zero * square + 1.33314422036e-1f;
  near_zero = near_zero * square - 3.33332819422e-1f;
  near_zero = near_zero * square * x + x;
  Vec power = magnitude * -2.0f;
  exponential(power);
  const Vec far = (1.0f - power) / (1.0f + power);
  x = magnitude < 0.625f ? near_zero : x < 0 ? -far : far;
}

[[gnu::always_inline]] inline void exponential(VectorOf<double>::Vec& x) {
  for (int i = 0; i < VectorOf<double>::kSize; ++i) x[i] = std::exp(x[i]);
}
[[gnu::always_inline]] inline void hyperbolic_tangent(VectorOf<double>::Vec& x) {
  for (int i = 0; i < VectorOf<double>::kSize; ++i) x[i] = std::tanh(x[i]);
}

}  // namespace attn_opt
