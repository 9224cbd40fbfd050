// Reading and writing models.
//
//   auto model = load_model("in.onnx");               // or "in.onnxtxt", or "-" for standard input
//   if (model) model_ok = check_model(*model);        // ONNX's own checker
//   if (model) saved = save_model(*model, "out.onnx");
//
// Formats: ONNX's textual syntax for paths that end in .onnxtxt, protobuf for all others and for "-".
//
// External data: while a model is in memory, the location of an external tensor is a token "#N" that only the model's
// TensorStore understands (ONNX's checker and schema functions accept it, and no code can open a file by it). Files are
// mapped when a tensor's bytes are first asked for. save_model writes the original entries again.
// A location must be relative, without "..", and lie inside the model's folder; a symbolic link is followed only into
// that folder, into the folder of the file that the model's own path resolves to, or into LoadOptions::allowed_data_dirs.
//
// An output appears whole or not at all, and may be the input.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "attn_opt/model.h"
#include "attn_opt/status.h"

namespace attn_opt {

/// What load_model() may read, and how much of it stays in the file.
struct LoadOptions {
  /// Further folders into which links to external data may lead.
  std::vector<std::filesystem::path> allowed_data_dirs;
  /// raw_data of so many bytes and more is not parsed: it stays in the file, where the TensorStore finds it.
  uint64_t min_stripped_bytes = 4096;
};

/// Where an output keeps the tensors that LoadOptions::min_stripped_bytes left in the input's file. Those that were
/// external stay external, but for kInline.
enum class ExternalData {
  kAuto,      ///< in the model's file; in a data file STEM.data beside it where it would else be too large
  kInline,    ///< in the model's file, together with all that was external
  kExternal,  ///< in a data file STEM.data (values of sparse tensors, which readers want inline, do not move)
};

/// Where save_model() puts tensors.
struct SaveOptions {
  /// A model file of more bytes is refused: protobuf, and with it every reader of ONNX, stops below 2 GiB.
  uint64_t max_file_bytes = INT32_MAX;
  ExternalData external_data = ExternalData::kAuto;
  /// Called with the part that is written, 0 to 1; never where the model's weights are not in files. May throw: then
  /// nothing is kept.
  std::function<void(double part)> progress{};
};

/// Reads PATH ("-": standard input, whose external data is looked for in the current folder).
/// Errors: kInvalidInput when PATH cannot be read, is not ONNX, or an external tensor's data is missing, out of range,
/// of another size than its dims and type ask for, or outside of where it may be; kLimit when the file without its
/// weights is larger than 2 GiB, nested deeper than protobuf reads, or has more than 20 million messages and names.
Expected<Model> load_model(const std::filesystem::path& path, const LoadOptions& options = {});

/// The model that MODEL was read as, of the same bytes and with the same store. Errors: kUnsupported (MODEL was not read by
/// load_model or parse_model), kInvalidInput.
Expected<Model> as_it_was_read(const Model& model);

/// Runs onnx.checker.check_model (without shape inference). Error: kInvalidInput with the checker's reason on one line.
Status check_model(const Model& model);

/// Writes MODEL to OUTPUT ("-": standard output). External data stays external: an output in the input's folder, or on
/// standard output, refers to the same files; into another folder they are copied. A file of that name with other
/// content is never overwritten: the copy is then named STEM.NAME, STEM being OUTPUT's. A symbolic link at OUTPUT is
/// replaced, not written through; what lies below /dev and /proc and pipes are written to directly.
/// Error: kOutput, and then neither OUTPUT nor any copied data file exists that did not exist before.
Status save_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options = {});

/// Writes the bytes that MODEL, unchanged since load_model, was read from; external data as with save_model. As
/// save_model where the bytes cannot stay (another format, a data file that needs another name, a model that was not
/// loaded from a file). Does nothing when OUTPUT is the input.
Status copy_model(const Model& model, const std::filesystem::path& output, const SaveOptions& options = {});

}  // namespace attn_opt
