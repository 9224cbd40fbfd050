// A model in memory and where the bytes of its tensors are.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "attn_opt/status.h"

namespace attn_opt {

/// Finds the bytes of a model's tensors. A tensor's bytes may lie in the TensorProto, in an external data file, or in
/// the model's own file from which they were never parsed; who reads tensors does not know which.
class TensorStore {
 public:
  virtual ~TensorStore() = default;

  /// The little-endian bytes of TENSOR, of the size that its dims and data_type ask for; valid as long as the store
  /// and TENSOR live. Empty for a tensor that keeps its values in a typed field (float_data, int32_data, ...): read
  /// those from the proto.
  /// Errors: kInvalidInput when the bytes are missing, out of range or of another size than dims and type ask for.
  virtual Expected<std::span<const std::byte>> bytes(const onnx::TensorProto& tensor) const = 0;
};

/// A store for models that hold all their tensors themselves (no external data).
const TensorStore& inline_tensors();

/// A model and the store of its tensors' bytes.
struct Model {
  onnx::ModelProto proto;
  std::filesystem::path path;                  ///< as given by the user; "-" for standard input
  std::shared_ptr<const TensorStore> tensors;  ///< never null
};

/// Version of the operator set DOMAIN ("" and "ai.onnx" are one) that PROTO imports; 0 if it imports none.
int opset_version(const onnx::ModelProto& proto, const std::string& domain = "");

}  // namespace attn_opt
