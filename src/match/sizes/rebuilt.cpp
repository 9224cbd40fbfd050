#include "src/match/sizes/rebuilt.h"

#include <memory>

namespace attn_opt {
namespace {

Dim rebuilt_atom(const Atom& atom, const AtomReplacement& replacement, const NumberReplacement& number) {
  if (std::optional<Dim> other = replacement(atom)) return *std::move(other);
  const auto operand = [&](size_t index) { return rebuilt(atom.operands[index], replacement, number); };
  switch (atom.kind) {
    case Atom::Kind::kFloorDiv: return floor_quotient(operand(0), operand(1));
    case Atom::Kind::kMin: return minimum(operand(0), operand(1));
    case Atom::Kind::kMax: return maximum(operand(0), operand(1));
    case Atom::Kind::kSymbol: break;
  }
  return Dim::of_atom(std::make_shared<const Atom>(atom));
}

}  // namespace

Dim rebuilt(const Dim& size, const AtomReplacement& replacement, const NumberReplacement& number) {
  if (size.is_constant()) return number(size.value());
  Dim sum;
  for (const Dim::Term& term : size.terms()) {
    Dim product = number(term.coefficient);
    for (const AtomRef& atom : term.factors) product = product * rebuilt_atom(*atom, replacement, number);
    sum = sum + product;
  }
  return sum;
}

}  // namespace attn_opt
