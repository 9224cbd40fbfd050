#include <algorithm>
#include <limits>
#include <numeric>

#include "attn_opt/dim.h"
#include "src/match/sizes/dim_internal.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

using Term = Dim::Term;

bool by_name(const AtomRef& a, const AtomRef& b) { return a->name < b->name; }

/// A / B as one term; nullopt if B does not divide A.
std::optional<Term> term_quotient(const Term& a, const Term& b) {
  const bool overflows = a.coefficient == std::numeric_limits<int64_t>::min() && b.coefficient == -1;
  if (overflows || a.coefficient % b.coefficient != 0) return std::nullopt;
  if (!std::ranges::includes(a.factors, b.factors, by_name)) {
    return std::nullopt;
  }
  Term quotient{a.coefficient / b.coefficient, {}};
  std::ranges::set_difference(a.factors, b.factors, std::back_inserter(quotient.factors), by_name);
  return quotient;
}

Dim of_term(Term term) { return Dim::sum({std::move(term)}).value(); }

/// Also true of a product with an earlier result that was unmanageable: then a quotient may be missed that there is.
bool is_unmanageable(const Dim& dim) {
  return dim.terms().size() == 1 && !dim.is_constant() && dim.terms()[0].factors[0]->name.starts_with("?#");
}

/// nullopt where a sum is among DIMS, or the product is too large to handle.
std::optional<Dim> product_of_terms(std::span<const Dim> dims) {
  Term product{1, {}};
  product.factors.reserve(dims.size());
  for (const Dim& dim : dims) {
    if (dim.terms().size() != 1) return std::nullopt;
    const Term& term = dim.terms()[0];
    if (__builtin_mul_overflow(product.coefficient, term.coefficient, &product.coefficient)) return std::nullopt;
    product.factors.insert(product.factors.end(), term.factors.begin(), term.factors.end());
  }
  std::ranges::sort(product.factors, by_name);
  return Dim::sum({std::move(product)});
}

int64_t floor_of(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// Takes out of A what B divides, so that 0 <= every coefficient left < B for a number B; returns its
/// quotient.
Dim take_whole_part(Dim& a, const Dim& b) {
  if (b.terms().size() != 1) return 0;
  const Term& divisor = b.terms()[0];
  const bool number = b.is_constant() && divisor.coefficient > 0;
  std::vector<Term> whole, rest;
  for (const Term& term : a.terms()) {
    if (number) {
      const int64_t quotient = floor_of(term.coefficient, divisor.coefficient);
      whole.push_back({quotient, term.factors});
      rest.push_back({term.coefficient - quotient * divisor.coefficient, term.factors});
    } else if (std::optional<Term> quotient = term_quotient(term, divisor)) {
      whole.push_back(*std::move(quotient));
    } else {
      rest.push_back(term);
    }
  }
  a = Dim::sum(std::move(rest)).value();
  return Dim::sum(std::move(whole)).value();
}

/// floor((floor(x / m) + k) / n) = floor((x + k m) / (m n)) for numbers k, m and n, m and n positive.
std::optional<Dim> nested_quotient(const Dim& a, const Dim& n) {
  const auto terms = a.terms();
  const int64_t k = terms.size() == 2 && terms[1].factors.empty() ? terms[1].coefficient : 0;
  const Dim quotient = a - k;
  const Atom* atom = sole_atom(quotient);
  if (!atom || atom->kind != Atom::Kind::kFloorDiv || !n.is_constant() || n.value() <= 0) return std::nullopt;
  const Dim &x = atom->operands[0], &m = atom->operands[1];
  if (!m.is_constant() || m.value() <= 0) return std::nullopt;
  return floor_quotient(x + m * k, m * n);
}

Dim smaller_or_larger(Atom::Kind kind, const Dim& a, const Dim& b) {
  const bool smaller = kind == Atom::Kind::kMin;
  if ((b - a).never_negative()) return smaller ? a : b;
  if ((a - b).never_negative()) return smaller ? b : a;
  for (const auto& [whole, part] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const Atom* atom = sole_atom(*whole);
    if (!atom || atom->kind != kind) continue;
    for (const auto& [one, other] : {std::pair(0, 1), std::pair(1, 0)}) {
      const Dim &beside = atom->operands[static_cast<size_t>(one)], above = beside - *part;
      if (above.is(0) || (smaller ? Dim(0) - above : above).never_negative()) return *whole;
      if ((smaller ? above : Dim(0) - above).never_negative())
        return smaller_or_larger(kind, *part, atom->operands[static_cast<size_t>(other)]);
    }
  }
  const bool known_sign = smaller ? a.never_negative() && b.never_negative() : a.never_negative() || b.never_negative();
  const bool in_order = a.str() <= b.str();
  return opaque(kind, in_order ? a : b, in_order ? b : a, !known_sign);
}

/// The factor of TERM that is of KIND; none where there is not one.
std::optional<size_t> factor_of(const Term& term, Atom::Kind kind) {
  const auto found = std::ranges::find(term.factors, kind, [](const AtomRef& factor) { return factor->kind; });
  return found == term.factors.end() ? std::nullopt : std::optional(static_cast<size_t>(found - term.factors.begin()));
}

/// FACTORS without that at INDEX.
std::vector<AtomRef> others(std::vector<AtomRef> factors, size_t index) {
  factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(index));
  return factors;
}

/// What FIRST, a minimum, and REST, a maximum, are parts of, one behind the other; nullopt if that is nothing.
std::optional<Dim> parted(const AtomRef& first, const AtomRef& rest) {
  if (!rest->operands[0].is(0) && !rest->operands[1].is(0)) return std::nullopt;
  const Dim& left = rest->operands[rest->operands[0].is(0) ? 1 : 0];
  for (const Dim& end : first->operands)
    if (minimum(end, left + end) == Dim::of_atom(first)) return left + end;
  return std::nullopt;
}

}  // namespace

bool cancel_common(Dim& a, Dim& b) {
  if (a.is(0) || b.is(0)) return false;
  int64_t common = 0;
  std::vector<AtomRef> factors = a.terms()[0].factors;
  for (const Dim* dim : {&a, &b}) {
    for (const Term& term : dim->terms()) {
      if (term.coefficient == std::numeric_limits<int64_t>::min()) return false;
      common = std::gcd(common, term.coefficient);
      std::vector<AtomRef> shared;
      std::ranges::set_intersection(factors, term.factors, std::back_inserter(shared), by_name);
      factors = std::move(shared);
    }
  }
  std::erase_if(factors, [](const AtomRef& factor) { return factor->may_be_negative; });
  const Dim divisor = of_term({common, factors});
  if (divisor.is(1)) return false;
  std::optional<Dim> smaller_a = exact_quotient(a, divisor), smaller_b = exact_quotient(b, divisor);
  if (!smaller_a || !smaller_b) return false;
  a = *std::move(smaller_a);
  b = *std::move(smaller_b);
  return true;
}

bool join_parts(std::vector<Term>& terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto first = factor_of(terms[i], Atom::Kind::kMin);
    for (size_t j = 0; first && j < terms.size(); ++j) {
      const auto rest = factor_of(terms[j], Atom::Kind::kMax);
      if (!rest || terms[i].coefficient != terms[j].coefficient) continue;
      const Term times{terms[i].coefficient, others(terms[i].factors, *first)};
      if (compare_factors(times.factors, others(terms[j].factors, *rest)) != 0) continue;
      const auto whole = parted(terms[i].factors[*first], terms[j].factors[*rest]);
      if (!whole) continue;
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      const Dim joined = of_term(times) * *whole;
      terms.insert(terms.end(), joined.terms().begin(), joined.terms().end());
      return true;
    }
  }
  return false;
}

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (a == b) return 1;
  if (a.is_constant() && b.is_constant() && b.value() != -1) {
    return a.value() % b.value() == 0 ? std::optional<Dim>(a.value() / b.value()) : std::nullopt;
  }
  if (a.terms().size() == 1 && b.terms().size() == 1) {
    std::optional<Term> quotient = term_quotient(a.terms()[0], b.terms()[0]);
    return quotient ? std::optional(of_term(*std::move(quotient))) : std::nullopt;
  }
  Dim rest = a, quotient;
  while (!rest.terms().empty()) {
    const std::optional<Term> lead = term_quotient(rest.terms()[0], b.terms()[0]);
    if (!lead) return std::nullopt;
    const Dim step = of_term(*lead);
    const size_t terms_before = quotient.terms().size();
    quotient = quotient + step;
    rest = rest - step * b;
    if (is_unmanageable(rest) || quotient.terms().size() != terms_before + 1) return std::nullopt;
  }
  return quotient;
}

Dim floor_quotient(const Dim& a, const Dim& b) {
  if (b.terms().empty()) return opaque(Atom::Kind::kFloorDiv, a, b, true);
  if (a.is_constant() && b.is_constant()) {
    const bool overflows = a.value() == std::numeric_limits<int64_t>::min() && b.value() == -1;
    return overflows ? unmanageable("/", a, b) : Dim(floor_of(a.value(), b.value()));
  }
  if (std::optional<Dim> exact = exact_quotient(a, b)) return *std::move(exact);
  Dim rest = a, divisor = b;
  Dim whole = take_whole_part(rest, divisor);
  if (rest.terms().empty()) return whole;
  if (rest.is_constant() && divisor.is_constant()) return whole + floor_quotient(rest, divisor);
  if (cancel_common(rest, divisor)) return whole + floor_quotient(rest, divisor);
  if (const std::optional<Dim> nested = nested_quotient(rest, divisor)) return whole + *nested;
  const bool known_sign = rest.never_negative() && divisor.never_negative();
  return whole + opaque(Atom::Kind::kFloorDiv, rest, divisor, !known_sign);
}

Dim minimum(const Dim& a, const Dim& b) { return smaller_or_larger(Atom::Kind::kMin, a, b); }
Dim maximum(const Dim& a, const Dim& b) { return smaller_or_larger(Atom::Kind::kMax, a, b); }

Dim product(std::span<const Dim> dims) {
  if (std::optional<Dim> of_terms = product_of_terms(dims)) return *std::move(of_terms);
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

}  // namespace attn_opt
