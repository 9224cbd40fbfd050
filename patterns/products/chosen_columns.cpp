#include "patterns/products/chosen_columns.h"

#include <cmath>

#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

/// Of a matrix that is looked at: weights are larger.
constexpr int64_t kMaxNumbers = 1 << 18;

/// Where a column of MATRIX, or a row of it where IS_LEFT, has its only number beside zeros, by columns; all are FACTOR.
/// Nullopt if some have none or several.
std::optional<std::vector<int64_t>> places_of_numbers(const Tensor& matrix, bool is_left, double& factor) {
  if (matrix.rank() != 2 || matrix.size() == 0 || matrix.size() > kMaxNumbers) return std::nullopt;
  const auto numbers = matrix.cast(onnx::TensorProto::DOUBLE);
  if (!numbers) return std::nullopt;
  const int64_t columns = matrix.dims()[1];
  std::vector<int64_t> places(static_cast<size_t>(matrix.dims()[is_left ? 0 : 1]), -1);
  for (int64_t i = 0; i < matrix.size(); ++i) {
    const double number = numbers->data<double>()[static_cast<size_t>(i)];
    if (number == 0) continue;
    int64_t& place = places[static_cast<size_t>(is_left ? i / columns : i % columns)];
    if (place >= 0 || !std::isfinite(number) || (factor != 0 && number != factor)) return std::nullopt;
    place = is_left ? i % columns : i / columns;
    factor = number;
  }
  for (const int64_t place : places)
    if (place < 0) return std::nullopt;
  return places;
}

/// True if PLACES are all of SIZE in their order.
bool chooses_all(const std::vector<int64_t>& places, const Dim& size) {
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] != static_cast<int64_t>(i)) return false;
  return size.is(static_cast<int64_t>(places.size()));
}

}  // namespace

std::optional<ChosenColumns> chosen_columns(const Node& product, Facts& facts) {
  if (!product.is("MatMul") || !product.input(0) || !product.input(1)) return std::nullopt;
  for (const size_t at : {1u, 0u}) {
    Value& source = *product.inputs[1 - at];
    const MaybeShape shape = facts.shape(source), made = facts.shape(*product.outputs[0]);
    if (!shape || !made || shape->size() < 2 || made->size() != shape->size() || facts.constant(source)) continue;
    ChosenColumns chosen{&source, static_cast<int64_t>(shape->size()) - 1 - (at == 0 ? 1 : 0), 0, {}};
    const Tensor* matrix = facts.constant(*product.inputs[at]);
    if (!matrix) continue;
    auto places = places_of_numbers(*matrix, at == 0, chosen.factor);
    if (!places) continue;
    if (!chooses_all(*places, (*shape)[static_cast<size_t>(chosen.axis)])) chosen.places = *std::move(places);
    return chosen;
  }
  return std::nullopt;
}

Value* chosen_value(const ChosenColumns& chosen, Node& product, MatchContext& context) {
  if (chosen.places.empty()) return chosen.source;
  InnerValues inner(product, context);
  Value* places = inner.build().ints(chosen.places);
  return inner.build().node("Gather", {chosen.source, places}, {GraphBuilder::attribute("axis", chosen.axis)});
}

}  // namespace attn_opt
