#include "src/io/wire/spliced_model.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <climits>

#include "src/io/wire/serialize.h"

namespace attn_opt {
namespace {

/// Gathers small pieces for an output.
class PieceBuffer {
 public:
  explicit PieceBuffer(OutputFile& file) : file_(file) {}

  Status append(std::string_view piece) {
    pending_ += piece;
    return pending_.size() < kFull ? Status() : flush();
  }
  Status append(const FileBytes& from, uint64_t offset, uint64_t size) {
    ATTN_OPT_CHECK(flush());
    return file_.append(from, offset, size);
  }
  Status flush() {
    Status written = file_.append(pending_);
    pending_.clear();
    return written;
  }

 private:
  static constexpr size_t kFull = size_t{1} << 18;
  OutputFile& file_;
  std::string pending_;
};

void serialize(const google::protobuf::MessageLite& message, std::string& bytes) {
  bytes.reserve(message.ByteSizeLong());
  google::protobuf::io::StringOutputStream stream(&bytes);
  attn_opt::serialize(message, stream);
}

}  // namespace

Expected<SplicedModel> SplicedModel::create(const onnx::ModelProto& model, TensorPlacement& placement,
                                            const std::string& where) {
  SplicedModel spliced(placement);
  const uint64_t size = model.ByteSizeLong();
  if (size > INT_MAX) return fail(ErrorCode::kOutput, where, "without its weights it would be larger than 2 GiB");
  serialize(model, spliced.bytes_);
  const RawDataTokens tokens;
  WireSource source(std::as_bytes(std::span(spliced.bytes_)));
  const auto select = [&](const auto*, const google::protobuf::FieldDescriptor& field, const WireField& place) {
    if (field.message_type() != onnx::TensorProto::descriptor()) return false;
    onnx::TensorProto tensor;
    tensor.ParseFromArray(spliced.bytes_.data() + place.begin, static_cast<int>(place.size));
    if (!placement.is_stored(tensor)) return false;
    spliced.add(std::move(tensor), tokens);
    return true;
  };
  auto outline = outline_model(source, {.takes = select});
  if (!outline) return fail(ErrorCode::kOutput, where, "the model " + outline.error().what);
  spliced.outline_ = *std::move(outline);
  return spliced;
}

void SplicedModel::add(onnx::TensorProto tensor, const RawDataTokens& tokens) {
  WrittenTensor written{.before = {}, .after = {}, .raw_data = placement_->restore(tensor)};
  const std::string token = tokens.token(0);
  if (written.raw_data != nullptr) tensor.set_raw_data(token);
  serialize(tensor, written.before);
  if (written.raw_data != nullptr) {
    const size_t at = written.before.find(token);
    written.after = written.before.substr(at + token.size());
    written.before.resize(at - varint(token.size()).size());
    written.before += varint(written.raw_data->length);
  }
  sizes_.push_back(written.before.size() + (written.raw_data ? written.raw_data->length : 0) + written.after.size());
  tensors_.push_back(std::move(written));
}

Status SplicedModel::write(OutputFile& file) const {
  PieceBuffer buffer(file);
  const std::string_view model = bytes_;
  const auto unchanged = [&](uint64_t at, uint64_t size) { return buffer.append(model.substr(at, size)); };
  const auto length = [&](std::string_view bytes) { return buffer.append(bytes); };
  const auto tensor = [&](size_t index) -> Status {
    const WrittenTensor& written = tensors_[index];
    ATTN_OPT_CHECK(buffer.append(written.before));
    if (written.raw_data != nullptr) {
      ATTN_OPT_TRY(const FileBytes* from, placement_->file_of(*written.raw_data));
      ATTN_OPT_CHECK(buffer.append(*from, written.raw_data->offset, written.raw_data->length));
    }
    return buffer.append(written.after);
  };
  ATTN_OPT_CHECK(WireRewrite(outline_, sizes_).write({unchanged, length, tensor}));
  return buffer.flush();
}

}  // namespace attn_opt
