#include "src/emit/sizes.h"

#include <algorithm>
#include <utility>

#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxInputs = 64;
constexpr int kMaxDepth = 8;

}  // namespace

std::string sizes_that_may_be_0(const Shape& sizes) {
  std::string named;
  for (auto size = sizes.begin(); size != sizes.end(); ++size) {
    const bool is_told = size->is_constant() || std::find(sizes.begin(), size, *size) != size;
    if (!is_told && !(*size - 1).never_negative()) named += (named.empty() ? "" : ", ") + size->str();
  }
  return named;
}

SizeSource::SizeSource(GraphBuilder& build, Facts& facts) : build_(build) {
  for (const Graph* graph = &build.edit().graph(); graph; graph = graph->parent())
    for (Value* input : graph->inputs()) {
      if (inputs_.size() == kMaxInputs) return;
      if (const MaybeShape shape = facts.shape(*input)) inputs_.push_back({input, *shape});
    }
}

SizeSource::Found SizeSource::axis_of(const Dim& size, bool with_local) const {
  for (const auto* known : {&inputs_, &local_}) {
    if (known == &local_ && !with_local) break;
    for (const Known& one : *known)
      for (size_t axis = 0; axis < one.shape.size(); ++axis)
        if (one.shape[axis] == size) return Expression{Expression::Kind::kAxis, static_cast<int64_t>(axis), one.value, {}};
  }
  return std::nullopt;
}

/// What computes ATOM from its two operands.
std::optional<SizeSource::Expression::Kind> SizeSource::kind_of(const Atom& atom) {
  using Kind = Expression::Kind;
  switch (atom.kind) {
    case Atom::Kind::kFloorDiv: return Kind::kDiv;
    case Atom::Kind::kMin: return Kind::kMin;
    case Atom::Kind::kMax: return Kind::kMax;
    case Atom::Kind::kSymbol: return is_broadcast(atom) ? std::optional(Kind::kBroadcast) : std::nullopt;
  }
  return std::nullopt;
}

/// Axes of which each has the size that some of PARTS broadcast to, which are taken out of them.
std::vector<SizeSource::Expression> SizeSource::axes_within(std::vector<Dim>& parts) const {
  std::vector<Expression> axes;
  for (const Known& one : local_)
    for (size_t axis = 0; axis < one.shape.size(); ++axis) {
      const Atom* atom = sole_atom(one.shape[axis]);
      const auto is_part = [&](const Dim& size) { return std::ranges::find(parts, size) != parts.end(); };
      if (!atom || !is_broadcast(*atom) || !std::ranges::all_of(atom->operands, is_part)) continue;
      std::erase_if(parts, [&](const Dim& part) { return std::ranges::find(atom->operands, part) != atom->operands.end(); });
      axes.push_back({Expression::Kind::kAxis, static_cast<int64_t>(axis), one.value, {}});
    }
  return axes;
}

SizeSource::Found SizeSource::of_atom(const AtomRef& atom, bool with_local, int depth) const {
  if (Found axis = axis_of(Dim::of_atom(atom), with_local)) return axis;
  const auto kind = kind_of(*atom);
  if (!kind) return std::nullopt;
  std::vector<Expression> operands;
  std::vector<Dim> left = atom->operands;
  if (*kind == Expression::Kind::kBroadcast && with_local) operands = axes_within(left);
  for (const Dim& operand : left) {
    Found found = composed(operand, with_local, depth + 1);
    if (!found) return std::nullopt;
    operands.push_back(*std::move(found));
  }
  return Expression{*kind, 0, nullptr, std::move(operands)};
}

SizeSource::Found SizeSource::composed(const Dim& size, bool with_local, int depth) const {
  if (size.is_constant()) return Expression{Expression::Kind::kNumber, size.value(), nullptr, {}};
  if (Found axis = axis_of(size, with_local); axis || depth > kMaxDepth) return axis;
  Expression sum{Expression::Kind::kAdd, 0, nullptr, {}};
  for (const Dim::Term& term : size.terms()) {
    Expression product{Expression::Kind::kMul, 0, nullptr, {}};
    if (term.coefficient != 1 || term.factors.empty())
      product.operands.push_back({Expression::Kind::kNumber, term.coefficient, nullptr, {}});
    for (const AtomRef& factor : term.factors) {
      Found found = of_atom(factor, with_local, depth);
      if (!found) return std::nullopt;
      product.operands.push_back(*std::move(found));
    }
    sum.operands.push_back(std::move(product));
  }
  return sum;
}

SizeSource::Found SizeSource::part_of_axis(const Dim& size) const {
  for (const auto* known : {&inputs_, &local_})
    for (const Known& one : *known)
      for (size_t axis = 0; axis < one.shape.size(); ++axis) {
        const auto parts = exact_quotient(one.shape[axis], size);
        if (!parts || !parts->is_constant() || one.shape[axis].is_constant()) continue;
        return Expression{Expression::Kind::kDiv,
                          0,
                          nullptr,
                          {{Expression::Kind::kAxis, static_cast<int64_t>(axis), one.value, {}},
                           {Expression::Kind::kNumber, parts->value(), nullptr, {}}}};
      }
  return std::nullopt;
}

SizeSource::Found SizeSource::find(const Dim& size) const {
  if (Found found = composed(size, false, 0)) return found;
  if (Found found = axis_of(size, true)) return found;
  if (Found found = composed(size, true, 0)) return found;
  return part_of_axis(size);
}

/// What joins two operands of KIND; null if several operators do.
const char* SizeSource::operator_of(Expression::Kind kind) {
  switch (kind) {
    case Expression::Kind::kAdd: return "Add";
    case Expression::Kind::kMul: return "Mul";
    case Expression::Kind::kDiv: return "Div";
    case Expression::Kind::kMin: return "Min";
    case Expression::Kind::kMax: return "Max";
    default: return nullptr;
  }
}

/// The one of two sizes that is not 1, which may be 0.
Value* SizeSource::write_broadcast(Value* one, Value* other) {
  return build_.node("Where", {build_.node("Equal", {one, build_.ints({1})}), other, one});
}

Value* SizeSource::write(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::kNumber: return build_.ints({expression.number});
    case Expression::Kind::kAxis: return build_.shape(*expression.value, expression.number, expression.number + 1);
    default: break;
  }
  Value* result = write(expression.operands[0]);
  for (size_t i = 1; i < expression.operands.size(); ++i) {
    Value* operand = write(expression.operands[i]);
    const char* op = operator_of(expression.kind);
    result = op ? build_.node(op, {result, operand}) : write_broadcast(result, operand);
  }
  return result;
}

Value* SizeSource::sizes(const Shape& dims) {
  std::vector<Found> found;
  for (const Dim& dim : dims) {
    found.push_back(find(dim));
    if (!found.back()) return nullptr;
  }
  std::vector<Value*> pieces;
  std::vector<int64_t> numbers;
  auto end_numbers = [&] {
    if (!numbers.empty()) pieces.push_back(build_.ints(std::exchange(numbers, {})));
  };
  for (const Found& one : found) {
    if (one->kind == Expression::Kind::kNumber) {
      numbers.push_back(one->number);
      continue;
    }
    end_numbers();
    pieces.push_back(write(*one));
  }
  end_numbers();
  if (pieces.size() == 1) return pieces[0];
  return build_.node("Concat", pieces, {GraphBuilder::attribute("axis", int64_t{0})});
}

}  // namespace attn_opt
