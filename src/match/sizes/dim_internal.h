// What the parts of Dim share.
#pragma once

#include <string_view>
#include <vector>

#include "attn_opt/dim.h"

namespace attn_opt {

/// Graded lexicographic order of products, the larger first: negative if A comes before B.
int compare_factors(const std::vector<AtomRef>& a, const std::vector<AtomRef>& b);

/// An unknown of either sign that stands for A OPERATION B; the same operands give the same unknown.
Dim unmanageable(std::string_view operation, const Dim& a, const Dim& b);

/// An atom for an operation that is no polynomial; an unknown if its text grows too long.
Dim opaque(Atom::Kind kind, const Dim& a, const Dim& b, bool may_be_negative);

/// Two of TERMS that are both parts of a size are the size; false if there are none.
///
///   n min(a, b) + n max(b - a, 0)  =>  n b
bool join_parts(std::vector<Dim::Term>& terms);

}  // namespace attn_opt
