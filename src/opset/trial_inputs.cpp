#include "src/opset/trial_inputs.h"

#include <array>
#include <sstream>

#include "src/trial/fill.h"
#include "src/trial/random_numbers.h"

namespace attn_opt {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 20;
constexpr int64_t kLargeSize = 16;
constexpr int64_t kLargeInput = int64_t{1} << 14;

constexpr std::array<std::array<int64_t, 5>, TrialInputs::kDraws> kSizes{
    {{2, 3, 5, 4, 6}, {3, 4, 2, 7, 5}, {1, 2, 1, 3, 1}}};

int64_t size_number(const TrialChoice& choice, size_t i) {
  const auto& sizes = kSizes[static_cast<size_t>(choice.draw)];
  return sizes[i % sizes.size()];
}

/// Equal sizes stay equal and different ones mostly different; what divides evenly may no longer do so.
int64_t shrunk(int64_t size) { return size <= kLargeSize ? size : 5 + size % 11; }

Expected<Tensor> draw_tensor(DataType type, const Dims& dims, RandomNumbers& random) {
  if (type == onnx::TensorProto::BOOL) return filled(type, dims, {Fill::Kind::kBernoulli, {0.5}}, random);
  if (is_floating(type)) return filled(type, dims, {Fill::Kind::kUniform, {-4, 4}}, random);
  return filled(type, dims, {Fill::Kind::kUniform, {0, 3}}, random);
}

}  // namespace

TrialInputs::TrialInputs(const onnx::NodeProto& node, const RaiseSite& site) {
  for (int i = 0; i < node.input_size(); ++i) {
    Input& input = inputs_.emplace_back();
    input.given = !node.input(i).empty();
    if (!input.given) continue;
    const auto number = static_cast<size_t>(i);
    if (const DataType type = site.type(number); type != onnx::TensorProto::UNDEFINED) input.type = type;
    input.shape = site.shape(number);
    input.constant = site.constant(number);
    if (input.constant != nullptr) continue;
    if (input.shape == nullptr) {
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

Expected<Dims> TrialInputs::dims_of(const Input& input, const TrialChoice& choice) const {
  Dims dims;
  if (input.shape == nullptr) {
    for (int i = 0; i < choice.unknown_rank; ++i) dims.push_back(size_number(choice, static_cast<size_t>(i)));
    return dims;
  }
  for (const Dim& size : *input.shape) {
    const auto value = size.evaluate([&](const Atom& atom) -> std::optional<int64_t> {
      const auto found = symbols_.find(atom.name);
      return found == symbols_.end() ? std::nullopt : std::optional(size_number(choice, found->second));
    });
    if (!value || *value < 0)
      return fail(ErrorCode::kUnsupported, "", "no small sizes were found for its inputs");
    dims.push_back(*value);
  }
  const int64_t count = element_count(dims);
  if (choice.shrink && (count < 0 || count > kLargeInput)) {
    for (int64_t& size : dims) size = shrunk(size);
  }
  return dims;
}

Expected<std::vector<Tensor>> TrialInputs::draw(const TrialChoice& choice) const {
  RandomNumbers random(static_cast<uint64_t>(choice.draw));
  std::vector<Tensor> tensors;
  for (const Input& input : inputs_) {
    Tensor& tensor = tensors.emplace_back();
    if (!input.given) continue;
    if (input.constant != nullptr) {
      tensor = *input.constant;
      continue;
    }
    ATTN_OPT_TRY(const Dims dims, dims_of(input, choice));
    const int64_t count = element_count(dims);
    if (count < 0 || count > kMaxElements) return fail(ErrorCode::kLimit, "", "its inputs are too large");
    ATTN_OPT_TRY(tensor, draw_tensor(input.type, dims, random));
  }
  return tensors;
}

std::string TrialInputs::text() const {
  std::unordered_map<std::string, size_t> numbers;
  std::ostringstream text;
  for (const Input& input : inputs_) {
    text << '\n' << (input.given ? type_name(input.type) : "none");
    if (input.constant != nullptr) {
      text << " =" << to_proto(*input.constant).SerializeAsString();
    } else if (input.shape == nullptr) {
      text << " ?";
    } else {
      for (const Dim& size : *input.shape) {
        if (size.is_constant())
          text << ' ' << size.value();
        else
          text << " #" << numbers.try_emplace(size.str(), numbers.size()).first->second;
      }
    }
  }
  return text.str();
}

}  // namespace attn_opt
