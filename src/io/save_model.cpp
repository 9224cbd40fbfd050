#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <optional>
#include <system_error>

#include "attn_opt/model_io.h"
#include "attn_opt/model_walk.h"
#include "src/io/data_file_copies.h"
#include "src/io/model_format.h"
#include "src/io/output_file.h"
#include "src/io/text_format.h"

namespace attn_opt {
namespace {

Status write_binary(const onnx::ModelProto& proto, OutputFile& file, const std::filesystem::path& output,
                    const SaveOptions& options) {
  const uint64_t size = proto.ByteSizeLong();
  if (size > options.max_file_bytes) {
    return fail(ErrorCode::kOutput, output_name(output),
                "the model would have " + std::to_string(size) + " bytes; one file holds at most " +
                    std::to_string(options.max_file_bytes),
                "store its large tensors as external data");
  }
  google::protobuf::io::FileOutputStream stream(file.descriptor());
  {
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    proto.SerializeToCodedStream(&coded);
  }
  if (!stream.Flush() || stream.GetErrno() != 0) return tl::unexpected<Error>(file.error(stream.GetErrno()));
  return {};
}

Status write_text(const onnx::ModelProto& proto, OutputFile& file, const std::filesystem::path& output) {
  ATTN_OPT_TRY(const std::string text, print_text(proto, output_name(output)));
  if (const int failed = write_all(file.descriptor(), std::as_bytes(std::span(text))); failed != 0) {
    return tl::unexpected<Error>(file.error(failed));
  }
  return {};
}

Status write_proto(const onnx::ModelProto& proto, const std::filesystem::path& output, const SaveOptions& options) {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(output));
  ATTN_OPT_CHECK(is_text(output) ? write_text(proto, file, output) : write_binary(proto, file, output, options));
  return file.replace_target();
}

Status write_original(const ModelFile& source, const std::filesystem::path& output) {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(output));
  if (const int failed = copy_all(source.original(), file.descriptor()); failed != 0) {
    return tl::unexpected<Error>(file.error(failed));
  }
  return file.replace_target();
}

bool is_input(const Model& model, const std::filesystem::path& output) {
  std::error_code none;
  return model.path != "-" && !is_stream(output) && std::filesystem::equivalent(model.path, output, none) && !none;
}

Status write_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options,
                   bool is_unchanged) {
  const auto* source = dynamic_cast<const ModelFile*>(model.tensors.get());
  if (source == nullptr) return write_proto(model.proto, output, options);
  DataFileCopies copies(*source, output);
  ATTN_OPT_CHECK(copies.place(model.proto));
  if (is_unchanged && !copies.any_renamed()) {
    ATTN_OPT_CHECK(write_original(*source, output));
  } else if (source->data_files().empty()) {
    ATTN_OPT_CHECK(write_proto(model.proto, output, options));
  } else {
    onnx::ModelProto restored = model.proto;
    copies.restore_entries(restored);
    ATTN_OPT_CHECK(write_proto(restored, output, options));
  }
  copies.keep();
  return {};
}

}  // namespace

Status save_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options) {
  return write_model(model, output, options, false);
}

Status copy_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options) {
  if (is_input(model, output)) return {};
  return write_model(model, output, options, is_text(model.path) == is_text(output));
}

}  // namespace attn_opt
