// Sequences of tensors.
#include "src/exec/families.h"
#include "src/exec/layout/copy.h"

namespace attn_opt {
namespace {

Expected<std::vector<Tensor>> elements_of(const KernelContext& context) {
  if (!context.input(0).is_sequence()) return context.invalid("input is not a sequence");
  return context.input(0).elements();
}

/// The position that input I gives, in [0, COUNT), or OTHERWISE.
Expected<int64_t> position(const KernelContext& context, size_t i, int64_t count, int64_t otherwise) {
  if (!context.has(i)) return otherwise;
  ATTN_OPT_TRY(const auto values, context.integers(context.input(i)));
  if (values.size() != 1) return context.invalid("the position is not a scalar");
  return context.axis(values[0], count);
}

Outputs sequence_construct(const KernelContext& context) {
  return std::vector<Tensor>{Tensor::sequence({context.inputs.begin(), context.inputs.end()})};
}

Outputs sequence_empty(const KernelContext&) { return std::vector<Tensor>{Tensor::sequence({})}; }

Outputs sequence_at(const KernelContext& context) {
  ATTN_OPT_TRY(const auto elements, elements_of(context));
  ATTN_OPT_TRY(const int64_t at, position(context, 1, static_cast<int64_t>(elements.size()), 0));
  return std::vector<Tensor>{elements[static_cast<size_t>(at)]};
}

Outputs sequence_insert(const KernelContext& context) {
  ATTN_OPT_TRY(auto elements, elements_of(context));
  const auto count = static_cast<int64_t>(elements.size());
  ATTN_OPT_TRY(const int64_t at, position(context, 2, count + 1, count));
  elements.insert(elements.begin() + at, context.input(1));
  return std::vector<Tensor>{Tensor::sequence(std::move(elements))};
}

Outputs sequence_erase(const KernelContext& context) {
  ATTN_OPT_TRY(auto elements, elements_of(context));
  const auto count = static_cast<int64_t>(elements.size());
  if (count == 0) return context.invalid("the sequence is empty");
  ATTN_OPT_TRY(const int64_t at, position(context, 1, count, count - 1));
  elements.erase(elements.begin() + at);
  return std::vector<Tensor>{Tensor::sequence(std::move(elements))};
}

Outputs sequence_length(const KernelContext& context) {
  ATTN_OPT_TRY(const auto elements, elements_of(context));
  return std::vector<Tensor>{Tensor::scalar<int64_t>(static_cast<int64_t>(elements.size()))};
}

/// ELEMENT with or without an axis of extent 1 at AXIS.
Tensor with_axis(const Tensor& element, int64_t axis, bool added) {
  Dims dims = element.dims();
  if (added)
    dims.insert(dims.begin() + axis, 1);
  else
    dims.erase(dims.begin() + axis);
  return element.reshaped(std::move(dims));
}

Outputs concat_from_sequence(const KernelContext& context) {
  ATTN_OPT_TRY(auto elements, elements_of(context));
  if (elements.empty()) return context.invalid("the sequence is empty");
  int64_t axis = context.attribute_int("axis", 0);
  if (context.attribute_int("new_axis", 0) != 0) {
    ATTN_OPT_TRY(axis, context.axis(axis, elements[0].rank() + 1));
    for (Tensor& element : elements) {
      if (element.rank() < axis) return context.invalid("the elements differ in rank");
      element = with_axis(element, axis, true);
    }
  }
  return single(concatenated(context, elements, axis));
}

/// How long each element of SplitToSequence is along an axis of EXTENT.
Expected<std::vector<int64_t>> element_lengths(const KernelContext& context, int64_t extent) {
  ATTN_OPT_CHECK(context.within_budget(extent, sizeof(Tensor)));
  if (!context.has(1)) return std::vector<int64_t>(static_cast<size_t>(extent), 1);
  ATTN_OPT_TRY(auto lengths, context.integers(context.input(1)));
  if (context.input(1).rank() == 0) {
    const int64_t chunk = lengths[0];
    if (chunk < 1) return context.invalid("split is not positive");
    lengths.clear();
    for (int64_t at = 0; at < extent; at += std::min(chunk, extent - at)) {
      lengths.push_back(std::min(chunk, extent - at));
    }
  }
  int64_t left = extent;
  for (const int64_t length : lengths) {
    if (length < 0 || length > left) return context.invalid("split does not fit the axis");
    left -= length;
  }
  if (left != 0) return context.invalid("split does not fit the axis");
  return lengths;
}

Outputs split_to_sequence(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), x.rank()));
  ATTN_OPT_TRY(const auto lengths, element_lengths(context, x.dims()[static_cast<size_t>(axis)]));
  ATTN_OPT_TRY(const bool keeps_pieces, context.attribute_flag("keepdims", true));
  const bool keeps_axis = context.has(1) || keeps_pieces;
  std::vector<Tensor> elements;
  Dims starts(x.dims().size(), 0);
  const Dims steps(x.dims().size(), 1);
  for (const int64_t length : lengths) {
    Dims dims = x.dims();
    dims[static_cast<size_t>(axis)] = length;
    ATTN_OPT_TRY(Tensor element, sliced(context, x, starts, steps, std::move(dims)));
    elements.push_back(keeps_axis ? std::move(element) : with_axis(element, axis, false));
    starts[static_cast<size_t>(axis)] += length;
  }
  return std::vector<Tensor>{Tensor::sequence(std::move(elements))};
}

}  // namespace

void register_sequences(KernelRegistry& registry) {
  registry.add("SequenceConstruct", 11, 11, sequence_construct);
  registry.add("SequenceEmpty", 11, 11, sequence_empty);
  registry.add("SequenceAt", 11, 11, sequence_at);
  registry.add("SequenceInsert", 11, 11, sequence_insert);
  registry.add("SequenceErase", 11, 11, sequence_erase);
  registry.add("SequenceLength", 11, 11, sequence_length);
  registry.add("ConcatFromSequence", 11, 11, concat_from_sequence);
  registry.add("SplitToSequence", 11, 24, split_to_sequence);
}

}  // namespace attn_opt
