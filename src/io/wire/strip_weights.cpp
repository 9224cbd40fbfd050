#include "src/io/wire/strip_weights.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <random>

#include "src/io/wire/wire_outline.h"
#include "src/io/wire/wire_rewrite.h"

namespace attn_opt {
namespace {

using google::protobuf::FieldDescriptor;

tl::unexpected<Error> too_large(const std::string& where) {
  return fail(ErrorCode::kLimit, where, "is larger than 2 GiB without its weights, the limit of protobuf");
}

Expected<onnx::ModelProto> parse(std::string_view bytes, const std::string& where) {
  if (bytes.size() > INT_MAX) return too_large(where);
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  input.SetTotalBytesLimit(INT_MAX);
  input.SetRecursionLimit(kMaxMessageDepth);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return fail(ErrorCode::kInvalidInput, where, "is not an ONNX model (protobuf cannot parse it)");
  }
  return model;
}

/// The model of SOURCE with tokens for what is replaced.
Expected<std::string> skeleton(WireSource& source, const WireOutline& outline, const StrippedModel& model) {
  const std::vector<uint64_t> sizes(model.ranges.size(), model.tokens.token(0).size());
  const WireRewrite rewrite(outline, sizes);
  std::string bytes;
  if (rewrite.size() <= INT_MAX) bytes.reserve(rewrite.size());
  const auto append = [&bytes](std::string_view piece) -> Status {
    bytes += piece;
    return {};
  };
  const auto append_unchanged = [&](uint64_t at, uint64_t size) -> Status {
    if (bytes.size() + size > INT_MAX) return too_large({});
    const int failed = source.append_to(bytes, at, size);
    return failed == 0 ? Status() : fail(ErrorCode::kInvalidInput, {}, "cannot be read: " + error_text(failed));
  };
  const auto append_token = [&](size_t index) { return append(model.tokens.token(index)); };
  ATTN_OPT_CHECK(rewrite.write({append_unchanged, append, append_token}));
  return bytes;
}

}  // namespace

RawDataTokens::RawDataTokens() {
  std::random_device random;
  for (char& c : mark_) c = static_cast<char>(random());
}

std::string RawDataTokens::token(uint64_t index) const {
  std::string token(mark_.begin(), mark_.end());
  return token.append(reinterpret_cast<const char*>(&index), sizeof index);
}

std::optional<uint64_t> RawDataTokens::index(const std::string& raw_data) const {
  uint64_t index = 0;
  if (raw_data.size() != mark_.size() + sizeof index || !std::equal(mark_.begin(), mark_.end(), raw_data.begin())) {
    return std::nullopt;
  }
  std::memcpy(&index, raw_data.data() + mark_.size(), sizeof index);
  return index;
}

Expected<StrippedModel> parse_stripped(const FileBytes& file, uint64_t min_bytes, const std::string& where) {
  const auto* raw_data = onnx::TensorProto::descriptor()->FindFieldByNumber(onnx::TensorProto::kRawDataFieldNumber);
  const auto* values = onnx::SparseTensorProto::descriptor()->FindFieldByNumber(onnx::SparseTensorProto::kValuesFieldNumber);
  const auto* indices = onnx::SparseTensorProto::descriptor()->FindFieldByNumber(onnx::SparseTensorProto::kIndicesFieldNumber);
  const auto at_model = [&where](Error error) {
    error.where = where;
    return error;
  };
  StrippedModel model;
  WireSource source(file);
  const auto strip = [&](const FieldDescriptor* enclosing, const FieldDescriptor& field, const WireField& place) {
    if (&field != raw_data || enclosing == indices) return false;
    model.ranges.push_back({place.begin, place.size, enclosing == values});
    return true;
  };
  ATTN_OPT_TRY(const WireOutline outline, outline_model(source, {min_bytes, strip}).map_error(at_model));
  if (model.ranges.empty()) {
    const auto bytes = file.bytes();
    ATTN_OPT_TRY(model.proto, parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where));
  } else {
    ATTN_OPT_TRY(const std::string bytes, skeleton(source, outline, model).map_error(at_model));
    ATTN_OPT_TRY(model.proto, parse(bytes, where));
  }
  return model;
}

}  // namespace attn_opt
