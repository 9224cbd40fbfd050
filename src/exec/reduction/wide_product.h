// Matrix products of float in vectors of 64 bytes.
#pragma once

#include "src/exec/reduction/matmul.h"

namespace attn_opt {

/// True if multiply_wide() can compute P here and is worth its packing.
bool is_for_wide_vectors(const MatrixProduct& p);

/// multiply() where is_for_wide_vectors(). An element is the same sum whatever rows and columns are computed beside it.
void multiply_wide(const MatrixProduct& p, const float* a, const float* b, float* c);
void multiply_wide(ThreadPool& pool, const MatrixProduct& p, const float* a, const float* b, float* c);

}  // namespace attn_opt
