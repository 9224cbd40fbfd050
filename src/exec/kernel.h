// What a kernel is and what it sees.
//
// A kernel computes one operator for one node: it checks shapes and indices before it allocates or reads, and
// returns errors that name the node. The node runner has already checked that the schema's required inputs
// are there.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attn_opt/executor.h"
#include "src/exec/thread_pool.h"

namespace attn_opt {

struct KernelContext {
  const onnx::NodeProto& node;
  std::span<const Tensor> inputs;
  int version = 0;  ///< ResolvedOp::version
  const TensorStore& tensors;
  size_t memory_budget = 0;  ///< bytes that the kernel may allocate
  ThreadPool& threads;
  uint64_t place = 0;        ///< Run::place
  bool compute_f64 = false;  ///< as in ExecutorOptions: floating inputs are double, whatever the model says

  /// Input I, without value if it is omitted.
  const Tensor& input(size_t i) const;
  bool has(size_t i) const { return input(i).has_value(); }
  /// True if the node asks for output I.
  bool wants(int i) const { return i < node.output_size() && !node.output(i).empty(); }

  const onnx::AttributeProto* attribute(std::string_view name) const;
  int64_t attribute_int(std::string_view name, int64_t otherwise) const;
  /// Attribute NAME, 0 or 1. Others are none that ONNX gives a meaning: ONNX Runtime takes a keepdims of 2 for no, OpenVINO for
  /// yes.
  Expected<bool> attribute_flag(std::string_view name, bool otherwise) const;
  float attribute_float(std::string_view name, float otherwise) const;
  std::string attribute_string(std::string_view name, const std::string& otherwise) const;
  std::vector<int64_t> attribute_ints(std::string_view name) const;
  std::vector<float> attribute_floats(std::string_view name) const;
  std::vector<std::string> attribute_strings(std::string_view name) const;

  tl::unexpected<Error> invalid(std::string what) const;
  tl::unexpected<Error> unsupported(std::string what) const;

  /// A zero-filled tensor, after checking DIMS against overflow and the memory budget.
  Expected<Tensor> allocate(DataType type, Dims dims) const;
  /// As allocate(), for a kernel that writes every element: what they are before is not defined.
  Expected<Tensor> allocate_unset(DataType type, Dims dims) const;
  /// Checks that COUNT elements of SIZE bytes may be allocated.
  Status within_budget(int64_t count, size_t size) const;
  /// Checks that a tensor may be allocated.
  Status within_budget(DataType type, const Dims& dims) const;
  /// AXIS in [-RANK, RANK) made non-negative.
  Expected<int64_t> axis(int64_t axis, int64_t rank) const;
  /// The values of an int32 or int64 tensor.
  Expected<std::vector<int64_t>> integers(const Tensor& tensor) const;
  /// The one value of integer input I, or OTHERWISE if it is omitted.
  Expected<int64_t> integer(size_t i, int64_t otherwise) const;
  /// The values of a floating tensor.
  Expected<std::vector<double>> reals(const Tensor& tensor) const;
  /// The values of input I as integers; for older versions those of attribute NAME; empty when neither is
  /// given.
  Expected<std::vector<int64_t>> integers_or_attribute(size_t i, std::string_view name) const;
  /// kInvalidInput unless A and B have one element type.
  Status same_type(const Tensor& a, const Tensor& b) const;
};

using Outputs = Expected<std::vector<Tensor>>;
using Kernel = Outputs (*)(const KernelContext&);

/// One output.
Outputs single(Expected<Tensor> tensor);

/// "Softmax_3", or "Softmax node that makes y" for a node without name.
std::string describe(const onnx::NodeProto& node);
/// "[2, 3]".
std::string print_dims(const Dims& dims);

/// What an operator is registered and looked up by: OP_TYPE in ai.onnx (DOMAIN ""), DOMAIN::OP_TYPE
/// elsewhere.
std::string qualified_name(const std::string& domain, const std::string& op_type);

class KernelRegistry {
 public:
  /// KERNEL computes the operator of qualified NAME for schemas whose since_version is in [FIRST, LAST].
  void add(const char* name, int first, int last, Kernel kernel);
  /// Null if there is none.
  Kernel find(const std::string& name, int since_version) const;

 private:
  struct Range {
    int first, last;
    Kernel kernel;
  };
  std::unordered_map<std::string, std::vector<Range>> kernels_;
};

const KernelRegistry& kernel_registry();

}  // namespace attn_opt
