// A serialized model with some contents replaced, and every length around them made right.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "attn_opt/status.h"
#include "src/io/wire/wire_outline.h"

namespace attn_opt {

/// What a rewritten model consists of, in its order.
struct WirePieces {
  std::function<Status(uint64_t at, uint64_t size)> unchanged;  ///< so many bytes of the outlined model
  std::function<Status(std::string_view bytes)> length;         ///< a new length prefix
  std::function<Status(size_t index)> replacement;              ///< the content number INDEX that is replaced
};

class WireRewrite {
 public:
  /// SIZES: of the new contents, in the order of OUTLINE's frames that are replaced.
  WireRewrite(const WireOutline& outline, std::span<const uint64_t> sizes);

  /// Of the rewritten model.
  uint64_t size() const { return size_; }
  /// Hands the pieces over; stops at the first error.
  Status write(const WirePieces& pieces) const;

 private:
  const WireOutline& outline_;
  std::vector<uint64_t> new_sizes_;  ///< of the frames' contents
  uint64_t size_;
};

/// VALUE as protobuf writes it in front of a content.
std::string varint(uint64_t value);

}  // namespace attn_opt
