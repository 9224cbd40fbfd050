// Rows to the layout [element][lane] and back.
#pragma once

#include <cstdint>

namespace attn_opt {

/// panel[j * LANES + lane] = rows[lane][j] for j < COUNT. LANES is a multiple of 4.
void interleave(const float* const* rows, int lanes, int64_t count, float* panel);
void interleave(const double* const* rows, int lanes, int64_t count, double* panel);

/// rows[lane][j] = panel[j * LANES + lane] for j < COUNT.
void deinterleave(const float* panel, int lanes, int64_t count, float* const* rows);
void deinterleave(const double* panel, int lanes, int64_t count, double* const* rows);

}  // namespace attn_opt
