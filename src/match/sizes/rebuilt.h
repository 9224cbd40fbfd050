// Sizes made again with other sizes or numbers in them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "attn_opt/dim.h"

namespace attn_opt {

/// What stands in the place of an atom; nullopt: the atom, made again.
using AtomReplacement = std::function<std::optional<Dim>(const Atom&)>;
/// What stands in the place of a number.
using NumberReplacement = std::function<int64_t(int64_t)>;

/// SIZE with REPLACEMENT of its atoms, those in quotients, minima and maxima included, and NUMBER of its numbers.
Dim rebuilt(const Dim& size, const AtomReplacement& replacement, const NumberReplacement& number);

}  // namespace attn_opt
