// Memory that tensors gave back, for those that come next.
#pragma once

#include <cstddef>
#include <memory>

namespace attn_opt {

/// While one lives, memory of tensors is kept when they are gone: for the system to hand it out anew, page by page, takes as
/// long as many an operator.
class SpareMemory {
 public:
  SpareMemory();
  SpareMemory(const SpareMemory&) = delete;
  SpareMemory& operator=(const SpareMemory&) = delete;
  ~SpareMemory();

  /// False under AddressSanitizer, which is to see who still reads a tensor that is gone.
  static bool keeps();
  /// BYTES that are not set. Throws std::bad_alloc.
  static std::shared_ptr<std::byte[]> take(size_t bytes);
  /// BYTES of zeros.
  static std::shared_ptr<std::byte[]> take_zeroed(size_t bytes);
};

}  // namespace attn_opt
