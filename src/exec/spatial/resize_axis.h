// Resize along one axis: which input elements each output element is made of, and with which weights.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

/// The attributes of a Resize or Upsample node, by their effect.
struct ResizeMode {
  std::string interpolation;  ///< nearest, linear or cubic
  std::string coordinates;    ///< coordinate_transformation_mode
  std::string nearest;        ///< nearest_mode
  double cubic_coefficient = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation_value = 0;
};

struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;  ///< of tf_crop_and_resize

  bool is_identity() const { return in == out && scale == 1 && roi_start == 0 && roi_end == 1; }
};

/// The input elements FIRST, FIRST + 1, ... (clamped to the axis) times WEIGHTS; none: the extrapolation
/// value.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

Expected<ResizeMode> read_resize_mode(const KernelContext& context);

/// Position of OUTPUT in input coordinates.
double source_position(const ResizeMode& mode, const ResizeAxis& axis, int64_t output);
/// The element that nearest interpolation takes; -1: the extrapolation value.
int64_t nearest_element(const ResizeMode& mode, const ResizeAxis& axis, int64_t output);
/// Of linear and cubic interpolation.
Taps taps_at(const ResizeMode& mode, const ResizeAxis& axis, int64_t output);

}  // namespace attn_opt
