#include "src/io/wire/wire_rewrite.h"

#include <google/protobuf/io/coded_stream.h>

namespace attn_opt {
namespace {

uint64_t varint_size(uint64_t value) { return google::protobuf::io::CodedOutputStream::VarintSize64(value); }

}  // namespace

std::string varint(uint64_t value) {
  std::string bytes(varint_size(value), '\0');
  google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

// Sizes are unsigned and differences wrap around: the sums come out right.
WireRewrite::WireRewrite(const WireOutline& outline, std::span<const uint64_t> sizes) : outline_(outline), size_(outline.size) {
  new_sizes_.reserve(outline.frames.size());
  size_t next = 0;
  for (const auto& frame : outline.frames) new_sizes_.push_back(frame.is_replaced ? sizes[next++] : frame.field.size);
  for (size_t i = outline.frames.size(); i-- > 0;) {
    const auto& frame = outline.frames[i];
    const uint64_t before = frame.field.end() - frame.field.length_at;
    uint64_t& outer = frame.parent == WireOutline::kRoot ? size_ : new_sizes_[frame.parent];
    outer += varint_size(new_sizes_[i]) + new_sizes_[i] - before;
  }
}

Status WireRewrite::write(const WirePieces& pieces) const {
  uint64_t at = 0;
  size_t replaced = 0;
  for (size_t i = 0; i < outline_.frames.size(); ++i) {
    const auto& frame = outline_.frames[i];
    ATTN_OPT_CHECK(pieces.unchanged(at, frame.field.length_at - at));
    ATTN_OPT_CHECK(pieces.length(varint(new_sizes_[i])));
    at = frame.field.begin;
    if (!frame.is_replaced) continue;
    ATTN_OPT_CHECK(pieces.replacement(replaced++));
    at = frame.field.end();
  }
  return pieces.unchanged(at, outline_.size - at);
}

}  // namespace attn_opt
