// Models in memory: protobuf's bytes in, protobuf's bytes out.
#pragma once

#include <filesystem>
#include <string>

#include "attn_opt/model_io.h"

namespace attn_opt {

/// The model in BYTES, a serialized ModelProto. External data is looked for in FOLDER (empty: the current one), by the rules
/// of load_model(). All else stays in the proto: LoadOptions::min_stripped_bytes does not matter.
/// Errors: as load_model().
Expected<Model> parse_model(std::string bytes, const std::filesystem::path& folder = {}, const LoadOptions& options = {});

/// MODEL's bytes; external tensors have the entries that they were read with.
/// Errors: kOutput where protobuf cannot hold it (2 GB); kInvalidInput if a file that tensors are read from is gone.
Expected<std::string> serialize_model(Model model);

}  // namespace attn_opt
