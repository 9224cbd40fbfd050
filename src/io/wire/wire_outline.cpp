#include "src/io/wire/wire_outline.h"

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

namespace attn_opt {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

enum WireType : uint32_t { kVarint, kFixed64, kLengthDelimited, kStartGroup, kEndGroup, kFixed32 };

constexpr size_t kLongestTag = 5, kLongestVarint = 10;
constexpr uint64_t kBytesOfSmallestPart = 2;  // its tag, and a length of 0

class WirePass {
 public:
  WirePass(WireSource& source, const WireSelector& select)
      : source_(source), select_(select), counts_all_(source.size() > kBytesOfSmallestPart * kMaxParts) {
    outline_.size = source.size();
    open_.push_back({onnx::ModelProto::descriptor(), nullptr, {0, 0, source.size()}});
  }

  Expected<WireOutline> run() {
    while (true) {
      while (!open_.empty() && at_ == open_.back().field.end()) {
        if (open_.back().group != 0) return not_onnx();
        open_.pop_back();
      }
      if (open_.empty()) return std::move(outline_);
      if (Status read = read_field(); !read) return tl::unexpected<Error>(std::move(read.error()));
    }
  }

 private:
  /// A message or group that the pass is in. A group has no length: it ends before the message around it.
  struct Open {
    const Descriptor* message;  ///< nullptr: a group, of which nothing is known
    const FieldDescriptor* through;
    WireField field;
    uint32_t group = 0;
    size_t frame = WireOutline::kRoot;
  };

  Status read_field() {
    const auto tag = read_varint(kLongestTag);
    const auto number = tag ? static_cast<uint32_t>(*tag) >> 3 : 0;  // protobuf drops the bits above
    if (number == 0) return not_onnx();
    switch (*tag & 7) {
      case kVarint: return read_varint(kLongestVarint) ? Status() : not_onnx();
      case kFixed64: return skip(8);
      case kFixed32: return skip(4);
      case kStartGroup: return enter({nullptr, nullptr, {at_, at_, open_.back().field.end() - at_}, number});
      case kEndGroup:
        if (open_.back().group != number) return not_onnx();
        open_.pop_back();
        return {};
      case kLengthDelimited: return read_length_delimited(static_cast<int>(number));
      default: return not_onnx();
    }
  }

  Status read_length_delimited(int number) {
    const uint64_t length_at = at_;
    const auto length = read_varint(kLongestVarint);
    if (!length || (*length <= INT32_MAX && at_ - length_at > kLongestTag)) return not_onnx();
    if (*length > source_.size() - at_) {
      const uint64_t rest = source_.size() - at_;
      return fail(ErrorCode::kInvalidInput, {},
                  "is truncated or not an ONNX model: a field at byte " + std::to_string(at_) + " has " +
                      std::to_string(*length) + " bytes and the file ends after " + std::to_string(rest));
    }
    if (*length > open_.back().field.end() - at_) return not_onnx();
    ATTN_OPT_CHECK(count_part());
    if (is_without_matter(*length)) return skip(*length);
    const Open& parent = open_.back();
    const FieldDescriptor* field = parent.message ? parent.message->FindFieldByNumber(number) : nullptr;
    const WireField place{length_at, at_, *length};
    if (field == nullptr) return skip(*length);
    if (*length >= select_.min_bytes && select_.takes(parent.through, *field, place)) {
      keep(place);
      return skip(*length);
    }
    if (field->message_type() == nullptr) return skip(*length);
    return enter({field->message_type(), field, place});
  }

  /// SIZE bytes have no room for contents to replace, nor for messages in messages beyond the limit, and need no count.
  bool is_without_matter(uint64_t size) const {
    return !counts_all_ && size < select_.min_bytes &&
           size / kBytesOfSmallestPart + open_.size() < static_cast<size_t>(kMaxMessageDepth);
  }

  Status enter(const Open& next) {
    if (open_.size() > static_cast<size_t>(kMaxMessageDepth)) {
      return fail(ErrorCode::kLimit, {},
                  "is nested deeper than the limit of " + std::to_string(kMaxMessageDepth) + " messages");
    }
    if (next.group != 0) {
      ATTN_OPT_CHECK(count_part());
    }
    open_.push_back(next);
    return {};
  }

  Status count_part() {
    if (++parts_ <= kMaxParts) return {};
    return fail(ErrorCode::kLimit, {}, "has more than " + std::to_string(kMaxParts) + " messages and names, the limit");
  }

  /// Enters what is replaced, and what of that around it is not there yet, into the outline.
  void keep(const WireField& replaced) {
    size_t parent = WireOutline::kRoot;
    for (size_t i = 1; i < open_.size(); ++i) {
      if (open_[i].frame == WireOutline::kRoot) {
        open_[i].frame = outline_.frames.size();
        outline_.frames.push_back({open_[i].field, parent, false});
      }
      parent = open_[i].frame;
    }
    outline_.frames.push_back({replaced, parent, true});
  }

  /// nullopt: it does not end within LONGEST bytes, or within its message. Bits above the 64th are dropped.
  std::optional<uint64_t> read_varint(size_t longest) {
    const auto bytes = source_.peek(at_, std::min<uint64_t>(longest, open_.back().field.end() - at_));
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      value |= (std::to_integer<uint64_t>(bytes[i]) & 0x7f) << (7 * i);
      if ((bytes[i] & std::byte{0x80}) != std::byte{0}) continue;
      at_ += i + 1;
      return value;
    }
    return std::nullopt;
  }

  Status skip(uint64_t count) {
    if (count > open_.back().field.end() - at_) return not_onnx();
    at_ += count;
    return {};
  }

  tl::unexpected<Error> not_onnx() const {
    const int failure = source_.failure();
    return fail(ErrorCode::kInvalidInput, {},
                failure != 0 ? "cannot be read: " + error_text(failure)
                             : "is not an ONNX model (no protobuf message at byte " + std::to_string(at_) + ")");
  }

  WireSource& source_;
  const WireSelector& select_;
  const bool counts_all_;  ///< a smaller model cannot have too many parts
  WireOutline outline_;
  uint64_t at_ = 0;
  uint64_t parts_ = 0;
  std::vector<Open> open_;
};

}  // namespace

Expected<WireOutline> outline_model(WireSource& source, const WireSelector& select) { return WirePass(source, select).run(); }

}  // namespace attn_opt
