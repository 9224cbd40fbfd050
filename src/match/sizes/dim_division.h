#pragma once

#include "attn_opt/dim.h"

namespace attn_opt {

/// Divides A and B by what all their terms share: a positive number and sizes. Where those are 0 the quotient is not defined
/// anyway. False if they share nothing.
bool cancel_common(Dim& a, Dim& b);

}  // namespace attn_opt
