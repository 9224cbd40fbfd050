// Activation functions of one number, as operators by themselves and within recurrent ones.
#pragma once

#include <cmath>

namespace attn_opt {

inline double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
inline double softsign_of(double x) { return x / (1 + std::abs(x)); }
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
inline double relu_of(double x) { return x < 0 ? 0 : x; }
inline double elu_of(double x, double alpha) { return x < 0 ? alpha * std::expm1(x) : x; }
inline double leaky_relu_of(double x, double alpha) { return x < 0 ? alpha * x : x; }
inline double clamp_to_unit(double x) { return x < 0 ? 0 : (x > 1 ? 1 : x); }
inline double hard_sigmoid_of(double x, double alpha, double beta) { return clamp_to_unit(alpha * x + beta); }

}  // namespace attn_opt
