// Functions of many floats that lie side by side, computed in vectors.
#pragma once

#include <cstdint>

namespace attn_opt {

/// TO[i] = erf(FROM[i]).
void error_functions(const float* from, int64_t count, float* to);
/// TO[i] = tanh(FROM[i]).
void hyperbolic_tangents(const float* from, int64_t count, float* to);
/// TO = softmax(FROM); NaN if FROM holds NaN or +inf, or nothing but -inf.
void softmax(const float* from, int64_t count, float* to);

/// The sum of VALUES, and that of the squares of VALUES - MEAN, in double.
double sum_of(const float* values, int64_t count);
double sum_of_squares(const float* values, int64_t count, double mean);
/// TO[i] = (FROM[i] - MEAN) * FACTOR * SCALE[i] + BIAS[i], rounded once; without a BIAS, 0 is added.
void normalize_row(const float* from, int64_t count, double mean, double factor, const double* scale, const double* bias,
                   float* to);

}  // namespace attn_opt
