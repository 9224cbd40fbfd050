// Patterns whose match() is a Python function.
#pragma once

#include <memory>
#include <vector>

#include "python/src/scope.h"

namespace attn_opt::python {

/// PATTERNS, objects with name, summary, anchor and match, for one run. They hold Python objects: to be dropped under the GIL.
std::vector<std::shared_ptr<const Pattern>> patterns_of(nb::handle patterns);

}  // namespace attn_opt::python
