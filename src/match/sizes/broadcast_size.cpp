#include "src/match/sizes/broadcast_size.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

using SizesByText = std::map<std::string, Dim>;

/// Enters the sizes that broadcast to SIZE: itself, unless it holds others.
void enter_parts(const Dim& size, SizesByText& parts) {
  const Atom* atom = sole_atom(size);
  if (!atom || !is_broadcast(*atom)) {
    parts.emplace(size.str(), size);
    return;
  }
  for (const Dim& operand : atom->operands) enter_parts(operand, parts);
}

/// True if SIZE is 1 or what the PARTS but TEXT broadcast to, in every run in which it is a size: a number that it is compared
/// with is neither where it is not 1.
bool is_of_parts(const Dim& size, const std::string& text, const SizesByText& parts) {
  constexpr int64_t kLeastBound = 2;
  if (size.is_constant()) return size.value() >= kLeastBound;
  SizesByText own;
  enter_parts(size, own);
  return std::ranges::all_of(own, [&](const auto& part) { return part.first != text && parts.contains(part.first); });
}

/// True if what broadcasts with SIZE, one of PARTS called TEXT, is the same without it: the smaller or the greater of sizes
/// that the others broadcast to, or of such a size and a number.
///   n ~ min(n, c), c >= 2: n is at most c, or 1       n, m ~ max(n, m): of two that broadcast one is the other, or 1
bool adds_nothing(const Dim& size, const std::string& text, const SizesByText& parts) {
  const Atom* atom = sole_atom(size);
  if (!atom || (atom->kind != Atom::Kind::kMin && atom->kind != Atom::Kind::kMax)) return false;
  const bool may_be_number = atom->kind == Atom::Kind::kMin;
  return std::ranges::all_of(atom->operands, [&](const Dim& operand) {
    return (may_be_number || !operand.is_constant()) && is_of_parts(operand, text, parts);
  });
}

}  // namespace

Dim broadcast_size(const Dim& one, const Dim& other) {
  SizesByText parts;
  enter_parts(one, parts);
  enter_parts(other, parts);
  for (auto part = parts.begin(); part != parts.end();)
    part = adds_nothing(part->second, part->first, parts) ? parts.erase(part) : std::next(part);
  if (parts.size() == 1) return parts.begin()->second;
  std::string name = "?broadcast(";
  std::vector<Dim> sizes;
  for (auto& [text, size] : parts) {
    name += (sizes.empty() ? "" : ", ") + text;
    sizes.push_back(std::move(size));
  }
  return Dim::of_atom(std::make_shared<const Atom>(Atom{Atom::Kind::kSymbol, name + ")", std::move(sizes), true, false}));
}

}  // namespace attn_opt
