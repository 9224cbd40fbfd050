// Scan: since opset 9 along an axis of each input, in opset 8 along axis 1 for each element of the batch axis
// 0.
#include "src/exec/bodies.h"
#include "src/exec/layout/copy.h"

namespace attn_opt {
namespace {

/// Axes and directions of Scan's scanned inputs or outputs.
struct ScanSide {
  std::vector<int64_t> axes;
  std::vector<int64_t> reversed;
};

Expected<ScanSide> scan_side(const KernelContext& context, const char* axes, const char* directions, size_t count) {
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

struct ScanNode {
  const Step& step;
  KernelContext context;
  std::span<const Tensor> outer;
  Run& run;
  const Plan* plan = nullptr;
  const onnx::GraphProto* body = nullptr;
  std::span<const Tensor> states{}, scanned{};  ///< the node's inputs
  std::vector<Stack> stacks{};                  ///< the body's outputs behind its states
};

/// INPUTS: initial states and scanned inputs.
Expected<ScanNode> read_scan(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  ScanNode scan{step, kernel_context(*step.node, step.op, inputs, run), outer, run};
  scan.body = find_body(step, "body", &scan.plan);
  const int64_t count = scan.context.attribute_int("num_scan_inputs", 0);
  if (scan.body == nullptr || count < 1 || count > static_cast<int64_t>(inputs.size()) ||
      scan.plan->inputs.size() != inputs.size() || scan.plan->outputs.size() + static_cast<size_t>(count) < inputs.size()) {
    return scan.context.invalid("the body does not fit the node");
  }
  const size_t carried = inputs.size() - static_cast<size_t>(count);
  scan.states = inputs.first(carried);
  scan.scanned = inputs.subspan(carried);
  scan.stacks.resize(scan.plan->outputs.size() - carried);
  return scan;
}

/// Runs the body for the first STEPS elements of SCANNED along the axes of SIDE, from iteration FIRST on;
/// moves STATES on and adds to the stacks.
Status run_steps(ScanNode& scan, std::vector<Tensor>& states, std::span<const Tensor> scanned, const ScanSide& side,
                 int64_t steps, int64_t first) {
  const auto carried = static_cast<int64_t>(states.size());
  for (int64_t i = 0; i < steps; ++i) {
    std::vector<Tensor> arguments = std::move(states);
    for (size_t k = 0; k < scanned.size(); ++k) {
      const int64_t at = side.reversed[k] != 0 ? steps - 1 - i : i;
      ATTN_OPT_TRY(Tensor element, element_along(scan.context, scanned[k], side.axes[k], at));
      arguments.push_back(std::move(element));
    }
    ATTN_OPT_TRY(auto results, run_iteration(*scan.plan, first + i, std::move(arguments), scan.outer, scan.run));
    const auto produced = results.begin() + carried;
    for (size_t k = 0; k < scan.stacks.size(); ++k) {
      ATTN_OPT_CHECK(scan.stacks[k].push(scan.context, std::move(produced[static_cast<int64_t>(k)])));
    }
    states.assign(std::make_move_iterator(results.begin()), std::make_move_iterator(produced));
  }
  return {};
}

const onnx::ValueInfoProto& declared_output(const ScanNode& scan, size_t i) { return scan.body->output(static_cast<int>(i)); }

Outputs scan_along_axes(ScanNode& scan) {
  const KernelContext& context = scan.context;
  ATTN_OPT_TRY(ScanSide in, scan_side(context, "scan_input_axes", "scan_input_directions", scan.scanned.size()));
  ATTN_OPT_TRY(const ScanSide out, scan_side(context, "scan_output_axes", "scan_output_directions", scan.stacks.size()));
  ATTN_OPT_TRY(const int64_t extent, scan_extent(context, scan.scanned, in));
  std::vector<Tensor> results(scan.states.begin(), scan.states.end());
  ATTN_OPT_CHECK(run_steps(scan, results, scan.scanned, in, extent, 0));
  for (size_t k = 0; k < scan.stacks.size(); ++k) {
    const auto& declared = declared_output(scan, scan.states.size() + k);
    ATTN_OPT_TRY(Tensor joined, scan.stacks[k].join(context, declared, out.axes[k], out.reversed[k] != 0));
    results.push_back(std::move(joined));
  }
  return results;
}

/// Of a Scan of opset 8.
struct Batch {
  int64_t size = 0;
  int64_t longest = 0;           ///< extent of the sequence axis
  std::vector<int64_t> lengths;  ///< of each sequence
};

Expected<Batch> read_batch(const ScanNode& scan, const Tensor& lengths) {
  const KernelContext& context = scan.context;
  Batch batch;
  if (scan.scanned[0].rank() >= 2) batch = {scan.scanned[0].dims()[0], scan.scanned[0].dims()[1], {}};
  for (const Tensor& sequence : scan.scanned) {
    if (sequence.rank() < 2 || sequence.dims()[0] != batch.size || sequence.dims()[1] != batch.longest) {
      return context.invalid("scan inputs differ in batch or length");
    }
  }
  for (const Tensor& state : scan.states) {
    if (state.rank() < 1 || state.dims()[0] != batch.size) {
      return context.invalid("a state and the scan inputs differ in batch");
    }
  }
  ATTN_OPT_CHECK(context.within_budget(batch.size, sizeof(int64_t)));
  batch.lengths.assign(static_cast<size_t>(batch.size), batch.longest);
  if (lengths.has_value()) {
    ATTN_OPT_TRY(batch.lengths, context.integers(lengths));
  }
  bool fit = static_cast<int64_t>(batch.lengths.size()) == batch.size;
  for (const int64_t length : batch.lengths) fit = fit && length >= 0 && length <= batch.longest;
  if (!fit) return context.invalid("sequence_lens do not fit the scan inputs");
  return batch;
}

Expected<std::vector<Tensor>> elements_of_batch(const KernelContext& context, std::span<const Tensor> tensors, int64_t at) {
  std::vector<Tensor> elements;
  for (const Tensor& tensor : tensors) {
    ATTN_OPT_TRY(Tensor element, element_along(context, tensor, 0, at));
    elements.push_back(std::move(element));
  }
  return elements;
}

Outputs scan_batch(ScanNode& scan, const Tensor& lengths) {
  const KernelContext& context = scan.context;
  ATTN_OPT_TRY(const Batch batch, read_batch(scan, lengths));
  ATTN_OPT_TRY(const ScanSide side, scan_side(context, "", "directions", scan.scanned.size()));
  std::vector<Stack> states(scan.states.size());
  for (int64_t b = 0; b < batch.size; ++b) {
    const int64_t length = batch.lengths[static_cast<size_t>(b)];
    ATTN_OPT_TRY(auto own, elements_of_batch(context, scan.states, b));
    ATTN_OPT_TRY(const auto sequences, elements_of_batch(context, scan.scanned, b));
    ATTN_OPT_CHECK(run_steps(scan, own, sequences, side, length, b * batch.longest));
    for (size_t k = 0; k < own.size(); ++k) ATTN_OPT_CHECK(states[k].push(context, std::move(own[k])));
    for (Stack& stack : scan.stacks) ATTN_OPT_CHECK(stack.push_zeros(context, batch.longest - length));
  }
  std::vector<Tensor> results;
  for (size_t k = 0; k < states.size(); ++k) {
    ATTN_OPT_TRY(Tensor joined, states[k].join(context, declared_output(scan, k), 0, false));
    results.push_back(std::move(joined));
  }
  for (size_t k = 0; k < scan.stacks.size(); ++k) {
    ATTN_OPT_TRY(const Tensor joined, scan.stacks[k].join(context, declared_output(scan, states.size() + k), 0, false));
    Dims dims = joined.dims();
    if (dims[0] != batch.size * batch.longest) return context.invalid("a scan output's shape is not known");
    dims[0] = batch.longest;
    dims.insert(dims.begin(), batch.size);
    results.push_back(joined.reshaped(std::move(dims)));
  }
  return results;
}

}  // namespace

Outputs run_scan(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  const bool batched = step.op.version < 9;
  ATTN_OPT_TRY(ScanNode scan, read_scan(step, batched ? inputs.subspan(1) : inputs, outer, run));
  return batched ? scan_batch(scan, inputs[0]) : scan_along_axes(scan);
}

}  // namespace attn_opt
