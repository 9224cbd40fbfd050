#include "patterns/zero_one_mask.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

constexpr int kMaxCopies = 16;
constexpr std::array kCopies = {"Slice", "Expand", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Gather", "Tile", "Trilu"};

/// The only number beside 0 that TENSOR holds, 1 if there is none; nullopt if there are several, or if it is a scale of all.
std::optional<double> number_beside_zero(const Tensor& tensor) {
  const auto numbers = tensor.cast(onnx::TensorProto::DOUBLE);
  if (!numbers) return std::nullopt;
  std::optional<double> found;
  bool has_zero = false;
  for (const double number : numbers->data<double>()) {
    has_zero |= number == 0;
    if (number == 0) continue;
    if (!std::isfinite(number) || found.value_or(number) != number) return std::nullopt;
    found = number;
  }
  return has_zero || found == 1 ? std::optional(found.value_or(1)) : std::nullopt;
}

/// The only number beside 0 that VALUE may hold; nullopt if it may hold others.
std::optional<double> number_of_mask(Value& value, Facts& facts) {
  Value* seen = &value;
  bool is_cast = false;  // which may round other numbers than 0 and 1
  for (int step = 0; step < kMaxCopies; ++step) {
    seen = &canonical(*seen, facts);
    if (const Tensor* constant = facts.constant(*seen)) {
      const auto number = number_beside_zero(*constant);
      return is_cast && number != 1.0 ? std::nullopt : number;
    }
    if (const auto number = facts.uniform(*seen)) return *number == 0 || *number == 1 ? std::optional(1.0) : std::nullopt;
    Node* node = seen->producer;
    if (!node || !node->input(0)) return std::nullopt;
    const bool copies = std::ranges::any_of(kCopies, [&](const char* op_type) { return node->is(op_type); });
    if (node->is("Cast") && facts.type(*node->inputs[0]) == onnx::TensorProto::BOOL) return 1;
    if (!copies && !node->is("Cast")) return std::nullopt;
    is_cast |= node->is("Cast");
    seen = node->inputs[0];
  }
  return std::nullopt;
}

Value* as_bool(Value& mask, Node& reader, MatchContext& context) {
  Node* cast = mask.producer;
  if (cast && cast->is("Cast") && context.facts.type(*cast->inputs[0]) == onnx::TensorProto::BOOL) return cast->inputs[0];
  InnerValues inner(reader, context);
  return inner.build().node("Cast", {&mask}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::BOOL})});
}

/// The number that ADDED is where FACTOR is 0, being 0 elsewhere, both constants of one shape.
std::optional<double> number_where_zero(const Tensor& added, const Tensor& factor) {
  const auto numbers = added.cast(onnx::TensorProto::DOUBLE), factors = factor.cast(onnx::TensorProto::DOUBLE);
  if (!numbers || !factors || added.dims() != factor.dims()) return std::nullopt;
  std::optional<double> found;
  for (size_t i = 0; i < numbers->data<double>().size(); ++i) {
    const double number = numbers->data<double>()[i];
    const bool is_zero = factors->data<double>()[i] == 0;
    if (is_zero ? found.value_or(number) != number : number != 0) return std::nullopt;
    if (is_zero) found = number;
  }
  return found;
}

/// What TERM adds where FACTOR is 0, if it is a number, and nothing where FACTOR is 1.
std::optional<double> added_where_zero(const ScoreTerm& term, Value& factor, Facts& facts) {
  Value* same_factor = &factor;
  double added = 0;
  const Matcher inverse = either({op("Sub", {number_is(1), same(&same_factor)}),
                                  commuted("Add", number_is(1), op("Neg", {same(&same_factor)}))});
  const Matcher fills = commuted("Mul", inverse, number(&added));
  if (fills(*term.value, facts)) return added;
  if (op("Neg", {fills})(*term.value, facts)) return -added;
  const Tensor *constant = facts.constant(*term.value), *own = facts.constant(factor);
  return constant && own ? number_where_zero(*constant, *own) : std::nullopt;
}

}  // namespace

std::optional<FactorMask> masked_by_factor(Value& factor, const std::vector<ScoreTerm>& before, Node& reader, MatchContext& context) {
  if (before.empty()) return std::nullopt;
  Value& seen = canonical(factor, context.facts);
  const auto number = number_of_mask(seen, context.facts);
  if (!number) return std::nullopt;
  std::vector<ScoreTerm> terms = before;
  for (auto term = terms.begin(); term != terms.end(); ++term) {
    const auto fill = term->kind == ScoreTerm::Kind::kBias ? added_where_zero(*term, seen, context.facts) : std::nullopt;
    if (!fill) continue;
    ScoreTerm mask = *term;
    mask.kind = ScoreTerm::Kind::kKeep;
    const double sign = term->coefficient < 0 ? -1 : 1;  // of what is subtracted
    mask.coefficient *= sign;
    mask.fill = sign * *fill;
    mask.value = as_bool(seen, reader, context);
    terms.erase(term);
    terms.push_back(std::move(mask));
    return FactorMask{std::move(terms), *number};
  }
  return std::nullopt;
}

}  // namespace attn_opt
