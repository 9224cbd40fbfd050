// A rotation of pairs of columns, however it is spelled: a value whose columns j and p are, of those of X,
//
//   y[j] = c * x[j] - s * x[p]          p = j + half, or the pair lies side by side (interleaved);
//   y[p] = c * x[p] + s * x[j]          columns behind those that are rotated are those of X
//
// c and s are columns of two tables. They may hold any numbers: of what angle is the model's matter.
#pragma once

#include "attn_opt/miss.h"
#include "patterns/around/columns.h"

namespace attn_opt {

/// One number for each pair: every STEP-th of the columns on the last AXES axes of VALUE.
struct PairTable {
  Value* value = nullptr;
  size_t axes = 1;
  size_t start = 0, step = 1, count = 0;
  bool negated = false;
};

struct Rotation {
  Value* x = nullptr;
  Value* y = nullptr;
  size_t head_size = 0;  ///< columns of a head; X may hold several heads
  size_t rotated = 0;    ///< columns of a head that are rotated, the first ones
  bool interleaved = false;
  PairTable cos, sin;
};

/// The rotation that Y is. Misses: kNoMatch, where Y is nothing like one; "rotary.pairs", "rotary.sign", "rotary.angles".
Matched<Rotation> rotation_of(Value& y, Facts& facts);

}  // namespace attn_opt
