// Which atoms sizes are made of.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/dim.h"

namespace attn_opt {

/// The atom that DIM is; null if it is a number, a sum or a product.
inline const Atom* sole_atom(const Dim& dim) {
  const auto terms = dim.terms();
  const bool is_atom = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].factors.size() == 1;
  return is_atom ? terms[0].factors[0].get() : nullptr;
}
const Atom* sole_atom(Dim&& dim) = delete;  // the atom would go with it

/// The name of the symbol that DIM is; empty if it is none.
inline std::string symbol_name(const Dim& dim) {
  const Atom* atom = sole_atom(dim);
  return atom && atom->kind == Atom::Kind::kSymbol ? atom->name : std::string();
}

/// True if ATOM is what other sizes broadcast to (broadcast_size): its operands.
inline bool is_broadcast(const Atom& atom) { return atom.kind == Atom::Kind::kSymbol && !atom.operands.empty(); }

/// True if ATOM is a size of its own, named by the model or not.
inline bool is_own_size(const Atom& atom) { return atom.kind == Atom::Kind::kSymbol && atom.operands.empty(); }

/// The name of the value that ATOM may be a size of, being unknown (Dim::unknown); empty if there is none.
inline std::string_view named_by(const Atom& atom) {
  const std::string_view name = atom.name;
  const size_t end = name.rfind('.');
  return atom.unknown && atom.operands.empty() && end != name.npos ? name.substr(1, end - 1) : std::string_view();
}

/// True if the atom called NAME is one of DIM's.
inline bool has_atom(const Dim& dim, const std::string& name) {
  const std::vector<AtomRef> atoms = dim.atoms();
  return std::ranges::any_of(atoms, [&](const AtomRef& atom) { return atom->name == name; });
}

/// True if the model names all that DIM is made of.
inline bool has_names_alone(const Dim& dim) {
  const std::vector<AtomRef> atoms = dim.atoms();
  return std::ranges::none_of(atoms, [](const AtomRef& atom) { return atom->unknown; });
}

}  // namespace attn_opt
