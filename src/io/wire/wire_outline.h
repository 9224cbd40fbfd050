// The structure of a serialized model, seen without parsing it.
//
// The pass knows protobuf's wire format and asks ONNX's descriptors what a field holds. It keeps nothing but the way to
// the contents that somebody wants to replace (wire_rewrite.h), so its memory follows their number and its time what it
// has to look at: contents that are replaced or hold no messages are skipped, however large.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "attn_opt/status.h"
#include "src/io/wire/wire_source.h"

namespace attn_opt {

/// Messages inside messages that a model may have: the limit of every protobuf reader.
inline constexpr int kMaxMessageDepth = 100;
/// Messages, names and other byte strings that a model may have. Parsed, each takes up to some 200 bytes, even one of
/// which the file has two.
inline constexpr uint64_t kMaxParts = 20'000'000;

/// A length-delimited field of a message: a length and so many bytes.
struct WireField {
  uint64_t length_at = 0;  ///< where its length stands
  uint64_t begin = 0;      ///< where its content begins
  uint64_t size = 0;       ///< of its content
  uint64_t end() const { return begin + size; }
};

struct WireOutline {
  static constexpr size_t kRoot = SIZE_MAX;
  struct Frame {
    WireField field;
    size_t parent = kRoot;  ///< the frame that it lies in
    bool is_replaced = false;
  };
  std::vector<Frame> frames;  ///< what is replaced and all that contains it, in the order of the file
  uint64_t size = 0;          ///< of the whole model
};

/// Which contents are to be replaced.
struct WireSelector {
  uint64_t min_bytes = 0;  ///< none that is smaller
  /// Is the content of FIELD? ENCLOSING is the field through which its message was entered, nullptr for that of the
  /// ModelProto.
  std::function<bool(const google::protobuf::FieldDescriptor* enclosing, const google::protobuf::FieldDescriptor& field,
                     const WireField& place)>
      takes;
};

/// Outlines the ModelProto in SOURCE. Fields that are not selected are entered if they are messages that can matter, and
/// skipped otherwise: what small ones hold is not looked at, so that it is for protobuf to refuse it. What protobuf parses
/// is never refused for its form. Errors, with an empty `where`: kInvalidInput: truncated or no protobuf message; kLimit:
/// nested too deep, too many parts.
Expected<WireOutline> outline_model(WireSource& source, const WireSelector& select);

}  // namespace attn_opt
