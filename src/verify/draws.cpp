#include "src/verify/draws.h"

#include <algorithm>

#include "attn_opt/operator_traits.h"
#include "src/match/facts/loop_shapes.h"
#include "src/verify/input_draw.h"
#include "src/verify/mask_axes.h"
#include "src/verify/value_draw.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// Sizes of a value whose contents are expressions; an unknown integer that some shape holds has a number.
std::optional<Tensor> evaluated(const SiteInput& input, const SizeAssignment& sizes) {
  Tensor numbers(P::INT64, input.integers.dims);
  auto data = numbers.mutable_data<int64_t>();
  if (data.size() != input.integers.values.size() || data.empty()) return std::nullopt;
  for (size_t i = 0; i < data.size(); ++i) {
    const auto number = sizes.of(input.integers.values[i]);
    if (!number) return std::nullopt;
    data[i] = *number;
  }
  auto tensor = numbers.cast(input.type);
  if (!tensor) return std::nullopt;
  return *std::move(tensor);
}

/// A tensor of TYPE whose element I is ELEMENT(I).
Expected<Tensor> filled(DataType type, const Dims& dims, const std::function<double(int64_t)>& element) {
  Tensor numbers(P::DOUBLE, dims);
  auto data = numbers.mutable_data<double>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = element(static_cast<int64_t>(i));
  return numbers.cast(type);
}

const LegalIntegers* legal_integers(const SiteInput& input, const Sdpa& sdpa) {
  const auto found = std::ranges::find(sdpa.legal_integers, input.value, &LegalIntegers::value);
  return found == sdpa.legal_integers.end() ? nullptr : &*found;
}

/// Integers between the ends of LEGAL; where all is kept the largest.
Expected<Tensor> within(const LegalIntegers& legal, DataType type, const Dims& dims, const DrawRequest& request,
                        RandomNumbers random) {
  const auto least = request.sizes.of(legal.least), most = request.sizes.of(legal.most);
  if (!least || !most || *least > *most) return fail(ErrorCode::kInvalidInput, legal.value->name, "no integers fit the sizes");
  return filled(type, dims, [&](int64_t) {
    const bool is_largest = request.kind == DrawKind::kAllKept;
    return static_cast<double>(is_largest ? *most : *least + random.below(*most - *least + 1));
  });
}

/// True for what says how often a Loop runs: at most, or whether at all.
bool counts_iterations(const Value& value) {
  return std::ranges::any_of(value.uses, [](const Use& use) {
    return use.node && use.node->is("Loop") && static_cast<size_t>(use.input) < kFirstCarried;
  });
}

/// Twice where numbers are drawn at random, since what holds after one iteration need not hold after the next; or up to 3
/// times.
Expected<Tensor> iterations(DataType type, const Dims& dims, DrawKind kind, RandomNumbers random) {
  const int64_t most = type == P::BOOL ? 1 : 3;
  return filled(type, dims, [&](int64_t) {
    return static_cast<double>(kind == DrawKind::kRandom ? std::min<int64_t>(2, most) : random.below(most + 1));
  });
}

/// The numbers that the side before bounds others with, or compares, adds or multiplies them with.
std::vector<double> numbers_of(const CutSite& site) {
  std::vector<double> numbers;
  for (const SiteInput& input : site.inputs) {
    if (input.source == SiteInput::Source::kUniform) numbers.push_back(input.uniform);
    const auto fixed = input.source == SiteInput::Source::kFixed && input.fixed.size() == 1 && is_floating(input.type)
                           ? input.fixed.cast(P::DOUBLE)
                           : Expected<Tensor>(Tensor());
    if (fixed && fixed->size() == 1) numbers.push_back(fixed->data<double>()[0]);
  }
  for (const Node* node : site.before.nodes)
    for (const char* name : {"min", "max"})
      if (const auto* bound = node->is("Clip") ? node->attribute(name) : nullptr) numbers.push_back(bound->f());
  return numbers;
}

bool is_assumed(std::string_view id, const Sdpa& sdpa) {
  return std::ranges::any_of(sdpa.preconditions, [id](const Precondition& one) { return one.id == id; });
}

/// Ones and zeros, of which the first of each row is 1, but where one row is to be empty; where all is kept, ones. In the place
/// of ones other numbers above 0, unless it IS_BINARY.
Expected<Tensor> mask_of_floats(DataType type, const Dims& dims, DrawKind kind, bool is_binary, RandomNumbers random) {
  const int64_t width = dims.empty() ? 1 : dims.back();
  return filled(type, dims, [&](int64_t index) {
    const bool is_first = index % width == 0, may_be_empty = kind == DrawKind::kEmptyRow && index / width == 0;
    const bool is_kept = kind == DrawKind::kAllKept || (is_first && !may_be_empty) || (!may_be_empty && random.below(2));
    return !is_kept ? 0.0 : is_binary ? 1.0 : 1 / static_cast<double>(1 + random.below(8));
  });
}

Expected<Tensor> contents(const DrawRequest& request, const SiteInput& input, uint64_t seed) {
  if (input.source == SiteInput::Source::kFixed) return request.sizes.renumbered(input.fixed);
  const bool is_integer = !is_floating(input.type);
  const LegalIntegers* const legal = is_integer ? legal_integers(input, request.sdpa) : nullptr;
  if (is_integer && !legal && input.source != SiteInput::Source::kUniform)
    if (auto tensor = evaluated(input, request.sizes)) return *std::move(tensor);
  const std::string& name = input.value->name;
  const auto dims = request.sizes.of(input.shape);
  if (!dims) return fail(ErrorCode::kInvalidInput, name, "no sizes fit its shape " + to_string(input.shape));
  const int64_t count = element_count(*dims);
  if (count < 0 || static_cast<uint64_t>(count) > request.memory_limit / sizeof(double))
    return fail(ErrorCode::kLimit, name, "its contents are beyond the memory limit of a site");
  if (element_size(input.type) == 0) return fail(ErrorCode::kUnsupported, name, "its element type cannot be drawn");
  if (input.source == SiteInput::Source::kUniform) return filled(input.type, *dims, [&](int64_t) { return input.uniform; });
  if (input.source == SiteInput::Source::kShapeOnly) return filled(input.type, *dims, [](int64_t) { return 0.0; });
  if (counts_iterations(*input.value)) return iterations(input.type, *dims, request.kind, RandomNumbers(seed));
  if (!is_attention(request.sdpa)) {
    const bool meets_numbers = request.kind == DrawKind::kScattered && is_floating(input.type);
    const std::vector<double> numbers = meets_numbers ? numbers_of(request.site) : std::vector<double>();
    return filled(input.type, *dims, ValueDraw(request.kind, input.type, *dims, numbers, RandomNumbers(seed)));
  }
  if (is_given_mask(input, request.sdpa))
    return mask_of_floats(input.type, *dims, request.kind, is_assumed(kMasksBinary, request.sdpa), RandomNumbers(seed));
  if (legal) return within(*legal, input.type, *dims, request, RandomNumbers(seed));
  ATTN_OPT_TRY(const auto draw, input_draw(request, input, *dims, RandomNumbers(seed)));
  return filled(input.type, *dims, draw);
}

/// True if VALUE, which a description may have made by moving or picking elements, holds elements of SOURCE.
bool is_picked_of(const Value& value, const Value& source) {
  const Value* seen = &value;
  while (seen != &source && seen->is_new && seen->producer && has(*seen->producer, Trait::kMoves) && seen->producer->input(0))
    seen = seen->producer->inputs[0];
  return seen == &source;
}

}  // namespace

bool is_given_mask(const SiteInput& input, const Sdpa& sdpa) {
  const bool is_told = is_assumed(kMasksBinary, sdpa) || is_assumed(kMasksNotNegative, sdpa);
  return is_told && std::ranges::find(sdpa.given.moved, input.value) != sdpa.given.moved.end();
}

InputRole role_of(const SiteInput& input, const Sdpa& sdpa) {
  const Value* value = input.value;
  if (value == sdpa.nonpad_kv_seqlen) return InputRole::kLength;
  for (const auto& term : sdpa.terms)
    if (term.causal && term.causal->lengths == value) return InputRole::kLength;
  if (const auto term = std::ranges::find(sdpa.terms, value, &ScoreTerm::value); term != sdpa.terms.end())
    return term->kind == ScoreTerm::Kind::kBias   ? InputRole::kBias
           : term->kind == ScoreTerm::Kind::kKeep ? InputRole::kKeep
                                                  : InputRole::kDrop;
  for (const auto& scale : sdpa.tensor_scales)
    if (scale.value == value) return InputRole::kTensorScale;
  const auto is_of = [value](const OperandView& view) { return is_picked_of(*view.value, *value); };
  if (std::ranges::any_of(sdpa.q.views, is_of)) return InputRole::kQuery;
  if (std::ranges::any_of(sdpa.k.views, is_of)) return InputRole::kKey;
  return bias_made_from(input, sdpa) ? InputRole::kBias : InputRole::kOther;
}

Expected<Feeds> draw_inputs(const DrawRequest& request) {
  Feeds feeds;
  uint64_t seed = request.seed;
  for (const auto& input : request.site.inputs) {
    seed = RandomNumbers(seed).bits();
    if (input.twin) continue;
    ATTN_OPT_TRY(feeds[input.value->name], contents(request, input, seed));
  }
  for (const auto& input : request.site.inputs)
    if (input.twin) feeds[input.value->name] = feeds.at(input.twin->name);
  return feeds;
}

}  // namespace attn_opt
