// Which of the leading axes of a site's scores are batch and which are heads, where values of the site group them differently.
//
//   Q K^T  (B, Hkv, G, L, S)  ─ Softmax ─ Reshape ─  (B, Hkv * G, L, S)  ─ MatMul with V (B, Hkv * G, S, D)
//
// Both products then have a batch of B and Hkv * G heads.
#pragma once

#include <optional>
#include <vector>

#include "patterns/products/products.h"

namespace attn_opt {

/// Batch and heads of SHAPES, those that the scores of a site have on their way, queries and keys last: as one of four axes has
/// them; else, where the numbers of axes differ, up to the last axis of one with more whose size is no number. nullopt where
/// nothing tells them apart.
std::optional<LeadingSplit> parted_leading_axes(const std::vector<Shape>& shapes);

/// How many of the leading axes of SHAPE, two or more, are the heads of SPLIT; nullopt where one axis holds batch and heads.
std::optional<size_t> head_axes_in(const Shape& shape, const LeadingSplit& split);

/// True if one of SHAPES has more than two leading axes.
bool has_more_leading_axes(const std::vector<Shape>& shapes);

}  // namespace attn_opt
