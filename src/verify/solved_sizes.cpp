#include "src/verify/solved_sizes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/io/einsum_equation.h"
#include "src/match/node_forms.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxSolutions = 4;
/// Patches, windows and strides are of these; an image is some of them.
constexpr std::array<int64_t, 12> kUnits = {1, 2, 4, 7, 8, 14, 16, 28, 32, 48, 64, 128};
constexpr int64_t kMaxUnits = 16;

using Solution = std::map<std::string, int64_t>;

void add_equation(const Dim& one, const Dim& other, bool broadcasts, std::vector<NumberEquation>& equations) {
  if (one.is_constant() == other.is_constant()) return;
  const Dim &number = one.is_constant() ? one : other, &size = one.is_constant() ? other : one;
  if (number.value() > 1 || !broadcasts) equations.push_back({size, number.value(), broadcasts});
}

void add_broadcasts(const Shape& one, const Shape& other, size_t skipped, std::vector<NumberEquation>& equations) {
  for (size_t back = skipped; back < std::min(one.size(), other.size()); ++back)
    add_equation(from_last(one, back), from_last(other, back), true, equations);
}

/// That what operands of EINSUM share by a letter broadcasts.
void add_shared_letters(const Node& einsum, Facts& facts, std::vector<NumberEquation>& equations) {
  std::vector<std::string> terms = einsum_equation(einsum.string_attribute("equation", "")).operands;
  std::map<char, Dim> sizes;
  for (size_t i = 0; i < std::min(terms.size(), einsum.inputs.size()); ++i) {
    const MaybeShape shape = einsum.inputs[i] ? facts.shape(*einsum.inputs[i]) : nullptr;
    if (!shape) return;
    replace_ellipsis(terms[i], ellipsis_axes(terms[i], shape->size()));
    for (size_t axis = 0; axis < std::min(shape->size(), terms[i].size()); ++axis) {
      const auto [known, is_first] = sizes.emplace(terms[i][axis], (*shape)[axis]);
      if (!is_first) add_equation(known->second, (*shape)[axis], true, equations);
    }
  }
}

void add_equations(const Node& node, Facts& facts, std::vector<NumberEquation>& equations) {
  if (node.is("Einsum")) add_shared_letters(node, facts, equations);
  const bool is_product = node.is("MatMul");
  if (!is_product && !has(node, Trait::kElementwise)) return;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    for (size_t k = 0; k < i; ++k) {  // a scalar may stand between two that broadcast, as the fill of a Where
      const MaybeShape one = node.inputs[k] ? facts.shape(*node.inputs[k]) : nullptr;
      const MaybeShape other = node.inputs[i] ? facts.shape(*node.inputs[i]) : nullptr;
      if (one && other) add_broadcasts(*one, *other, is_product ? 2 : 0, equations);
    }
}

/// Adds to EQUAL what ONE and OTHER have on all axes but those that are joined.
void add_beside_joined(const Shape& one, const Shape& other, int64_t axis, std::vector<std::pair<Dim, Dim>>& equal) {
  const std::optional<size_t> joined = axis_in(axis, one.size());
  if (!joined || one.size() != other.size()) return;
  for (size_t k = 0; k < one.size(); ++k)
    if (k != *joined) equal.emplace_back(one[k], other[k]);
}

bool holds(const NumberEquation& equation, const SizeAssignment& sizes) { return sizes.of(equation.size) == equation.number; }

bool all_hold(const std::vector<NumberEquation>& equations, const SizeAssignment& sizes) {
  return std::ranges::all_of(equations, [&](const NumberEquation& equation) { return holds(equation, sizes); });
}

/// Where SIZES breaks EQUATIONS, gives names that are to be a number that number.
void set_names(const std::vector<NumberEquation>& equations, SizeAssignment& sizes) {
  if (all_hold(equations, sizes)) return;
  for (const NumberEquation& equation : equations)
    if (const std::string name = symbol_name(equation.size); !name.empty()) sizes.set(name, equation.number);
}

/// Those of EQUATIONS that SIZES breaks.
std::vector<NumberEquation> broken(std::vector<NumberEquation> equations, const SizeAssignment& sizes) {
  std::erase_if(equations, [&](const NumberEquation& equation) { return holds(equation, sizes); });
  return equations;
}

/// The symbols that sizes in EQUATIONS are quotients of; all symbols if none are.
std::vector<std::string> unknowns_of(const std::vector<NumberEquation>& equations) {
  std::vector<std::string> dividends, all;
  const auto add = [](const Atom& symbol, std::vector<std::string>& names) {
    if (symbol.kind == Atom::Kind::kSymbol && std::ranges::find(names, symbol.name) == names.end())
      names.push_back(symbol.name);
  };
  for (const NumberEquation& equation : equations)
    for (const AtomRef& atom : equation.size.atoms()) {
      add(*atom, all);
      if (atom->kind != Atom::Kind::kFloorDiv) continue;
      for (const AtomRef& divided : atom->operands[0].atoms()) add(*divided, dividends);
    }
  return dividends.empty() ? all : dividends;
}

bool has_quotient(const Dim& size) {
  return std::ranges::any_of(size.atoms(), [](const AtomRef& atom) { return atom->kind == Atom::Kind::kFloorDiv; });
}

/// Sizes of one or two axes UNKNOWNS that are small multiples of one unit, from LEAST of them on.
std::vector<Solution> multiples(const std::vector<std::string>& unknowns, int64_t least,
                                const std::vector<NumberEquation>& equations, SizeAssignment& sizes) {
  std::vector<Solution> found;
  for (const int64_t unit : kUnits)
    for (int64_t first = least; first <= kMaxUnits; ++first)
      for (int64_t last = least; last <= (unknowns.size() == 2 ? kMaxUnits : least); ++last) {
        sizes.set(unknowns.front(), first * unit);
        if (unknowns.size() == 2) sizes.set(unknowns.back(), last * unit);
        if (!all_hold(equations, sizes)) continue;
        Solution& solution = found.emplace_back();
        solution.emplace(unknowns.front(), first * unit);
        solution.emplace(unknowns.back(), last * unit);
        if (found.size() == kMaxSolutions) return found;
      }
  return found;
}

/// EQUATIONS solved for what OPEN ones among them have of symbols; an axis is empty, as a past may be, if no other sizes fit.
std::vector<Solution> solved_for(const std::vector<NumberEquation>& open, const std::vector<NumberEquation>& equations,
                                 SizeAssignment sizes) {
  const std::vector<std::string> unknowns = unknowns_of(open);
  if (unknowns.empty() || unknowns.size() > 2) return {};
  std::vector<Solution> found = multiples(unknowns, 1, equations, sizes);
  return found.empty() ? multiples(unknowns, 0, equations, sizes) : found;
}

/// The sizes that hold already stay, if the others can be solved so.
std::vector<Solution> solutions(const std::vector<NumberEquation>& equations, const SizeAssignment& sizes) {
  std::vector<Solution> found = solved_for(broken(equations, sizes), equations, sizes);
  return found.empty() ? solved_for(equations, equations, sizes) : found;
}

}  // namespace

std::vector<std::pair<Dim, Dim>> required_sizes(const CutSite& site, Facts& facts) {
  std::vector<std::pair<Dim, Dim>> equal;
  for (const Node* node : site.before.nodes) {
    const bool is_elementwise = node->inputs.size() == 1 && node->inputs[0] && has(*node, Trait::kElementwise);
    if (is_elementwise || is_no_op(*node, facts)) {
      // The model may declare sizes of what is made, and none of what it is made of.
      const MaybeShape one = facts.shape(*node->inputs[0]), other = facts.shape(*node->outputs[0]);
      for (size_t axis = 0; one && other.has_rank(one->size()) && axis < one->size(); ++axis)
        equal.emplace_back((*one)[axis], (*other)[axis]);
    }
    const bool is_product = node->is("MatMul");
    if (!is_product && !node->is("Concat")) continue;
    for (size_t i = 1; i < node->inputs.size(); ++i) {
      const MaybeShape one = node->input(0) ? facts.shape(*node->inputs[0]) : nullptr;
      const MaybeShape other = node->inputs[i] ? facts.shape(*node->inputs[i]) : nullptr;
      if (!one || !other) continue;
      if (!is_product)
        add_beside_joined(*one, *other, node->int_attribute("axis", 0), equal);
      else if (one->size() > 1 && other->size() > 1)
        equal.emplace_back(one->back(), from_last(*other, 1));
    }
  }
  std::erase_if(equal, [](const auto& pair) { return pair.first == pair.second; });
  return equal;
}

std::vector<NumberEquation> number_equations(const CutSite& site, const Sdpa& sdpa, Facts& facts) {
  std::vector<NumberEquation> equations;
  for (const auto& [one, other] : sdpa.legal_sizes) add_equation(one, other, false, equations);
  for (const auto& [one, other] : required_sizes(site, facts)) add_equation(one, other, false, equations);
  for (const Node* node : site.before.nodes) add_equations(*node, facts, equations);
  return equations;
}

std::vector<Dim> quotients_in(const CutSite& site, SizeEquations& equations) {
  std::vector<Dim> pending, quotients;
  for (const SiteInput& input : site.inputs) pending.insert(pending.end(), input.shape.begin(), input.shape.end());
  for (const Node* node : site.before.nodes)
    for (const Value* value : node->outputs)
      if (const MaybeShape shape = value ? equations.facts().shape(*value) : nullptr)
        pending.insert(pending.end(), shape->begin(), shape->end());
  std::set<std::string> seen;
  while (!pending.empty()) {
    const Dim size = pending.back();
    pending.pop_back();
    if (size.is_constant() || !seen.insert(size.str()).second) continue;
    if (has_quotient(size)) quotients.push_back(size);
    for (const AtomRef& atom : size.atoms())
      if (const Dim* meaning = atom->kind == Atom::Kind::kSymbol ? equations.meaning(atom->name) : nullptr)
        pending.push_back(*meaning);
  }
  return quotients;
}

std::set<std::string> dividends(const std::vector<Dim>& sizes, SizeEquations& equations) {
  std::vector<Dim> divided;
  for (const Dim& size : sizes)
    for (const AtomRef& atom : size.atoms())
      if (atom->kind == Atom::Kind::kFloorDiv) divided.push_back(atom->operands[0]);
  const std::vector<std::string> symbols = free_symbols(std::move(divided), equations);
  return {symbols.begin(), symbols.end()};
}

void drop_empty_quotients(const std::vector<Dim>& quotients, std::vector<SizeAssignment>& assignments) {
  std::vector<SizeAssignment> kept;
  std::ranges::copy_if(assignments, std::back_inserter(kept), [&](const SizeAssignment& sizes) {
    return std::ranges::none_of(quotients, [&](const Dim& size) { return sizes.of(size) == 0; });
  });
  if (!kept.empty()) assignments = std::move(kept);
}

void solve(const std::vector<NumberEquation>& equations, std::vector<SizeAssignment>& assignments) {
  if (equations.empty() || assignments.empty() || all_hold(equations, assignments.front())) return;
  for (SizeAssignment& sizes : assignments) set_names(equations, sizes);
  if (all_hold(equations, assignments.front())) return;
  const std::vector<Solution> found = solutions(equations, assignments.front());
  for (size_t i = 0; i < assignments.size() && !found.empty(); ++i) {
    if (all_hold(equations, assignments[i])) continue;
    for (const auto& [symbol, number] : found[i % found.size()]) assignments[i].set(symbol, number);
  }
}

void add_ones(const std::vector<NumberEquation>& equations, std::vector<SizeAssignment>& assignments) {
  std::vector<SizeAssignment> ones;
  std::set<std::string> seen;
  for (const NumberEquation& equation : equations) {
    const Atom* symbol = sole_atom(equation.size);
    if (!equation.broadcasts || !symbol || symbol->kind != Atom::Kind::kSymbol || !seen.insert(symbol->name).second) continue;
    if (!assignments.empty()) ones.emplace_back(assignments.front()).set(symbol->name, 1);
  }
  const auto fallback = std::ranges::find_if(assignments, &SizeAssignment::is_fallback);
  assignments.insert(fallback, ones.begin(), ones.end());
}

}  // namespace attn_opt
