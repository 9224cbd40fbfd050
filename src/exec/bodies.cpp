#include "src/exec/bodies.h"

#include "src/exec/layout/copy.h"
#include "src/exec/layout/random_numbers.h"

namespace attn_opt {
namespace {

/// COUNT items of the type and shape that DECLARED tells; an axis that it does not tell is empty.
Expected<Tensor> zeros(const KernelContext& context, const onnx::ValueInfoProto& declared, int64_t count) {
  const auto& type = declared.type().tensor_type();
  Dims dims{count};
  for (const auto& dim : type.shape().dim()) dims.push_back(dim.has_dim_value() ? dim.dim_value() : 0);
  if (element_count(dims) < 0) dims = {0};
  return context.allocate(static_cast<DataType>(type.elem_type()), std::move(dims));
}

}  // namespace

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

Outputs run_iteration(const Plan& plan, int64_t i, std::vector<Tensor> arguments, std::span<const Tensor> outer, Run& run) {
  ATTN_OPT_CHECK(within_deadline(run.options));
  const uint64_t place = std::exchange(run.place, hash_number(static_cast<uint64_t>(i), run.place));
  auto outputs = run_plan(plan, std::move(arguments), outer, run);
  run.place = place;
  return outputs;
}

Status Stack::push(const KernelContext& context, Tensor item) {
  if (!first_.has_value()) first_ = item;
  if (item.dims() != first_.dims() || item.type() != first_.type()) {
    return context.invalid("a scan output changes its shape or type between iterations");
  }
  bytes_ += item.bytes().size();
  items_.push_back(std::move(item));
  return context.within_budget(static_cast<int64_t>(bytes_), 1);
}

Status Stack::push_zeros(const KernelContext& context, int64_t count) {
  ATTN_OPT_CHECK(context.within_budget(static_cast<int64_t>(items_.size()) + count, sizeof(Tensor)));
  items_.resize(items_.size() + static_cast<size_t>(count));
  return {};
}

Expected<Tensor> Stack::join(const KernelContext& context, const onnx::ValueInfoProto& declared, int64_t axis, bool reversed) {
  const auto count = static_cast<int64_t>(items_.size());
  if (!first_.has_value()) return zeros(context, declared, count);
  Dims dims = first_.dims();
  dims.insert(dims.begin(), count);
  ATTN_OPT_TRY(axis, context.axis(axis, static_cast<int64_t>(dims.size())));
  if (reversed) std::ranges::reverse(items_);
  ATTN_OPT_TRY(Tensor joined, context.allocate(first_.type(), dims));
  ATTN_OPT_TRY(joined, dispatch_cells(context, joined.type(), [&]<class T>() -> Expected<Tensor> {
                 T* to = mutable_cells<T>(joined);
                 for (const Tensor& item : items_) {
                   if (item.has_value()) std::copy_n(cells<T>(item), item.size(), to);
                   to += first_.size();
                 }
                 return std::move(joined);
               }));
  std::vector<int64_t> perm;
  for (int64_t i = 1; i < joined.rank(); ++i) perm.push_back(i);
  perm.insert(perm.begin() + axis, 0);
  return axis == 0 ? joined : transposed(context, joined, perm);
}

}  // namespace attn_opt
