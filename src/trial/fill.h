// What an input is filled with, as FEED lines of cases say it (docs/cases.md has the list).
//
//   normal  ones  zeros  iota  const(v)  values(a,b,...)  uniform(low,high)  bernoulli(p)
//   keep(p)  rows-one-empty  causal  lowest-row          masks: bool keeps, integers 1 or 0, floats 0 or a
//   fill
#pragma once

#include <string_view>
#include <vector>

#include "attn_opt/status.h"
#include "attn_opt/tensor.h"
#include "src/exec/layout/random_numbers.h"

namespace attn_opt {

struct Fill {
  enum class Kind { kNormal, kUniform, kConstant, kIota, kBernoulli, kValues, kKeep, kRowsOneEmpty, kCausal };
  Kind kind = Kind::kNormal;
  std::vector<double> arguments;  ///< all of them, defaults filled in
};

/// Error: kUsage with the list of fills.
Expected<Fill> parse_fill(std::string_view text);

/// Floats normal, bools true, integers 0 or 1 with 1 at the start of each row (as a mask they keep a key).
Fill default_fill(DataType type);

/// A tensor of TYPE and DIMS. A finite argument beyond TYPE's range is its lowest or largest finite value.
/// Error: kUnsupported for strings and complex numbers.
Expected<Tensor> filled(DataType type, const Dims& dims, const Fill& fill, RandomNumbers& random);

}  // namespace attn_opt
