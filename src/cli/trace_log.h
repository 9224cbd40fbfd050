// What -vv says: why each pattern and rewrite does not match at each node.
#pragma once

#include "attn_opt/optimizer.h"
#include "src/cli/options/command_line.h"

namespace attn_opt {

/// What OptimizeOptions::trace is to be: nothing unless VERBOSITY asks for all.
decltype(OptimizeOptions::trace) trace_to_log(const Verbosity& verbosity);

}  // namespace attn_opt
