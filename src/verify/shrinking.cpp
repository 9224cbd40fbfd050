#include "src/verify/shrinking.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "attn_opt/internal/model_walk.h"
#include "src/exec/layout/strided.h"
#include "src/match/sizes/rebuilt.h"

namespace attn_opt {
namespace {

constexpr int64_t kLargeExtent = 64;
constexpr int64_t kMaxScannedElements = 4096;
constexpr int64_t kLongestSizeList = 16;
constexpr int64_t kSmallestNumber = 19, kOtherSmallestNumber = 12;
/// Of extents whose product another one is: rows and columns of an image.
constexpr int64_t kSmallestFactor = 5, kOtherSmallestFactor = 4;
/// Blocks of a sequence that one extent may be.
constexpr int64_t kMostBlocks = 64;

using NumberOf = std::function<int64_t(int64_t)>;

/// Integers that may tell sizes: at most one axis, and no more of them than a tensor has axes.
bool is_size_list(const Tensor& tensor) {
  const bool is_integer = tensor.type() == onnx::TensorProto::INT64 || tensor.type() == onnx::TensorProto::INT32;
  return is_integer && tensor.rank() <= 1 && tensor.size() <= kLongestSizeList;
}

/// SIZES with NUMBER of each, in a tensor of their own: the elements of SIZES may lie in the model.
Tensor with_sizes(const Tensor& sizes, const NumberOf& number) {
  const auto numbers = sizes.cast(onnx::TensorProto::INT64);
  if (!numbers) return sizes;
  Tensor renumbered(onnx::TensorProto::INT64, sizes.dims());
  std::ranges::transform(numbers->data<int64_t>(), renumbered.mutable_data<int64_t>().begin(), number);
  return renumbered.cast(sizes.type()).value_or(sizes);
}

/// TENSOR up to NUMBER of each of its extents, which is none that is larger.
Tensor corner(const Tensor& tensor, const NumberOf& number) {
  Dims dims;
  for (const int64_t extent : tensor.dims()) dims.push_back(std::min(extent, number(extent)));
  const size_t width = element_size(tensor.type());
  if (dims == tensor.dims() || width == 0) return tensor;
  Tensor cut(tensor.type(), dims);
  const std::byte* const from = tensor.bytes().data();
  std::byte* to = cut.mutable_bytes().data();
  StridedLoop<1>(dims, {strides_of(tensor.dims())}).elements([&](const std::array<int64_t, 1>& offset) {
    std::memcpy(to, from + static_cast<size_t>(offset[0]) * width, width);
    to += width;
  });
  return cut;
}

/// Extents that must stay as they are since a constant or an attribute may mean them.
class FixedExtents {
 public:
  /// What lists of sizes hold and extents of constants are not fixed if constants are RENUMBERED.
  FixedExtents(const CutSite& site, const Sdpa& sdpa, bool renumbered) : renumbered_(renumbered) {
    for (const auto& input : site.inputs) enter_input(input);
    for (const Cone* cone : {&site.before, &site.after})
      for (const Node* node : cone->nodes)
        for (const auto& attribute : node->proto->attribute()) enter_attribute(attribute, node->is("Constant"));
    for (const Operand* operand : {&sdpa.q, &sdpa.k, &sdpa.v})
      for (const auto& view : operand->views) enter_axes(view.axes);
    for (const auto& view : sdpa.outputs) enter_axes(view.axes);
    for (const ScoreTerm& term : sdpa.terms)
      for (const Dim& dim : term.frame) enter_factors(dim);
  }
  bool has(int64_t extent) const { return extents_.contains(extent) || multiples_.contains(extent); }
  /// The least large extent that sizes are multiples of and that nothing else fixes; nullopt if there is none.
  std::optional<int64_t> block() const {
    const auto is_free = [this](int64_t extent) { return extent > kLargeExtent && !extents_.contains(extent); };
    const auto least = std::ranges::find_if(multiples_, is_free);
    return least == multiples_.end() ? std::nullopt : std::optional(*least);
  }

 private:
  void enter(const Dim& dim) {
    if (dim.is_constant()) extents_.insert(dim.value());
  }
  /// A product of an extent and a symbol keeps it.
  void enter_factors(const Dim& dim) {
    if (dim.is_constant()) return;
    for (const auto& term : dim.terms()) multiples_.insert(term.coefficient);
  }
  void enter_input(const SiteInput& input) {
    if (input.source == SiteInput::Source::kFixed) enter_contents(input.fixed);
    for (const Dim& dim : input.integers.values) {
      if (!renumbered_) enter(dim);
      enter_factors(dim);
    }
    for (const Dim& dim : input.shape) enter_factors(dim);
  }
  void enter_contents(const Tensor& tensor) {
    if (!renumbered_ || !is_size_list(tensor)) enter_tensor(tensor);
  }
  void enter_tensor(const Tensor& tensor) {
    if (!renumbered_) extents_.insert(tensor.dims().begin(), tensor.dims().end());
    const auto as_int64 = tensor.type() == onnx::TensorProto::INT32 ? tensor.cast(onnx::TensorProto::INT64) : tensor;
    if (!as_int64 || as_int64->type() != onnx::TensorProto::INT64 || as_int64->size() > kMaxScannedElements) return;
    const auto values = as_int64->data<int64_t>();
    extents_.insert(values.begin(), values.end());
  }
  void enter_attribute(const onnx::AttributeProto& attribute, bool is_contents) {
    extents_.insert(attribute.i());
    extents_.insert(attribute.ints().begin(), attribute.ints().end());
    if (!attribute.has_t()) return;
    if (auto tensor = to_tensor(attribute.t(), inline_tensors()))
      is_contents ? enter_contents(*tensor) : enter_tensor(*tensor);
    else
      extents_.insert(attribute.t().dims().begin(), attribute.t().dims().end());
  }
  /// Extents of the axes that hold heads or features.
  void enter_axes(const AxisMap& map) {
    for (const Factor& factor : map.factors()) enter_factors(factor.size);
    for (size_t axis = 0; axis < map.rank(); ++axis) {
      Dim extent = 1;
      bool is_width = false;
      for (int index : map.axis(axis)) {
        const Factor& factor = map.factors()[static_cast<size_t>(index)];
        extent = extent * factor.size;
        is_width |= factor.role == Role::kHead || factor.role == Role::kFeature;
      }
      if (is_width) enter(extent);
    }
  }
  bool renumbered_;
  std::set<int64_t> extents_;
  std::set<int64_t> multiples_;  ///< what products of sizes have for a factor
};

/// The constant extents, but for FIXED ones, of what SITE is given and of what the nodes that it replaces make.
std::set<int64_t> free_extents(const CutSite& site, const FixedExtents& fixed, Facts& facts) {
  std::set<int64_t> extents;
  const auto enter = [&](const Shape& shape) {
    for (const Dim& dim : shape)
      if (dim.is_constant() && !fixed.has(dim.value())) extents.insert(dim.value());
  };
  for (const SiteInput& input : site.inputs) enter(input.shape);
  for (const Node* node : site.before.nodes)
    for (const Value* value : node->outputs)
      if (const MaybeShape shape = value ? facts.shape(*value) : nullptr) enter(*shape);
  return extents;
}

/// For extents of SHRINKING that are a product of two of EXTENTS, the factors that are most alike: a list of sizes may divide
/// one into the others, so that the number of one follows from theirs.
std::map<int64_t, int64_t> lesser_factors(const Shrinking& shrinking, const std::set<int64_t>& extents) {
  std::map<int64_t, int64_t> lesser;
  for (const auto& [extent, number] : shrinking.numbers)
    for (const int64_t factor : extents)
      if (factor > 1 && factor <= extent / factor && extent % factor == 0 && extents.contains(extent / factor))
        lesser[extent] = factor;
  return lesser;
}

/// True if the extents that get NUMBERS are several, and all are few blocks of the least.
bool are_blocks(const std::map<int64_t, int64_t>& numbers) {
  if (numbers.size() < 2) return false;
  const int64_t least = numbers.begin()->first;
  return std::ranges::all_of(
      numbers, [least](const auto& number) { return number.first % least == 0 && number.first / least < kMostBlocks; });
}

void number(Shrinking& shrinking, int64_t first, int64_t first_factor) {
  std::set<int64_t> factors;
  for (const auto& [extent, factor] : shrinking.factors) factors.insert({factor, extent / factor});
  for (auto& [extent, number] : shrinking.numbers) {
    const auto product = shrinking.factors.find(extent);
    if (product != shrinking.factors.end()) {
      number = shrinking.number_of(product->second) * shrinking.number_of(extent / product->second);
      continue;
    }
    int64_t& next = factors.contains(extent) ? first_factor : first;
    number = next;
    next += 2;
  }
}

}  // namespace

Tensor SizeAssignment::renumbered(const Tensor& constant) const {
  if (!renumbers()) return constant;
  const auto number = [this](int64_t extent) { return shrinking_.number_of(extent); };
  return is_size_list(constant) ? with_sizes(constant, number) : corner(constant, number);
}

int64_t Shrinking::number_of(int64_t extent) const {
  if (const auto found = numbers.find(extent); found != numbers.end()) return found->second;
  const int64_t blocks = block && extent > 0 && extent / block < kMostBlocks ? (extent + block / 2) / block : 0;
  const int64_t number = blocks * block_number + extent - blocks * block;
  return blocks && number > 0 ? number : extent;
}

Dim Shrinking::in_blocks(const Dim& size) const {
  if (!block) return size;
  const auto itself = [](const Atom&) { return std::optional<Dim>(); };
  return rebuilt(size, itself, [this](int64_t number) { return number < 0 ? -number_of(-number) : number_of(number); });
}

Shrinking shrinkable(const CutSite& site, const Sdpa& sdpa, bool renumbers, Facts& facts) {
  const FixedExtents fixed(site, sdpa, renumbers);
  Shrinking shrinking{.numbers = {}, .factors = {}, .renumbers = renumbers};
  for (const auto& input : site.inputs)
    if (input.source == SiteInput::Source::kDrawn)
      for (const Dim& dim : input.shape)
        if (dim.is_constant() && dim.value() > kLargeExtent && !fixed.has(dim.value())) shrinking.numbers[dim.value()] = 0;
  if (renumbers) {
    std::optional<int64_t> block = fixed.block();
    if (!block && are_blocks(shrinking.numbers)) block = shrinking.numbers.begin()->first;
    if (block) return {.numbers = {}, .factors = {}, .renumbers = true, .block = *block, .block_number = kSmallestNumber};
    shrinking.factors = lesser_factors(shrinking, free_extents(site, fixed, facts));
  }
  for (const auto& [extent, factor] : shrinking.factors)
    for (const int64_t part : {factor, extent / factor})
      if (part > kOtherSmallestNumber) shrinking.numbers[part] = 0;
  number(shrinking, kSmallestNumber, kSmallestFactor);
  return shrinking;
}

Shrinking with_other_numbers(Shrinking shrinking) {
  if (shrinking.block) shrinking.block_number = kOtherSmallestNumber;
  number(shrinking, kOtherSmallestNumber, kOtherSmallestFactor);
  return shrinking;
}

void renumber_constants(const SizeAssignment& sizes, onnx::ModelProto& model) {
  for_each_node(model, [&sizes](onnx::NodeProto& node) {
    if (node.op_type() != "Constant" || !node.domain().empty()) return;
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_t())
        if (const auto contents = to_tensor(attribute.t(), inline_tensors()))
          *attribute.mutable_t() = to_proto(sizes.renumbered(*contents), attribute.t().name());
  });
}

}  // namespace attn_opt
