#include "src/io/wire_diagnosis.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace attn_opt {
namespace {

// Messages below the innermost one that is looked into: a shape and its dimensions.
constexpr size_t kUnscannedDepth = 2;

/// The messages that can contain themselves, and those on the way there.
enum class Message { kOther, kModel, kTraining, kFunction, kGraph, kNode, kAttribute, kValueInfo, kType, kTypeBody };

/// Field numbers as in onnx.proto.
Message message_of_field(Message parent, uint64_t field) {
  switch (parent) {
    case Message::kModel:
      return field == 7 ? Message::kGraph : field == 20 ? Message::kTraining : field == 25 ? Message::kFunction
                                                                                           : Message::kOther;
    case Message::kTraining: return field == 1 || field == 2 ? Message::kGraph : Message::kOther;
    case Message::kFunction: return field == 7 ? Message::kNode : field == 11 ? Message::kAttribute : Message::kOther;
    case Message::kGraph:
      return field == 1 ? Message::kNode : field >= 11 && field <= 13 ? Message::kValueInfo : Message::kOther;
    case Message::kNode: return field == 5 ? Message::kAttribute : Message::kOther;
    case Message::kAttribute:
      return field == 6 || field == 11 ? Message::kGraph : field == 14 || field == 15 ? Message::kType : Message::kOther;
    case Message::kValueInfo: return field == 2 ? Message::kType : Message::kOther;
    case Message::kType: return field == 4 || field == 5 || field == 9 ? Message::kTypeBody : Message::kOther;
    case Message::kTypeBody: return field == 1 || field == 2 ? Message::kType : Message::kOther;
    case Message::kOther: break;
  }
  return Message::kOther;
}

class WireScanner {
 public:
  explicit WireScanner(std::span<const std::byte> bytes) : bytes_(bytes) { open_.push_back({Message::kModel, bytes.size()}); }

  /// Reads on to the first thing that is wrong, or to the end.
  std::string find_fault() {
    while (true) {
      while (!open_.empty() && at_ == open_.back().end) open_.pop_back();
      if (open_.empty()) return {};
      if (std::string fault = read_field(); !fault.empty()) return fault;
      if (open_.size() + kUnscannedDepth > kMaxMessageDepth) return kTooDeep;
    }
  }

  static constexpr const char* kTooDeep = "is nested deeper than the limit of 100 messages";

 private:
  struct Open {
    Message message;
    size_t end;
  };

  std::optional<uint64_t> read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && at_ < open_.back().end; shift += 7) {
      const auto byte = static_cast<uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7f) << (shift & 63);
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  std::string read_field() {
    const Open parent = open_.back();
    const auto tag = read_varint();
    if (!tag || *tag >> 3 == 0) return not_onnx();
    switch (*tag & 7) {
      case 0: return read_varint() ? std::string() : not_onnx();
      case 1: return skip(8);
      case 5: return skip(4);
      case 2: break;
      default: return not_onnx();
    }
    const auto length = read_varint();
    if (!length) return not_onnx();
    if (*length > bytes_.size() - at_) {
      return "is truncated or not an ONNX model: a field at byte " + std::to_string(at_) + " has " +
             std::to_string(*length) + " bytes and the file ends after " + std::to_string(bytes_.size() - at_);
    }
    if (*length > parent.end - at_) return not_onnx();
    const Message child = message_of_field(parent.message, *tag >> 3);
    if (child == Message::kOther) return skip(*length);
    open_.push_back({child, at_ + *length});
    return {};
  }

  std::string skip(size_t count) {
    if (count > open_.back().end - at_) return not_onnx();
    at_ += count;
    return {};
  }

  std::string not_onnx() const {
    return "is not an ONNX model (no protobuf message at byte " + std::to_string(at_) + ")";
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  std::vector<Open> open_;
};

}  // namespace

Error diagnose_unparsable(std::span<const std::byte> bytes, const std::string& where) {
  std::string fault = WireScanner(bytes).find_fault();
  if (fault.empty()) fault = "is not an ONNX model (protobuf cannot parse it)";
  const auto code = fault == WireScanner::kTooDeep ? ErrorCode::kLimit : ErrorCode::kInvalidInput;
  return Error{code, where, fault, ""};
}

}  // namespace attn_opt
