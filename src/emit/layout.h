// Changes of layout: the same elements with their factors on other axes, by Reshape, Transpose, Reshape at
// most.
#pragma once

#include <cstdint>
#include <vector>

#include "attn_opt/internal/axis_map.h"
#include "src/emit/site.h"

namespace attn_opt {

enum class IoForm { k3d, k4d };

/// That of the operator's own layout for the same factors: (B, H, L, D), or (B, L, H * D).
Grouping grouping_for(const AxisMap& map, IoForm form);
Shape shape_of(const AxisMap& map, const Grouping& grouping);

class LayoutChange {
 public:
  LayoutChange(Grouping from, Grouping to);

  int node_count() const;
  /// Miss "emit.shape": the shape in between needs a size that no value at hand has.
  Matched<Value*> write(Value& value, const AxisMap& map, Site& site) const;

 private:
  void match_unit_axes();
  void find_order();

  Grouping from_, to_;
  Grouping split_, pieces_;     ///< before and after the Transpose
  std::vector<int64_t> order_;  ///< empty: no Transpose
};

/// Reshape from shape FROM to shape TO. Miss "emit.shape".
Matched<Value*> write_reshape(Value& value, const Shape& from, const Shape& to, Site& site);

}  // namespace attn_opt
