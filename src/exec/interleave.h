// Rows to the layout [element][lane] and back.
#pragma once

#include <cstdint>

namespace attn_opt {

/// panel[j * LANES + lane] = FACTOR * rows[lane][j] for j < COUNT. LANES is a multiple of 4.
void interleave(const float* const* rows, int lanes, int64_t count, float factor, float* panel);
void interleave(const double* const* rows, int lanes, int64_t count, double factor, double* panel);

/// panel[j * LANES + lane] += rows[lane][j] for j < COUNT.
void add_interleaved(const float* const* rows, int lanes, int64_t count, float* panel);
void add_interleaved(const double* const* rows, int lanes, int64_t count, double* panel);

/// rows[lane][j] = factors[lane] * panel[j * LANES + lane] for j < COUNT.
void deinterleave(const float* panel, int lanes, int64_t count, const float* factors, float* const* rows);
void deinterleave(const double* panel, int lanes, int64_t count, const double* factors, double* const* rows);

/// tiles[(d / TILE) * TILE * COUNT + j * TILE + d % TILE] = rows[j * STRIDE + d] for j < COUNT, d < WIDTH. TILE is 6, 8, 12
/// or 32.
void pack_tiles(const float* rows, int64_t stride, int64_t count, int64_t width, int tile, float* tiles);
void pack_tiles(const double* rows, int64_t stride, int64_t count, int64_t width, int tile, double* tiles);

}  // namespace attn_opt
