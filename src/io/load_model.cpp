#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/checker.h>

#include <exception>
#include <optional>

#include "attn_opt/model_bytes.h"
#include "attn_opt/model_io.h"
#include "src/io/check/flat_check.h"
#include "src/io/check/node_order.h"
#include "src/io/check/repair.h"
#include "src/io/check/runtime_operators.h"
#include "src/io/check/undefined_name.h"
#include "src/io/file.h"
#include "src/io/left_out.h"
#include "src/io/model_file.h"
#include "src/io/model_format.h"
#include "src/io/one_line.h"
#include "src/io/text_format.h"
#include "src/io/wire/serialize.h"

namespace attn_opt {
namespace {

constexpr int64_t kFirstIrVersionWithOpsets = 3;
constexpr const char* kNameInMemory = "(memory)";

/// Almost any bytes parse as some message: what every model has must be there.
Status check_is_model(const onnx::ModelProto& model, const std::string& where) {
  std::string missing;
  if (!model.has_graph())
    missing = "graph";
  else if (model.ir_version() <= 0)
    missing = "ir_version";
  else if (model.opset_import_size() == 0 && model.ir_version() >= kFirstIrVersionWithOpsets)
    missing = "opset_import";
  if (missing.empty()) return {};
  return fail(ErrorCode::kInvalidInput, where, "is not an ONNX model: it has no " + missing);
}

/// What ONNX's checker says of PROTO; empty if all is well.
std::string refusal_of(const onnx::ModelProto& proto) {
  try {
    onnx::checker::check_model(proto);
    return {};
  } catch (const std::exception& error) {
    return one_line(error.what());
  }
}

/// What ONNX's checker says, but of operators that only runtimes have and of what they do without; empty if all is well.
std::string checked(const onnx::ModelProto& proto) {
  if (is_valid_flat_model(proto)) return {};
  std::optional<onnx::ModelProto> rest;
  try {
    rest = without_runtime_operators(proto);
  } catch (const std::exception& error) {
    return one_line(error.what());
  }
  std::string wrong = refusal_of(rest ? *rest : proto);
  if (wrong.empty() || !leaves_out(proto)) return wrong;
  if (!rest) rest = proto;
  complete(*rest);
  return refusal_of(*rest);
}

/// The model of FILE, called PATH, without raw_data of MIN_STRIPPED bytes and more.
Expected<StrippedModel> parse_file(const FileBytes& file, const std::filesystem::path& path, uint64_t min_stripped) {
  const std::string where = input_name(path);
  if (!is_text(path)) return parse_stripped(file, min_stripped, where);
  const auto bytes = file.bytes();
  StrippedModel stripped;
  ATTN_OPT_TRY(stripped.proto, parse_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where));
  return stripped;
}

/// The model of FILE, with its tensors in a store.
Expected<Model> stored_model(FileBytes file, const std::filesystem::path& path, uint64_t min_stripped,
                             const LoadOptions& options) {
  const std::string where = input_name(path);
  if (file.bytes().empty()) return fail(ErrorCode::kInvalidInput, where, "is empty");
  if (is_lfs_pointer(file)) return fail(ErrorCode::kInvalidInput, where, "is a Git LFS pointer, not the model", kPullsLfs);
  ATTN_OPT_TRY(StrippedModel stripped, parse_file(file, path, min_stripped));
  ATTN_OPT_CHECK(check_is_model(stripped.proto, where));
  auto store = std::make_shared<ModelFile>(std::move(file), path, options.allowed_data_dirs, min_stripped);
  if (auto adopted = store->adopt_tensors(stripped.proto, stripped); !adopted) {
    adopted.error().where = where + ": " + adopted.error().where;
    return tl::unexpected<Error>(std::move(adopted.error()));
  }
  store->note_repairs(repair(stripped.proto));
  sort_nodes(stripped.proto);
  return Model{std::move(stripped.proto), path, std::move(store)};
}

}  // namespace

Expected<Model> load_model(const std::filesystem::path& path, const LoadOptions& options) {
  ATTN_OPT_TRY(FileBytes file, FileBytes::open(path));
  return stored_model(std::move(file), path, options.min_stripped_bytes, options);
}

Expected<Model> parse_model(std::string bytes, const std::filesystem::path& folder, const LoadOptions& options) {
  return stored_model(FileBytes::of(std::move(bytes)), folder / kNameInMemory, UINT64_MAX, options);
}

Expected<Model> as_it_was_read(const Model& model) {
  const auto* source = dynamic_cast<const ModelFile*>(model.tensors.get());
  if (!source) return fail(ErrorCode::kUnsupported, input_name(model.path), "was not read from a file");
  ATTN_OPT_TRY(StrippedModel stripped, parse_file(source->original(), model.path, source->min_stripped()));
  source->give_tokens(stripped.proto, stripped);
  repair(stripped.proto);
  sort_nodes(stripped.proto);
  return Model{std::move(stripped.proto), model.path, model.tensors};
}

Expected<std::string> serialize_model(Model model) {
  if (const auto* source = dynamic_cast<const ModelFile*>(model.tensors.get())) {
    ATTN_OPT_CHECK(source->restore_all(model.proto));
  }
  const size_t size = model.proto.ByteSizeLong();
  if (size > INT32_MAX) {
    return fail(ErrorCode::kOutput, model.path.string(),
                "would have " + std::to_string(size) + " bytes; protobuf stops at 2 GB", "give a path, not a model in memory");
  }
  std::string bytes;
  bytes.reserve(size);
  google::protobuf::io::StringOutputStream stream(&bytes);
  serialize(model.proto, stream);
  return bytes;
}

Status check_model(const Model& model) {
  const auto invalid = [&model](const std::string& reason) {
    return fail(ErrorCode::kInvalidInput, input_name(model.path), "is not valid ONNX: " + reason);
  };
  if (const std::string wrong = checked(model.proto); !wrong.empty()) return invalid(naming_undefined(wrong, model.proto));
  if (const auto* file = dynamic_cast<const ModelFile*>(model.tensors.get())) {
    if (const auto spliced = file->check_stripped(model.proto); !spliced) return invalid(spliced.error().message());
  }
  return {};
}

}  // namespace attn_opt
