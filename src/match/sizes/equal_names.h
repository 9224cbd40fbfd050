// Names of sizes that are equal in every run of the model, whatever it calls them.
//
// Operators that compute attention refuse queries, keys, values and caches of different batches or lengths. Where the main
// graph, or each branch of an If in it, cannot do without such a node, the names that it needs equal are one size.
#pragma once

#include <map>
#include <string>

#include "attn_opt/dim.h"
#include "attn_opt/graph.h"

namespace attn_opt {

class TensorStore;

/// By name of a size, what it equals.
using EqualNames = std::map<std::string, Dim>;

/// Empty where no node of attention stands in VIEW.
EqualNames equal_names(ModelGraph& view, const TensorStore& tensors);

/// SIZE with what NAMES say in the place of its symbols.
Dim renamed(const Dim& size, const EqualNames& names);

}  // namespace attn_opt
