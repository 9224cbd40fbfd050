#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <optional>
#include <system_error>

#include "attn_opt/internal/model_walk.h"
#include "attn_opt/model_io.h"
#include "src/io/data_file_copies.h"
#include "src/io/model_format.h"
#include "src/io/output_file.h"
#include "src/io/text_format.h"
#include "src/io/wire/serialize.h"
#include "src/io/wire/spliced_model.h"
#include "src/io/wire/tensor_placement.h"

namespace attn_opt {
namespace {

constexpr int kWrittenAtOnce = 1 << 18;

Status check_size(uint64_t size, const std::filesystem::path& output, const SaveOptions& options) {
  if (size <= options.max_file_bytes) return {};
  return fail(ErrorCode::kOutput, output_name(output),
              "the model would have " + std::to_string(size) + " bytes; one file holds at most " +
                  std::to_string(options.max_file_bytes),
              options.external_data == ExternalData::kInline ? "give --external-data auto or external"
                                                             : "store its large tensors as external data");
}

Status write_binary(const onnx::ModelProto& proto, OutputFile& file, const std::filesystem::path& output,
                    const SaveOptions& options) {
  ATTN_OPT_CHECK(check_size(proto.ByteSizeLong(), output, options));
  google::protobuf::io::FileOutputStream stream(file.descriptor(), kWrittenAtOnce);
  serialize(proto, stream);
  if (!stream.Flush() || stream.GetErrno() != 0) return tl::unexpected<Error>(file.error(stream.GetErrno()));
  return {};
}

Status write_text(const onnx::ModelProto& proto, OutputFile& file, const std::filesystem::path& output) {
  ATTN_OPT_TRY(const std::string text, print_text(proto, output_name(output)));
  return file.append(text);
}

Status write_proto(const onnx::ModelProto& proto, const std::filesystem::path& output, const SaveOptions& options) {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(output));
  ATTN_OPT_CHECK(is_text(output) ? write_text(proto, file, output) : write_binary(proto, file, output, options));
  return file.replace_target();
}

Status write_original(const ModelFile& source, const std::filesystem::path& output, WriteProgress& progress) {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(output, &progress));
  ATTN_OPT_CHECK(file.append(source.original(), 0, source.original().bytes().size()));
  return file.replace_target();
}

/// Text holds its tensors itself.
Status write_whole_text(const Model& model, TensorPlacement& placement, const std::filesystem::path& output) {
  onnx::ModelProto whole = model.proto;
  Status status;
  for_each_tensor(whole, [&](onnx::TensorProto& tensor) {
    if (!status || !placement.is_stored(tensor)) return;
    const auto bytes = model.tensors->bytes(tensor);
    if (!bytes)
      status = tl::unexpected<Error>(bytes.error());
    else if (placement.restore(tensor) != nullptr)
      tensor.set_raw_data(bytes->data(), bytes->size());
  });
  ATTN_OPT_CHECK(status);
  return write_proto(whole, output, {});
}

Status write_spliced(const Model& model, TensorPlacement& placement, const std::filesystem::path& output,
                     const SaveOptions& options, WriteProgress& progress) {
  ATTN_OPT_TRY(auto spliced, SplicedModel::create(model.proto, placement, output_name(output)));
  if (spliced.size() > options.max_file_bytes && options.external_data == ExternalData::kAuto) {
    ATTN_OPT_CHECK(placement.move_out(model.proto, output));
    ATTN_OPT_TRY(spliced, SplicedModel::create(model.proto, placement, output_name(output)));
  }
  ATTN_OPT_CHECK(check_size(spliced.size(), output, options));
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(output, &progress));
  ATTN_OPT_CHECK(spliced.write(file));
  return file.replace_target();
}

bool is_input(const Model& model, const std::filesystem::path& output) {
  std::error_code none;
  return model.path != "-" && !is_stream(output) && std::filesystem::equivalent(model.path, output, none) && !none;
}

Status write_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options, bool is_unchanged) {
  const auto* source = dynamic_cast<const ModelFile*>(model.tensors.get());
  if (source == nullptr) return write_proto(model.proto, output, options);
  WriteProgress progress(options.progress);
  DataFileCopies copies(*source, output, progress);
  progress.expect(source->original().bytes().size());
  for (const auto& file : source->data_files()) {
    if (!copies.stay() || options.external_data == ExternalData::kInline) progress.expect(file->size());
  }
  TensorPlacement placement(*source, copies, options.external_data);
  ATTN_OPT_CHECK(placement.make_data_files(model.proto, output));
  if (is_unchanged && source->repairs().empty() && placement.keeps_all(model.proto)) {
    ATTN_OPT_CHECK(is_input(model, output) ? Status() : write_original(*source, output, progress));
  } else if (!source->stores_tensors()) {
    ATTN_OPT_CHECK(write_proto(model.proto, output, options));
  } else if (is_text(output)) {
    ATTN_OPT_CHECK(write_whole_text(model, placement, output));
  } else {
    ATTN_OPT_CHECK(write_spliced(model, placement, output, options, progress));
  }
  copies.keep();
  return {};
}

}  // namespace

Status save_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options) {
  return write_model(model, output, options, false);
}

Status copy_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options) {
  return write_model(model, output, options, is_text(model.path) == is_text(output));
}

}  // namespace attn_opt
