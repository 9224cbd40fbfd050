#include "src/exec/kernel.h"

namespace attn_opt {

const Tensor& KernelContext::input(size_t i) const {
  static const Tensor kOmitted;
  return i < inputs.size() ? inputs[i] : kOmitted;
}

const onnx::AttributeProto* KernelContext::attribute(std::string_view name) const {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t KernelContext::attribute_int(std::string_view name, int64_t otherwise) const {
  const auto* found = attribute(name);
  return found != nullptr ? found->i() : otherwise;
}

Expected<bool> KernelContext::attribute_flag(std::string_view name, bool otherwise) const {
  const int64_t given = attribute_int(name, otherwise ? 1 : 0);
  if (given != 0 && given != 1) return unsupported(std::string(name) + " = " + std::to_string(given));
  return given == 1;
}

float KernelContext::attribute_float(std::string_view name, float otherwise) const {
  const auto* found = attribute(name);
  return found != nullptr ? found->f() : otherwise;
}

std::string KernelContext::attribute_string(std::string_view name, const std::string& otherwise) const {
  const auto* found = attribute(name);
  return found != nullptr ? found->s() : otherwise;
}

std::vector<int64_t> KernelContext::attribute_ints(std::string_view name) const {
  const auto* found = attribute(name);
  if (found == nullptr) return {};
  return {found->ints().begin(), found->ints().end()};
}

std::vector<float> KernelContext::attribute_floats(std::string_view name) const {
  const auto* found = attribute(name);
  if (found == nullptr) return {};
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> KernelContext::attribute_strings(std::string_view name) const {
  const auto* found = attribute(name);
  if (found == nullptr) return {};
  return {found->strings().begin(), found->strings().end()};
}

tl::unexpected<Error> KernelContext::invalid(std::string what) const {
  return fail(ErrorCode::kInvalidInput, describe(node), node.op_type() + ": " + std::move(what));
}

tl::unexpected<Error> KernelContext::unsupported(std::string what) const {
  return fail(ErrorCode::kUnsupported, describe(node),
              "unsupported: " + node.op_type() + " (opset " + std::to_string(version) + ") with " + std::move(what));
}

Status KernelContext::within_budget(int64_t count, size_t size) const {
  if (count < 0) return invalid("a dimension is negative or too large");
  if (size != 0 && static_cast<size_t>(count) > memory_budget / size) {
    return fail(ErrorCode::kLimit, describe(node),
                node.op_type() + ": a tensor of " + std::to_string(count) + " elements passes the memory limit");
  }
  return {};
}

Status KernelContext::within_budget(DataType type, const Dims& dims) const {
  const int64_t count = element_count(dims);
  if (count < 0) return invalid("dimensions " + print_dims(dims) + " are negative or too large");
  return within_budget(count, type == onnx::TensorProto::STRING ? sizeof(std::string) : element_size(type));
}

Expected<Tensor> KernelContext::allocate(DataType type, Dims dims) const {
  ATTN_OPT_CHECK(within_budget(type, dims));
  return Tensor(type, std::move(dims));
}

Expected<Tensor> KernelContext::allocate_unset(DataType type, Dims dims) const {
  ATTN_OPT_CHECK(within_budget(type, dims));
  return Tensor::unset(type, std::move(dims));
}

Expected<int64_t> KernelContext::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    return invalid("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  }
  return axis < 0 ? axis + rank : axis;
}

Expected<std::vector<int64_t>> KernelContext::integers(const Tensor& tensor) const {
  if (tensor.type() == onnx::TensorProto::INT64) {
    const auto data = tensor.data<int64_t>();
    return std::vector<int64_t>(data.begin(), data.end());
  }
  if (tensor.type() == onnx::TensorProto::INT32) {
    const auto data = tensor.data<int32_t>();
    return std::vector<int64_t>(data.begin(), data.end());
  }
  return invalid("expected an integer tensor, not " + type_name(tensor.type()));
}

Expected<int64_t> KernelContext::integer(size_t i, int64_t otherwise) const {
  if (!has(i)) return otherwise;
  ATTN_OPT_TRY(const auto values, integers(this->input(i)));
  if (values.size() != 1) return invalid("input " + std::to_string(i) + " is not one number");
  return values[0];
}

Expected<std::vector<double>> KernelContext::reals(const Tensor& tensor) const {
  if (!is_floating(tensor.type())) {
    return invalid("expected a floating tensor, not " + type_name(tensor.type()));
  }
  ATTN_OPT_TRY(const Tensor wide, tensor.cast(onnx::TensorProto::DOUBLE));
  const auto data = wide.data<double>();
  return std::vector<double>(data.begin(), data.end());
}

Expected<std::vector<int64_t>> KernelContext::integers_or_attribute(size_t i, std::string_view name) const {
  if (has(i)) return integers(input(i));
  return attribute_ints(name);
}

Status KernelContext::same_type(const Tensor& a, const Tensor& b) const {
  if (a.type() == b.type()) return {};
  return invalid("inputs of types " + type_name(a.type()) + " and " + type_name(b.type()));
}

Outputs single(Expected<Tensor> tensor) {
  if (!tensor) return tl::unexpected<Error>(std::move(tensor.error()));
  std::vector<Tensor> outputs;
  outputs.push_back(*std::move(tensor));
  return outputs;
}

std::string describe(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  return node.op_type() + " node" + (node.output_size() > 0 ? " that makes " + node.output(0) : "");
}

std::string print_dims(const Dims& dims) {
  std::string text = "[";
  for (const int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

std::string qualified_name(const std::string& domain, const std::string& op_type) {
  return domain.empty() ? op_type : domain + "::" + op_type;
}

void KernelRegistry::add(const char* name, int first, int last, Kernel kernel) {
  kernels_[name].push_back({first, last, kernel});
}

Kernel KernelRegistry::find(const std::string& name, int since_version) const {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return nullptr;
  for (const Range& range : found->second) {
    if (range.first <= since_version && since_version <= range.last) return range.kernel;
  }
  return nullptr;
}

}  // namespace attn_opt
