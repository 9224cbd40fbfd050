#include "src/verify/sizes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "src/match/sizes/dim_division.h"
#include "src/match/sizes/sole_atom.h"
#include "src/verify/score_sizes.h"
#include "src/verify/shrinking.h"
#include "src/verify/solved_sizes.h"

namespace attn_opt {
namespace {

constexpr int kMaxSubstitutions = 32;

/// Distinct numbers: small and without common factors; multiples of each other, for what divides them; smaller ones; halves of
/// the multiples.
constexpr std::array<std::array<int64_t, 12>, 4> kSequences = {{
    {3, 5, 7, 4, 6, 2, 9, 11, 8, 10, 13, 14},
    {12, 24, 16, 8, 48, 36, 32, 40, 20, 28, 44, 4},
    {2, 7, 4, 9, 3, 8, 5, 6, 10, 12, 11, 15},
    {6, 12, 8, 4, 24, 18, 16, 20, 10, 14, 22, 2},
}};
constexpr int64_t kOneForAll = 4;
/// What a size is that is not the 1 of another.
constexpr int64_t kApart = 3;
/// Numbers of a site's inputs and scores up to which the multiples are tried, or their halves: where heads, windows and images
/// have sizes of their own, a large batch costs time and memory and shows nothing new.
constexpr int64_t kMaxElementsOfMultiples = int64_t{1} << 21;
/// Numbers of a site's inputs and scores, held several times and in double, beyond which sizes that are tried for want of
/// better ones are not, and a batch is one or two.
constexpr int64_t kMaxElements = int64_t{1} << 22;
/// For symbols that sizes are quotients of (samples of audio before strided convolutions).
constexpr std::array<int64_t, 8> kDividendFactors = {4, 8, 16, 32, 64, 256, 1024, 4096};

/// The symbol of the keys that were there before the queries; empty if it cannot be told.
std::string past_symbol(const Sdpa& sdpa) {
  for (const auto& view : sdpa.k.views)
    if (view.past) return symbol_name(rows_of(sdpa.k) - view.axes.size(Role::kRow));
  return symbol_name(rows_of(sdpa.k) - rows_of(sdpa.q));
}

/// About how many numbers a run of SITE holds; as many as there can be if a size is not known.
int64_t elements_of(const CutSite& site, const Sdpa& sdpa, const SizeAssignment& sizes) {
  int64_t all = number_of_scores(sdpa, sizes);
  for (const SiteInput& input : site.inputs) {
    const std::optional<Dims> dims = sizes.of(input.shape);
    int64_t number = 1;
    for (size_t axis = 0; dims && axis < dims->size(); ++axis)
      if (__builtin_mul_overflow(number, (*dims)[axis], &number)) return std::numeric_limits<int64_t>::max();
    if (!dims || __builtin_add_overflow(all, number, &all)) return std::numeric_limits<int64_t>::max();
  }
  return all;
}

/// The sizes without which SITE shows nothing: of the scores and of features, or of all inputs where SITE is no attention.
std::vector<Dim> sizes_of_site(const CutSite& site, const Sdpa& sdpa) {
  std::vector<Dim> sizes = sizes_of_scores(sdpa);
  for (const Operand* operand : {&sdpa.q, &sdpa.v})
    if (!operand->views.empty()) sizes.push_back(operand->views.front().axes.size(Role::kFeature));
  if (!sizes.empty()) return sizes;
  for (const SiteInput& input : site.inputs) sizes.insert(sizes.end(), input.shape.begin(), input.shape.end());
  return sizes;
}

/// How many batch elements there are, if that is the only open size of the scores; nullopt else.
std::optional<Dim> sole_open_batch(const Sdpa& sdpa) {
  const std::vector<Dim> sizes = sizes_of_scores(sdpa);
  const auto fixed = std::ranges::count_if(sizes, [](const Dim& size) { return size.is_constant(); });
  return fixed + 1 == std::ssize(sizes) && !sizes[0].is_constant() ? std::optional(sizes[0]) : std::nullopt;
}

/// The last of the symbols that SYMBOL is taken to equal in turn.
Dim last_meaning(Dim symbol, SizeEquations& equations) {
  for (int step = 0; step < kMaxSubstitutions; ++step) {
    const Dim* meaning = equations.meaning(symbol_name(symbol));
    if (!meaning || symbol_name(*meaning).empty()) break;
    symbol = *meaning;
  }
  return symbol;
}

/// Adds to APART that NAME, which is taken to equal the expression MEANING, is 1 where that is more, and more where that is 1.
void set_apart_from(const Dim& meaning, const std::string& name, const SizeAssignment& first, SizeEquations& equations,
                    std::vector<SizeAssignment>& apart) {
  SizeAssignment sizes = first;
  const auto size = first.of(meaning);
  if (!size) return;
  if (*size == 1) {
    apart.emplace_back(first).set_apart(name, kApart);
    // Of each multiple a quotient is a multiple, too.
    for (const std::string& symbol : free_symbols({meaning}, equations)) sizes.multiply(symbol, kApart);
  }
  if (sizes.of(meaning).value_or(1) > 1) apart.emplace_back(sizes).set_apart(name, 1);
}

/// SIZES; those that others broadcast to are these others.
std::vector<Dim> broadcast_parts(const Shape& sizes) {
  std::vector<Dim> parts(sizes.begin(), sizes.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Atom* atom = sole_atom(parts[i]);
    if (!atom || !is_broadcast(*atom)) continue;
    const std::vector<Dim> others = atom->operands;  // PARTS may move what holds them
    parts.insert(parts.end(), others.begin(), others.end());
  }
  std::erase_if(parts, [](const Dim& size) { return sole_atom(size) && is_broadcast(*sole_atom(size)); });
  return parts;
}

/// Symbols that are taken for LAST.
struct Equals {
  Dim last;
  std::vector<std::string> names;
};

/// Makes the batch two in those of ASSIGNMENTS where other sizes, which had to be solved, make more than is worth its time;
/// with more only where that does not run.
void bound_batches(const CutSite& site, const Sdpa& sdpa, std::vector<SizeAssignment>& assignments) {
  constexpr int64_t kFew = 2, kNotMany = 3;
  const std::vector<Dim> scores = sizes_of_scores(sdpa);
  const std::string batch = scores.empty() ? std::string() : symbol_name(scores.front());
  if (batch.empty()) return;
  std::vector<SizeAssignment> large;
  for (SizeAssignment& sizes : assignments) {
    if (sizes.of(scores.front()).value_or(0) <= kNotMany || elements_of(site, sdpa, sizes) <= kMaxElementsOfMultiples) continue;
    large.emplace_back(sizes).make_fallback();
    sizes.set(batch, kFew);
  }
  assignments.insert(assignments.end(), large.begin(), large.end());
}

std::vector<SizeAssignment> symbolic_assignments(const std::set<std::string>& divided, const std::vector<std::string>& symbols,
                                                 const CutSite& site, const Sdpa& sdpa, SizeEquations& equations,
                                                 const Shrinking& shrinking) {
  std::vector<SizeAssignment> assignments;
  auto add = [&](const std::function<int64_t(size_t)>& number) -> SizeAssignment& {
    auto& assignment = assignments.emplace_back(equations, shrinking);
    for (size_t i = 0; i < symbols.size(); ++i) assignment.set(symbols[i], number(i));
    return assignment;
  };
  auto from_sequence = [](size_t sequence) {
    return [sequence](size_t i) {
      const auto& numbers = kSequences[sequence];
      return numbers[i % numbers.size()] * (1 + static_cast<int64_t>(i / numbers.size()));
    };
  };
  const bool is_large = elements_of(site, sdpa, add(from_sequence(0))) > kMaxElements;
  if (const auto batch = sole_open_batch(sdpa); batch && is_large && symbols.size() == 1) {
    assignments.front().set(symbols[0], 1);
    if (assignments.front().of(*batch) == 1) add([](size_t) { return 2; });  // an image of one window
    return assignments;
  }
  const auto add_if_small = [&](size_t sequence) {
    if (elements_of(site, sdpa, add(from_sequence(sequence))) <= kMaxElementsOfMultiples) return true;
    assignments.pop_back();
    return false;
  };
  if (!add_if_small(1) && !add_if_small(3)) add(from_sequence(2));
  auto add_case = [&](const std::string& symbol, int64_t number) {
    if (std::ranges::find(symbols, symbol) != symbols.end()) add(from_sequence(0)).set(symbol, number);
  };
  add_case(symbol_name(rows_of(sdpa.q)), 1);
  add_case(past_symbol(sdpa), 0);
  add(from_sequence(2)).make_fallback();
  const auto one_for_all = [](size_t) { return kOneForAll; };
  add(one_for_all).make_fallback();
  // A sum of two sizes that is a symbol of its own, as the length of a mask over past and new keys.
  for (const auto& symbol : symbols) {
    SizeAssignment& assignment = add(one_for_all);
    assignment.set(symbol, 2 * kOneForAll);
    assignment.make_fallback();
  }
  if (divided.empty()) return assignments;
  for (int64_t factor : kDividendFactors)
    add([&](size_t i) { return from_sequence(0)(i) * (divided.count(symbols[i]) ? factor : 1); }).make_fallback();
  return assignments;
}

}  // namespace

const Dim* SizeEquations::meaning(const std::string& symbol) {
  read_assumptions();
  auto found = meanings_.find(symbol);
  return found == meanings_.end() ? nullptr : &found->second;
}

void SizeEquations::read_assumptions() {
  const auto& assumptions = facts_->assumptions();
  for (; read_ < assumptions.size(); ++read_) {
    const auto& [one, other, node] = assumptions[read_];
    add(one, other);
  }
}

void SizeEquations::add(const Dim& one, const Dim& other) {
  if (Dim less = one, as_much_less = other; cancel_common(less, as_much_less)) return add(less, as_much_less);
  define(one, other);
  define(other, one);
  define_product(one, other);
  define_product(other, one);
}

/// Of unknown sizes whose product is known, the first is that and the others are 1.
void SizeEquations::define_product(const Dim& product, const Dim& meaning) {
  if (product.terms().size() != 1 || product.terms()[0].coefficient != 1 || product.terms()[0].factors.size() < 2) return;
  const std::vector<AtomRef>& factors = product.terms()[0].factors;
  const auto is_open = [this](const AtomRef& factor) {
    return factor->kind == Atom::Kind::kSymbol && factor->unknown && !meanings_.contains(factor->name);
  };
  if (!std::ranges::all_of(factors, is_open)) return;
  define(Dim::of_atom(factors.front()), meaning);
  for (size_t i = 1; i < factors.size(); ++i) define(Dim::of_atom(factors[i]), 1);
}

void SizeEquations::define(const Dim& symbol, const Dim& meaning) {
  const std::string name = symbol_name(symbol);
  if (name.empty() || meanings_.count(name) || leads_to(meaning, name)) return;
  meanings_.emplace(name, meaning);
}

bool SizeEquations::leads_to(const Dim& start, const std::string& symbol) const {
  std::vector<Dim> pending = {start};
  std::set<std::string> seen;
  while (!pending.empty()) {
    const Dim dim = pending.back();
    pending.pop_back();
    if (has_atom(dim, symbol)) return true;
    for (const auto& atom : dim.atoms())
      if (auto found = meanings_.find(atom->name); found != meanings_.end() && seen.insert(atom->name).second)
        pending.push_back(found->second);
  }
  return false;
}

std::optional<int64_t> SizeAssignment::number_of(const Atom& atom, int depth) const {
  if (const auto apart = apart_.find(atom.name); apart != apart_.end()) return apart->second;
  const Dim* meaning = equations_->meaning(atom.name);
  if (meaning && depth < kMaxSubstitutions) return evaluated(*meaning, depth + 1);
  if (auto found = numbers_.find(atom.name); found != numbers_.end()) return found->second;
  if (atom.operands.empty() || depth >= kMaxSubstitutions) return std::nullopt;
  int64_t joint = 1;  // what sizes broadcast to, of which none is a number
  for (const Dim& operand : atom.operands) {
    const auto size = evaluated(operand, depth + 1);
    if (!size || (*size != joint && *size != 1 && joint != 1)) return std::nullopt;
    if (*size != 1) joint = *size;
  }
  return joint;
}

std::optional<int64_t> SizeAssignment::evaluated(const Dim& size, int depth) const {
  return shrinking_.in_blocks(size).evaluate([&](const Atom& atom) { return number_of(atom, depth); });
}

std::optional<int64_t> SizeAssignment::of(const Dim& dim) const {
  return dim.is_constant() ? shrinking_.number_of(dim.value()) : evaluated(dim, 0);
}

std::optional<Dims> SizeAssignment::of(const Shape& shape) const {
  Dims dims;
  for (const Dim& dim : shape) {
    const auto size = of(dim);
    if (!size || *size < 0) return std::nullopt;
    dims.push_back(*size);
  }
  return dims;
}

std::string SizeAssignment::str() const {
  std::string text;
  auto add = [&](const std::string& name, int64_t number) {
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(number);
  };
  for (const auto& [name, number] : numbers_)
    if (!apart_.contains(name)) add(name, number);
  for (const auto& [name, number] : apart_) add(name, number);
  for (const auto& [extent, number] : shrinking_.numbers) add(std::to_string(extent), number);
  if (shrinking_.block) add(std::to_string(shrinking_.block), shrinking_.block_number);
  return text.empty() ? "as in the model" : text;
}

std::vector<std::string> free_symbols(std::vector<Dim> sizes, SizeEquations& equations) {
  std::vector<std::string> symbols;
  std::set<std::string> seen;
  while (!sizes.empty()) {
    const Dim dim = sizes.back();
    sizes.pop_back();
    for (const auto& atom : dim.atoms()) {
      if (atom->kind != Atom::Kind::kSymbol || !seen.insert(atom->name).second) continue;
      // What two sizes broadcast to follows from them.
      sizes.insert(sizes.end(), atom->operands.begin(), atom->operands.end());
      if (!atom->operands.empty()) continue;
      if (const Dim* meaning = equations.meaning(atom->name))
        sizes.push_back(*meaning);
      else
        symbols.push_back(atom->name);
    }
  }
  return symbols;
}

std::vector<std::string> symbols_of(const CutSite& site, SizeEquations& equations) {
  std::vector<Dim> sizes;
  for (auto input = site.inputs.rbegin(); input != site.inputs.rend(); ++input) {
    if (input->source == SiteInput::Source::kIntegers)
      sizes.insert(sizes.end(), input->integers.values.rbegin(), input->integers.values.rend());
    sizes.insert(sizes.end(), input->shape.rbegin(), input->shape.rend());
  }
  return free_symbols(std::move(sizes), equations);
}

std::vector<SizeAssignment> sizes_apart(const CutSite& site, SizeEquations& equations, const SizeAssignment& first) {
  std::vector<SizeAssignment> apart;
  std::set<std::string> seen;
  std::map<std::string, Equals> equals;  ///< by the name of the last
  const bool is_for_all = !equations.facts().may_assume();
  for (const auto& input : site.inputs)
    for (const Dim& dim : broadcast_parts(input.shape)) {
      const std::string name = symbol_name(dim);
      if (name.empty() || !seen.insert(name).second) continue;
      const Dim* meaning = equations.meaning(name);
      const bool may_be_one = meaning ? meaning->is_constant() && !meaning->is(1) : is_for_all;
      if (may_be_one) apart.emplace_back(first).set_apart(name, 1);
      if (meaning && !meaning->is_constant() && symbol_name(*meaning).empty())
        set_apart_from(*meaning, name, first, equations, apart);
      const Dim last = last_meaning(dim, equations);
      Equals& of_last = equals[symbol_name(last)];
      of_last.last = last;
      of_last.names.push_back(name);
    }
  for (auto& [last, of_last] : equals) {
    std::vector<std::string>& names = of_last.names;
    if (!seen.contains(last)) names.push_back(last);
    const int64_t size = std::max<int64_t>(2, first.of(of_last.last).value_or(0));
    for (const std::string& name : names) {
      if (names.size() < 2) break;
      SizeAssignment& one = apart.emplace_back(first);
      for (const std::string& other : names) one.set_apart(other, other == name ? 1 : size);
      if (names.size() == 2) continue;  // of two, one is 1 where the other is not
      SizeAssignment& alone = apart.emplace_back(first);
      for (const std::string& other : names) alone.set_apart(other, other == name ? size : 1);
    }
  }
  return apart;
}

std::vector<SizeAssignment> size_assignments(const CutSite& site, const Sdpa& sdpa, SizeEquations& equations) {
  const auto symbols = symbols_of(site, equations);
  const std::vector<Dim> quotients = quotients_in(site, equations);
  const std::set<std::string> divided = dividends(quotients, equations);
  std::vector<SizeAssignment> assignments;
  auto add_all = [&](const Shrinking& shrinking) {
    if (symbols.empty()) {
      assignments.emplace_back(equations, shrinking);
      return;
    }
    auto more = symbolic_assignments(divided, symbols, site, sdpa, equations, shrinking);
    assignments.insert(assignments.end(), more.begin(), more.end());
  };
  auto add_fallbacks = [&](const Shrinking& shrinking) {
    const size_t first = assignments.size();
    add_all(shrinking);
    for (size_t i = first; i < assignments.size(); ++i) assignments[i].make_fallback();
  };
  const Shrinking kept = shrinkable(site, sdpa, false, equations.facts());
  add_all(kept);
  if (symbols.empty() && !kept.numbers.empty()) add_fallbacks(with_other_numbers(kept));
  if (number_of_scores(sdpa, assignments.front()) > kMaxScoresOfOwnNumbers) {
    const Shrinking renumbered = shrinkable(site, sdpa, true, equations.facts());
    if (renumbered.block || renumbered.numbers.size() > kept.numbers.size()) {
      add_all(renumbered);
      if (symbols.empty()) add_all(with_other_numbers(renumbered));
      // One extent may be the product of others that stay.
      if (renumbered.numbers.size() > 1)
        for (const auto& one : renumbered.numbers) add_fallbacks({{one}, {}, true});
    }
  }
  if (!kept.numbers.empty()) add_fallbacks({});
  const std::vector<NumberEquation> asked = number_equations(site, sdpa, equations.facts());
  solve(asked, assignments);
  bound_batches(site, sdpa, assignments);
  std::erase_if(assignments, [&](const SizeAssignment& sizes) {
    return sizes.is_fallback() && elements_of(site, sdpa, sizes) > kMaxElements;
  });
  // Behind strided convolutions a short input leaves no query, key, window or feature: that shows nothing, and the operator's
  // body cannot run.
  const std::vector<Dim> sizes = sizes_of_site(site, sdpa);
  std::erase_if(assignments, [&](const SizeAssignment& assignment) {
    return std::ranges::any_of(sizes, [&](const Dim& size) { return !size.is_constant() && assignment.of(size) == 0; });
  });
  drop_empty_quotients(quotients, assignments);
  add_ones(asked, assignments);
  return assignments;
}

}  // namespace attn_opt
