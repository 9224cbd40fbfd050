#include "src/opset/trial_inputs.h"

#include <array>

#include "src/exec/layout/random_numbers.h"
#include "src/trial/fill.h"

namespace attn_opt {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 20;
constexpr int64_t kLargeSize = 16;
constexpr int64_t kLargeInput = int64_t{1} << 14;

constexpr std::array<std::array<int64_t, 5>, TrialInputs::kDraws> kSizes{{{2, 3, 5, 4, 6}, {3, 4, 2, 7, 5}, {1, 2, 1, 3, 1}}};

/// Symbols grow up to this for sizes that are positive only then: samples of audio before strided convolutions.
constexpr int64_t kLargestSymbol = int64_t{1} << 16;

int64_t size_number(const TrialChoice& choice, size_t i) {
  const auto& sizes = kSizes[static_cast<size_t>(choice.draw)];
  return sizes[i % sizes.size()];
}

std::optional<int64_t> evaluated(const Dim& size, const std::unordered_map<std::string, int64_t>& numbers) {
  return size.evaluate([&](const Atom& atom) -> std::optional<int64_t> {
    const auto found = numbers.find(atom.name);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  });
}

/// Equal sizes stay equal and different ones mostly different; what divides evenly may no longer do so.
int64_t shrunk(int64_t size) { return size <= kLargeSize ? size : 5 + size % 11; }

/// NUMBERS: what the operator does with its input, not data.
Expected<Tensor> draw_tensor(DataType type, const Dims& dims, bool numbers, RandomNumbers& random) {
  if (type == onnx::TensorProto::BOOL) return filled(type, dims, {Fill::Kind::kBernoulli, {0.5}}, random);
  if (numbers && is_floating(type)) return filled(type, dims, {Fill::Kind::kUniform, {0.3, 2.5}}, random);
  if (numbers) return filled(type, dims, {Fill::Kind::kUniform, {1, 6}}, random);
  if (is_floating(type)) return filled(type, dims, {Fill::Kind::kUniform, {-4, 4}}, random);
  return filled(type, dims, {Fill::Kind::kUniform, {0, 3}}, random);
}

std::vector<std::pair<int64_t, int64_t>> fitting_sizes_of(const Node& node) {
  std::vector<std::pair<int64_t, int64_t>> sizes;
  if (node.is("Squeeze")) {
    if (const auto* axes = node.ints_attribute("axes")) {
      for (const int64_t axis : *axes) sizes.emplace_back(axis, 1);
    }
  } else if (node.is("Split")) {
    const auto* parts = node.ints_attribute("split");
    int64_t size = parts != nullptr ? 0 : 2 * std::ssize(node.outputs);
    for (int i = 0; parts != nullptr && i < parts->size(); ++i) {
      if (__builtin_add_overflow(size, parts->Get(i), &size)) return sizes;
    }
    sizes.emplace_back(node.int_attribute("axis", 0), size);
  } else if (node.is("TopK")) {
    sizes.emplace_back(node.int_attribute("axis", -1), node.int_attribute("k", 1));
  }
  return sizes;
}

}  // namespace

TrialInputs::TrialInputs(const onnx::NodeProto& node, const RaiseSite& site)
    : fitting_sizes_(fitting_sizes_of(site.node())), resizes_(node.op_type() == "Resize" || node.op_type() == "Upsample") {
  for (int i = 0; i < node.input_size(); ++i) {
    Input& input = inputs_.emplace_back();
    input.given = !node.input(i).empty();
    if (!input.given) continue;
    const auto number = static_cast<size_t>(i);
    if (const DataType type = site.type(number); type != onnx::TensorProto::UNDEFINED) input.type = type;
    input.shape = site.shape(number);
    input.constant = site.constant(number);
    if (input.constant != nullptr) continue;
    if (!input.shape) {
      has_unknown_rank_ = true;
      continue;
    }
    for (const Dim& size : *input.shape) {
      for (const AtomRef& atom : size.atoms()) {
        if (atom->kind == Atom::Kind::kSymbol) symbols_.try_emplace(atom->name, symbols_.size());
      }
    }
  }
}

TrialInputs::Numbers TrialInputs::numbers_for(const TrialChoice& choice) const {
  Numbers numbers;
  for (const auto& [symbol, i] : symbols_) numbers[symbol] = size_number(choice, choice.alike ? 0 : i);
  const auto grow_for = [&](const Dim& size) {
    bool grown = false;
    const auto value = evaluated(size, numbers);
    if (value && *value > 0) return false;
    for (const AtomRef& atom : size.atoms()) {
      const auto number = numbers.find(atom->name);
      if (number == numbers.end() || number->second > kLargestSymbol / 2) continue;
      number->second *= 2;
      grown = true;
    }
    return grown;
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (const Input& input : inputs_)
      for (const Dim& size : input.shape && !input.constant ? *input.shape : Shape()) grown |= grow_for(size);
  }
  return numbers;
}

Expected<Dims> TrialInputs::dims_of(const Input& input, const Numbers& numbers, const TrialChoice& choice) const {
  Dims dims;
  if (!input.shape) {
    for (int i = 0; i < choice.unknown_rank; ++i) dims.push_back(size_number(choice, static_cast<size_t>(i)));
  }
  for (const Dim& size : input.shape ? *input.shape : Shape()) {
    const auto value = evaluated(size, numbers);
    if (!value || *value < 0) return fail(ErrorCode::kUnsupported, "", "no small sizes were found for its inputs");
    dims.push_back(*value);
  }
  const int64_t count = element_count(dims);
  if (choice.shrink && (count < 0 || count > kLargeInput)) {
    for (int64_t& size : dims) size = shrunk(size);
  }
  if (choice.fit && &input == &inputs_.front()) fit(dims);
  return dims;
}

void TrialInputs::fit(Dims& dims) const {
  const auto rank = static_cast<int64_t>(dims.size());
  for (const auto& [axis, size] : fitting_sizes_) {
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank) dims[static_cast<size_t>(at)] = size;
  }
}

Expected<std::vector<Tensor>> TrialInputs::draw(const TrialChoice& choice) const {
  RandomNumbers random(static_cast<uint64_t>(choice.draw));
  std::vector<Tensor> tensors;
  const Numbers numbers = numbers_for(choice);
  for (const Input& input : inputs_) {
    Tensor& tensor = tensors.emplace_back();
    if (!input.given) continue;
    if (input.constant != nullptr) {
      tensor = *input.constant;
      continue;
    }
    ATTN_OPT_TRY(Dims dims, dims_of(input, numbers, choice));
    const size_t at = tensors.size() - 1;
    const bool steers = resizes_ && at > 0;
    if (steers) dims = {tensors[0].rank() * (at == 1 && inputs_.size() > 2 ? 2 : 1)};
    const int64_t count = element_count(dims);
    if (count < 0 || count > kMaxElements) return fail(ErrorCode::kLimit, "", "its inputs are too large");
    ATTN_OPT_TRY(tensor, draw_tensor(input.type, dims, steers, random));
  }
  return tensors;
}

}  // namespace attn_opt
