// How far two tensors lie apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// ACTUAL agrees with EXPECTED if |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double relative = 0, absolute = 0;
};

/// Of the tensors that VALUE is or, a sequence, holds; UNDEFINED where it holds none.
DataType element_type(const Tensor& value);

/// What results of whole models in TYPE may differ by, computed in another order; 0 for what is not floating.
Tolerance model_tolerance(DataType type);

/// TOLERANCE with what is given in the place of its own.
inline Tolerance with_given(Tolerance tolerance, std::optional<double> relative, std::optional<double> absolute) {
  return {relative.value_or(tolerance.relative), absolute.value_or(tolerance.absolute)};
}

struct TensorDifference {
  std::string incomparable;  ///< why the elements cannot be compared (types, dims); empty if they can
  double absolute = 0;       ///< largest |actual - expected|; infinity where only one is infinite
  double relative = 0;       ///< largest |actual - expected| / |expected|, over elements with expected != 0
  int64_t nans_expected = 0, nans_actual = 0;
  int64_t nans_elsewhere = 0;  ///< elements of which just one is NaN
  int64_t infinities_expected = 0;
  int64_t infinities_elsewhere = 0;  ///< elements that are not the same infinity, or of which just one is infinite
  int64_t beyond = 0;                ///< elements beyond the tolerance, those included
  double ulp = 0;  ///< largest |actual - expected| in units of the last place of |expected|, of its floating type
  Dims worst;      ///< index of the element furthest beyond the tolerance, or else of that with the largest
                   ///< difference; of a sequence the element's number comes first

  bool agrees() const { return incomparable.empty() && beyond == 0; }
};

/// Tensors, sequences of them, or empty optionals.
TensorDifference difference(const Tensor& expected, const Tensor& actual, const Tolerance& tolerance);

/// The worse of two findings on one value.
TensorDifference worse(const TensorDifference& one, const TensorDifference& other);

/// The index of element FLAT, in row-major order, of a tensor of DIMS.
Dims index_of(int64_t flat, const Dims& dims);

/// "(2, 3, 4)".
std::string to_string(const Dims& dims);

/// In one phrase: "largest difference 3e-07 (relative 2e-06)", what is incomparable, or how many are beyond
/// and where.
std::string to_string(const TensorDifference& difference);

}  // namespace attn_opt
