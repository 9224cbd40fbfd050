// Contents of the inputs of an attention, by what each is to it.
#pragma once

#include <functional>

#include "src/exec/layout/random_numbers.h"
#include "src/verify/draws.h"

namespace attn_opt {

/// Draws INPUT, a tensor of DIMS, element by element, in double: call it with each index in order. Errors: kInvalidInput (no
/// lengths fit the sizes). REQUEST must outlive it.
Expected<std::function<double(int64_t)>> input_draw(const DrawRequest& request, const SiteInput& input, const Dims& dims,
                                                    RandomNumbers random);

}  // namespace attn_opt
