// Patterns whose match() is a Python function.
#pragma once

#include <memory>
#include <vector>

#include "attn_opt/rewrite.h"
#include "python/src/scope.h"

namespace attn_opt::python {

/// PATTERNS, objects with name, summary, anchor and match, for one run. They hold Python objects: to be dropped under the GIL.
std::vector<std::shared_ptr<const Pattern>> patterns_of(nb::handle patterns);

/// REWRITES, objects with name, summary, anchor, priority, match and apply, as patterns_of().
std::vector<std::shared_ptr<const Rewrite>> rewrites_of(nb::handle rewrites);

}  // namespace attn_opt::python
