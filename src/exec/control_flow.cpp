// If, Loop and Scan.
#include "src/exec/copy.h"
#include "src/exec/runner.h"

namespace attn_opt {
namespace {

const onnx::GraphProto* find_body(const Step& step, const char* name, const Plan** plan) {
  size_t body = 0;
  for (const auto& attribute : step.node->attribute()) {
    if (!attribute.has_g()) continue;
    if (attribute.name() == name) {
      *plan = step.bodies[body].get();
      return &attribute.g();
    }
    ++body;
  }
  return nullptr;
}

Expected<bool> truth(const KernelContext& context, const Tensor& tensor) {
  if (tensor.type() != onnx::TensorProto::BOOL || tensor.size() != 1) {
    return context.invalid("the condition is not one bool");
  }
  return tensor.data<bool>()[0];
}

Outputs run_if(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  const KernelContext context = kernel_context(*step.node, step.op, inputs, run);
  ATTN_OPT_TRY(const bool condition, truth(context, inputs[0]));
  const Plan* plan = nullptr;
  if (find_body(step, condition ? "then_branch" : "else_branch", &plan) == nullptr) {
    return context.invalid("a branch is missing");
  }
  return run_plan(*plan, {}, outer, run);
}

/// What each iteration adds to one scan output.
class Stack {
 public:
  Status push(const KernelContext& context, Tensor item) {
    if (!items_.empty() && (item.dims() != items_[0].dims() || item.type() != items_[0].type())) {
      return context.invalid("a scan output changes its shape or type between iterations");
    }
    bytes_ += item.bytes().size();
    items_.push_back(std::move(item));
    return context.within_budget(static_cast<int64_t>(bytes_), 1);
  }

  /// The items along a new axis; DECLARED tells type and rank when there are none.
  Expected<Tensor> join(const KernelContext& context, const onnx::ValueInfoProto& declared, int64_t axis,
                        bool reversed) {
    if (items_.empty()) return nothing(declared);
    Dims dims = items_[0].dims();
    dims.insert(dims.begin(), static_cast<int64_t>(items_.size()));
    ATTN_OPT_TRY(axis, context.axis(axis, static_cast<int64_t>(dims.size())));
    if (reversed) std::ranges::reverse(items_);
    ATTN_OPT_TRY(Tensor joined, context.allocate(items_[0].type(), dims));
    ATTN_OPT_TRY(joined, dispatch_cells(context, joined.type(), [&]<class T>() -> Expected<Tensor> {
                   T* to = mutable_cells<T>(joined);
                   for (const Tensor& item : items_) to = std::copy_n(cells<T>(item), item.size(), to);
                   return std::move(joined);
                 }));
    std::vector<int64_t> perm;
    for (int64_t i = 1; i < joined.rank(); ++i) perm.push_back(i);
    perm.insert(perm.begin() + axis, 0);
    return axis == 0 ? joined : transposed(context, joined, perm);
  }

 private:
  static Expected<Tensor> nothing(const onnx::ValueInfoProto& declared) {
    const auto& type = declared.type().tensor_type();
    Dims dims{0};
    for (const auto& dim : type.shape().dim()) dims.push_back(dim.has_dim_value() ? dim.dim_value() : 0);
    if (element_count(dims) != 0) dims = {0};
    return Tensor(static_cast<DataType>(type.elem_type()), std::move(dims));
  }

  std::vector<Tensor> items_;
  size_t bytes_ = 0;
};

Outputs run_loop(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  const KernelContext context = kernel_context(*step.node, step.op, inputs, run);
  const Plan* plan = nullptr;
  const auto* body = find_body(step, "body", &plan);
  const size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
  if (body == nullptr || plan->inputs.size() != carried + 2 || plan->outputs.size() < carried + 1) {
    return context.invalid("the body does not fit the node");
  }
  int64_t most = std::numeric_limits<int64_t>::max();
  if (context.has(0)) {
    ATTN_OPT_TRY(const auto trip_count, context.integers(inputs[0]));
    if (trip_count.size() != 1) return context.invalid("the trip count is not a scalar");
    most = trip_count[0];
  }
  bool goes_on = true;
  if (context.has(1)) {
    ATTN_OPT_TRY(goes_on, truth(context, inputs[1]));
  }
  std::vector<Tensor> state(inputs.begin() + static_cast<int64_t>(std::min<size_t>(2, inputs.size())),
                            inputs.end());
  std::vector<Stack> stacks(plan->outputs.size() - carried - 1);
  for (int64_t i = 0; i < most && goes_on; ++i) {
    ATTN_OPT_CHECK(within_deadline(run.options));
    std::vector<Tensor> arguments{Tensor::scalar<int64_t>(i), Tensor::scalar<bool>(goes_on)};
    std::ranges::move(state, std::back_inserter(arguments));
    ATTN_OPT_TRY(auto results, run_plan(*plan, std::move(arguments), outer, run));
    ATTN_OPT_TRY(goes_on, truth(context, results[0]));
    const auto scanned = results.begin() + static_cast<int64_t>(carried) + 1;
    state.assign(std::make_move_iterator(results.begin() + 1), std::make_move_iterator(scanned));
    for (size_t k = 0; k < stacks.size(); ++k) {
      ATTN_OPT_CHECK(stacks[k].push(context, std::move(scanned[static_cast<int64_t>(k)])));
    }
  }
  for (size_t k = 0; k < stacks.size(); ++k) {
    ATTN_OPT_TRY(Tensor joined,
                 stacks[k].join(context, body->output(static_cast<int>(carried + 1 + k)), 0, false));
    state.push_back(std::move(joined));
  }
  return state;
}

/// Axes and directions of Scan's scanned inputs or outputs.
struct ScanSide {
  std::vector<int64_t> axes;
  std::vector<int64_t> reversed;
};

Expected<ScanSide> scan_side(const KernelContext& context, const char* axes, const char* directions,
                             size_t count) {
  ScanSide side{context.attribute_ints(axes), context.attribute_ints(directions)};
  if (side.axes.empty()) side.axes.assign(count, 0);
  if (side.reversed.empty()) side.reversed.assign(count, 0);
  if (side.axes.size() != count || side.reversed.size() != count) {
    return context.invalid("axes or directions do not fit");
  }
  return side;
}

/// Element AT of TENSOR along AXIS, without that axis.
Expected<Tensor> element_along(const KernelContext& context, const Tensor& tensor, int64_t axis, int64_t at) {
  Dims starts(tensor.dims().size(), 0);
  Dims dims = tensor.dims();
  starts[static_cast<size_t>(axis)] = at;
  dims[static_cast<size_t>(axis)] = 1;
  ATTN_OPT_TRY(Tensor slice, sliced(context, tensor, starts, Dims(dims.size(), 1), dims));
  dims.erase(dims.begin() + axis);
  return slice.reshaped(std::move(dims));
}

/// Makes the axes of SIDE non-negative; returns the extent that all scanned inputs share.
Expected<int64_t> scan_extent(const KernelContext& context, std::span<const Tensor> scanned, ScanSide& side) {
  int64_t extent = -1;
  for (size_t k = 0; k < scanned.size(); ++k) {
    ATTN_OPT_TRY(side.axes[k], context.axis(side.axes[k], scanned[k].rank()));
    const int64_t own = scanned[k].dims()[static_cast<size_t>(side.axes[k])];
    if (extent >= 0 && own != extent) return context.invalid("scan inputs differ in length");
    extent = own;
  }
  return extent;
}

Outputs run_scan(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  const KernelContext context = kernel_context(*step.node, step.op, inputs, run);
  if (context.version < 9) return context.unsupported("a batch axis");
  const Plan* plan = nullptr;
  const auto* body = find_body(step, "body", &plan);
  const int64_t count = context.attribute_int("num_scan_inputs", 0);
  if (body == nullptr || count < 1 || count > static_cast<int64_t>(inputs.size()) ||
      plan->inputs.size() != inputs.size() ||
      plan->outputs.size() + static_cast<size_t>(count) < inputs.size()) {
    return context.invalid("the body does not fit the node");
  }
  const size_t carried = inputs.size() - static_cast<size_t>(count);
  const auto scanned = inputs.subspan(carried);
  std::vector<Stack> stacks(plan->outputs.size() - carried);
  ATTN_OPT_TRY(ScanSide in, scan_side(context, "scan_input_axes", "scan_input_directions", scanned.size()));
  ATTN_OPT_TRY(const ScanSide out,
               scan_side(context, "scan_output_axes", "scan_output_directions", stacks.size()));
  ATTN_OPT_TRY(const int64_t extent, scan_extent(context, scanned, in));
  std::vector<Tensor> state(inputs.begin(), inputs.begin() + static_cast<int64_t>(carried));
  for (int64_t i = 0; i < extent; ++i) {
    ATTN_OPT_CHECK(within_deadline(run.options));
    std::vector<Tensor> arguments = std::move(state);
    for (size_t k = 0; k < scanned.size(); ++k) {
      const int64_t at = in.reversed[k] != 0 ? extent - 1 - i : i;
      ATTN_OPT_TRY(Tensor element, element_along(context, scanned[k], in.axes[k], at));
      arguments.push_back(std::move(element));
    }
    ATTN_OPT_TRY(auto results, run_plan(*plan, std::move(arguments), outer, run));
    const auto produced = results.begin() + static_cast<int64_t>(carried);
    for (size_t k = 0; k < stacks.size(); ++k) {
      ATTN_OPT_CHECK(stacks[k].push(context, std::move(produced[static_cast<int64_t>(k)])));
    }
    state.assign(std::make_move_iterator(results.begin()), std::make_move_iterator(produced));
  }
  for (size_t k = 0; k < stacks.size(); ++k) {
    const auto& declared = body->output(static_cast<int>(carried + k));
    ATTN_OPT_TRY(Tensor joined, stacks[k].join(context, declared, out.axes[k], out.reversed[k] != 0));
    state.push_back(std::move(joined));
  }
  return state;
}

}  // namespace

Outputs run_control_flow(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer,
                         Run& run) {
  if (step.node->op_type() == "If") return run_if(step, inputs, outer, run);
  if (step.node->op_type() == "Loop") return run_loop(step, inputs, outer, run);
  return run_scan(step, inputs, outer, run);
}

}  // namespace attn_opt
