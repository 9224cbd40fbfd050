#include "src/trial/feed_check.h"

#include "src/exec/kernel.h"

namespace attn_opt {
namespace {

/// True if a tensor of DIMS is one of what SHAPE declares. Without axes it is any, as in ONNX Runtime.
bool fits(const Dims& dims, const onnx::TensorShapeProto& shape) {
  if (shape.dim_size() == 0) return true;
  if (static_cast<int>(dims.size()) != shape.dim_size()) return false;
  for (int axis = 0; axis < shape.dim_size(); ++axis) {
    const int64_t declared = shape.dim(axis).dim_value();  // 0: none, or what tools write for any
    if (declared > 0 && declared != dims[static_cast<size_t>(axis)]) return false;
  }
  return true;
}

std::string text_of(const onnx::TensorShapeProto& shape) {
  std::string text;
  for (const auto& dim : shape.dim()) {
    const std::string size = dim.dim_value() > 0       ? std::to_string(dim.dim_value())
                             : dim.dim_param().empty() ? "?"
                                                       : dim.dim_param();
    text += (text.empty() ? "" : ", ") + size;
  }
  return "[" + text + "]";
}

}  // namespace

Status check_declared(const onnx::GraphProto& graph, const Feeds& feeds, const std::string& where, ErrorCode code) {
  for (const onnx::ValueInfoProto& input : graph.input()) {
    const auto feed = feeds.find(input.name());
    if (feed == feeds.end() || !input.type().has_tensor_type() || feed->second.is_sequence()) continue;
    const auto& declared = input.type().tensor_type();
    const auto type = static_cast<DataType>(declared.elem_type());
    const std::string name = "input '" + input.name() + "' ";
    if (type != onnx::TensorProto::UNDEFINED && type != feed->second.type())
      return fail(code, where, name + "is " + type_name(feed->second.type()) + ", and the model takes " + type_name(type));
    if (declared.has_shape() && !fits(feed->second.dims(), declared.shape()))
      return fail(code, where,
                  name + "is " + print_dims(feed->second.dims()) + ", and the model takes " + text_of(declared.shape()));
  }
  return {};
}

}  // namespace attn_opt
