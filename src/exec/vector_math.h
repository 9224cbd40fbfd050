// Vectors as the compiler knows them, and functions of one.
#pragma once

#include <cmath>
#include <cstdint>

namespace attn_opt {

/// A vector of BYTES.
template <class C, int kBytes = 32>
struct VectorOf {
  using Element = C;
  static constexpr int kSize = kBytes / sizeof(C);
  using Vec [[gnu::vector_size(kBytes), gnu::may_alias]] = C;
};

/// x = exp(x) for x <= 0, to about one unit in the last place; results below the smallest normal number are 0.
/// After Cephes' expf: exp(x) = 2^n exp(f), |f| <= ln(2) / 2.
template <int kBytes>
[[gnu::always_inline]] inline void exponential(VectorOf<float, kBytes>, typename VectorOf<float, kBytes>::Vec& x) {
  using Vec = typename VectorOf<float, kBytes>::Vec;
  using Integers = typename VectorOf<int32_t, kBytes>::Vec;
  constexpr float kRounds = 0x1.8p23f + 127;  // added, it leaves an integer in the lowest bits: n with the exponent's bias
  const Vec rounded = x * 1.44269504088896341f + kRounds;
  const Vec n = rounded - kRounds;
  const Vec f = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec power = f * 1.381459879e-3f + 8.368716575e-3f;
  power = power * f + 4.166838899e-2f;
  power = power * f + 1.666652113e-1f;
  power = power * f + 4.999999404e-1f;
  power = power * f + 1.0f;
  power = power * f + 1.0f;
  const Integers exponent = reinterpret_cast<const Integers&>(rounded) << 23;
  const Vec result = power * reinterpret_cast<const Vec&>(exponent);
  x = x < -87.3f ? Vec{} : result;
}

/// x = tanh(x), to about two units in the last place. After Cephes' tanhf.
template <int kBytes>
[[gnu::always_inline]] inline void hyperbolic_tangent(VectorOf<float, kBytes> vectors,
                                                      typename VectorOf<float, kBytes>::Vec& x) {
  using Vec = typename VectorOf<float, kBytes>::Vec;
  const Vec magnitude = x < 0 ? -x : x;
  const Vec square = x * x;
  Vec near_zero = square * -5.70498872745e-3f + 2.06390887954e-2f;
  near_zero = near_zero * square - 5.37397155531e-2f;
  near_zero = near_zero * square + 1.33314422036e-1f;
  near_zero = near_zero * square - 3.33332819422e-1f;
  near_zero = (near_zero * square + 1.0f) * x;  // -0 stays -0
  Vec power = magnitude * -2.0f;
  exponential(vectors, power);
  const Vec far = (1.0f - power) / (1.0f + power);
  x = magnitude < 0.625f ? near_zero : x < 0 ? -far : far;
}

/// x = erf(x), to about three units in the last place: x P(x^2) up to 1, 1 - exp(-Q(|x|)) beyond, P and Q interpolating
/// erf(x) / x and -log(erfc(x)) in Chebyshev's points.
template <int kBytes>
[[gnu::always_inline]] inline void error_function(VectorOf<float, kBytes> vectors, typename VectorOf<float, kBytes>::Vec& x) {
  using Vec = typename VectorOf<float, kBytes>::Vec;
  const Vec magnitude = x < 0 ? -x : x;
  const Vec square = x * x;
  Vec near_zero = square * 7.882497448e-5f - 8.018855006e-4f;
  near_zero = near_zero * square + 5.189312156e-3f;
  near_zero = near_zero * square - 2.685432881e-2f;
  near_zero = near_zero * square + 1.128359735e-1f;
  near_zero = near_zero * square - 3.761262596e-1f;
  near_zero = (near_zero * square + 1.128379107f) * x;
  const Vec t = magnitude < 4.0f ? magnitude : Vec{} + 4.0f;  // erf is 1 in float from there on
  Vec power = t * 1.614061603e-6f - 4.559062290e-5f;
  power = power * t + 5.927695311e-4f;
  power = power * t - 4.740222357e-3f;
  power = power * t + 2.636471763e-2f;
  power = power * t - 1.099782437e-1f;
  power = power * t - 6.319370866e-1f;
  power = power * t - 1.130166650f;
  power = power * t + 3.032129607e-4f;
  exponential(vectors, power);
  const Vec far = x < 0 ? power - 1.0f : 1.0f - power;
  const Vec result = magnitude < 1.0f ? near_zero : far;
  x = x == x ? result : x;
}

template <int kBytes>
[[gnu::always_inline]] inline void exponential(VectorOf<double, kBytes> vectors, typename VectorOf<double, kBytes>::Vec& x) {
  for (int i = 0; i < vectors.kSize; ++i) x[i] = std::exp(x[i]);
}
template <int kBytes>
[[gnu::always_inline]] inline void hyperbolic_tangent(VectorOf<double, kBytes> vectors,
                                                      typename VectorOf<double, kBytes>::Vec& x) {
  for (int i = 0; i < vectors.kSize; ++i) x[i] = std::tanh(x[i]);
}

}  // namespace attn_opt
