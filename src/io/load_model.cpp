#include <google/protobuf/io/coded_stream.h>
#include <onnx/checker.h>

#include <climits>
#include <exception>

#include "attn_opt/model_io.h"
#include "src/io/file.h"
#include "src/io/model_file.h"
#include "src/io/model_format.h"
#include "src/io/one_line.h"
#include "src/io/text_format.h"
#include "src/io/wire_diagnosis.h"

namespace attn_opt {
namespace {

constexpr int64_t kFirstIrVersionWithOpsets = 3;

Expected<onnx::ModelProto> parse_binary(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() > INT_MAX) {
    return fail(ErrorCode::kLimit, where, "is larger than 2 GiB, the limit of protobuf",
                "store its large tensors as external data");
  }
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  input.SetTotalBytesLimit(INT_MAX);
  input.SetRecursionLimit(kMaxMessageDepth);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return tl::unexpected<Error>(diagnose_unparsable(bytes, where));
  }
  return model;
}

/// Almost any bytes parse as some message: what every model has must be there.
Status check_is_model(const onnx::ModelProto& model, const std::string& where) {
  std::string missing;
  if (!model.has_graph()) missing = "graph";
  else if (model.ir_version() <= 0) missing = "ir_version";
  else if (model.opset_import_size() == 0 && model.ir_version() >= kFirstIrVersionWithOpsets) missing = "opset_import";
  if (missing.empty()) return {};
  return fail(ErrorCode::kInvalidInput, where, "is not an ONNX model: it has no " + missing);
}

}  // namespace

Expected<Model> load_model(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string where = input_name(path);
  ATTN_OPT_TRY(FileBytes file, FileBytes::open(path));
  const auto bytes = file.bytes();
  if (bytes.empty()) return fail(ErrorCode::kInvalidInput, where, "is empty");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ATTN_OPT_TRY(onnx::ModelProto proto, is_text(path) ? parse_text(text, where) : parse_binary(bytes, where));
  ATTN_OPT_CHECK(check_is_model(proto, where));

  auto store = std::make_shared<ModelFile>(std::move(file), path, options.allowed_data_dirs);
  if (auto adopted = store->adopt_external_data(proto); !adopted) {
    adopted.error().where = where + ": " + adopted.error().where;
    return tl::unexpected<Error>(std::move(adopted.error()));
  }
  return Model{std::move(proto), path, std::move(store)};
}

Status check_model(const Model& model) {
  try {
    onnx::checker::check_model(model.proto);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalidInput, input_name(model.path), "is not valid ONNX: " + one_line(error.what()));
  }
  return {};
}

}  // namespace attn_opt
