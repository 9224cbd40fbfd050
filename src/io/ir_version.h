#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace attn_opt {

/// The IR version that ONNX released together with OPSET (onnx.helper.VERSION_TABLE).
inline int64_t ir_version_of(int opset) {
  constexpr struct {
    int opset;
    int64_t ir_version;
  } kReleases[] = {{8, 3}, {9, 4}, {10, 5}, {11, 6}, {14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}, {24, 12}, {27, 13}};
  const auto* release = std::ranges::find_if(kReleases, [opset](const auto& one) { return opset <= one.opset; });
  return release == std::end(kReleases) ? 14 : release->ir_version;
}

}  // namespace attn_opt
