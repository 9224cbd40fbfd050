// Optional values: one that holds a tensor or a sequence is that tensor or sequence.
#include "src/exec/families.h"

namespace attn_opt {
namespace {

bool holds_something(const Tensor& value) { return value.has_value() && !value.is_empty_optional(); }

Outputs optional(const KernelContext& context) {
  return std::vector<Tensor>{context.has(0) ? context.input(0) : Tensor::empty_optional()};
}

Outputs optional_has_element(const KernelContext& context) {
  return std::vector<Tensor>{Tensor::scalar(holds_something(context.input(0)))};
}

Outputs optional_get_element(const KernelContext& context) {
  if (!holds_something(context.input(0))) return context.invalid("the optional is empty");
  return std::vector<Tensor>{context.input(0)};
}

}  // namespace

void register_optionals(KernelRegistry& registry) {
  registry.add("Optional", 15, 28, optional);
  registry.add("OptionalHasElement", 15, 28, optional_has_element);
  registry.add("OptionalGetElement", 15, 28, optional_get_element);
}

}  // namespace attn_opt
