#include "attn_opt/dim.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <unordered_set>

#include "src/match/sizes/dim_internal.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxDegree = 16;
constexpr size_t kMaxText = 1000;

uint64_t hash_of(std::string_view text, uint64_t state) {
  for (const unsigned char c : text) state = (state ^ c) * 0x100000001b3u;
  state ^= state >> 32;
  return state * 0x9e3779b97f4a7c15u;
}

bool is_plain(const std::string& name) {
  return !name.empty() && name.find_first_of(" +-*/(),?\"") == std::string::npos &&
         !std::isdigit(static_cast<unsigned char>(name[0]));
}

AtomRef symbol_atom(std::string name, bool unknown, bool may_be_negative) {
  return std::make_shared<const Atom>(Atom{Atom::Kind::kSymbol, std::move(name), {}, unknown, may_be_negative});
}

std::string text_of(const Dim::Term& term) {
  std::string digits = std::to_string(term.coefficient);
  if (digits[0] == '-') digits.erase(0, 1);
  std::string text = digits == "1" && !term.factors.empty() ? "" : digits;
  for (const AtomRef& factor : term.factors) text += (text.empty() ? "" : "*") + factor->name;
  return text;
}

void collect_atoms(const Dim& dim, std::unordered_set<std::string>& seen, std::vector<AtomRef>& atoms) {
  for (const Dim::Term& term : dim.terms()) {
    for (const AtomRef& factor : term.factors) {
      if (!seen.insert(factor->name).second) continue;
      atoms.push_back(factor);
      for (const Dim& operand : factor->operands) collect_atoms(operand, seen, atoms);
    }
  }
}

/// A number that the term is never below: n * min(x, bound) with negative n is at least n * bound.
std::optional<int64_t> least_value(const Dim::Term& term) {
  if (term.factors.empty()) return term.coefficient;
  const Atom::Kind bounding = term.coefficient < 0 ? Atom::Kind::kMin : Atom::Kind::kMax;
  if (term.factors.size() == 1 && term.factors[0]->kind == bounding) {
    for (const Dim& operand : term.factors[0]->operands) {
      int64_t bound = 0;
      if (!operand.is_constant() || __builtin_mul_overflow(term.coefficient, operand.value(), &bound)) continue;
      return bound;
    }
  }
  const bool positive =
      term.coefficient > 0 && std::ranges::none_of(term.factors, [](const AtomRef& factor) { return factor->may_be_negative; });
  return positive ? std::optional<int64_t>(0) : std::nullopt;
}

constexpr int kMaxFloors = 4;

bool is_never_negative(const Dim& dim, int floors);

/// The floor(x / m) that TERM is a number of times, m being a positive number; null if it is anything else.
const Atom* floor_in(const Dim::Term& term) {
  if (term.factors.size() != 1 || term.factors[0]->kind != Atom::Kind::kFloorDiv) return nullptr;
  const Dim& m = term.factors[0]->operands[1];
  return m.is_constant() && m.value() > 0 ? term.factors[0].get() : nullptr;
}

/// The term of DIM that is a positive multiple of floor(x / k), where FLOOR is floor(x / (k m)); null if there is none.
const Dim::Term* larger_floor(const Atom& floor, const Dim& dim) {
  for (const Dim::Term& term : dim.terms()) {
    const Atom* other = term.coefficient > 0 ? floor_in(term) : nullptr;
    if (other && other->operands[0] == floor.operands[0] && floor.operands[1].value() % other->operands[1].value() == 0)
      return &term;
  }
  return nullptr;
}

/// n * floor(x / m) with a negative n and a positive number m is at least n * x / m, and n * floor(x / (k m)) at least
/// n / m * floor(x / k), so that DIM, m times which then has no such floor, is never negative where the rest is not.
bool is_never_negative_without_floor(const Dim& dim, int floors) {
  for (const Dim::Term& term : dim.terms()) {
    const Atom* atom = term.coefficient < 0 ? floor_in(term) : nullptr;
    if (!atom) continue;
    const Dim rest = dim - Dim::of_atom(term.factors[0]) * term.coefficient;
    if (const Dim::Term* larger = larger_floor(*atom, dim)) {
      const int64_t times = atom->operands[1].value() / floor_in(*larger)->operands[1].value();
      return is_never_negative(rest * times + Dim::of_atom(larger->factors[0]) * term.coefficient, floors - 1);
    }
    return is_never_negative(rest * atom->operands[1] + atom->operands[0] * term.coefficient, floors - 1);
  }
  return false;
}

bool is_never_negative(const Dim& dim, int floors) {
  int64_t total = 0;
  for (const Dim::Term& term : dim.terms()) {
    const std::optional<int64_t> least = least_value(term);
    if (!least || __builtin_add_overflow(total, *least, &total))
      return floors > 0 && is_never_negative_without_floor(dim, floors);
  }
  return total >= 0;
}

using SizeOf = std::function<std::optional<int64_t>(const Atom&)>;

std::optional<int64_t> evaluate_atom(const Atom& atom, const SizeOf& size_of) {
  if (atom.kind == Atom::Kind::kSymbol) return size_of(atom);
  const std::optional<int64_t> a = atom.operands[0].evaluate(size_of), b = atom.operands[1].evaluate(size_of);
  if (!a || !b) return std::nullopt;
  if (atom.kind == Atom::Kind::kMin) return std::min(*a, *b);
  if (atom.kind == Atom::Kind::kMax) return std::max(*a, *b);
  const Dim quotient = floor_quotient(*a, *b);
  return quotient.is_constant() ? std::optional(quotient.value()) : std::nullopt;
}

/// Sorts TERMS, makes one of those with the same factors, and drops those that are 0. False if a coefficient overflows.
bool merge_like(std::vector<Dim::Term>& terms) {
  std::ranges::sort(terms, [](const Dim::Term& a, const Dim::Term& b) { return compare_factors(a.factors, b.factors) < 0; });
  size_t last = 0;
  for (size_t i = 1; i < terms.size(); ++i) {
    Dim::Term& term = terms[i];
    if (compare_factors(terms[last].factors, term.factors) != 0) {
      if (++last != i) terms[last] = std::move(term);
    } else if (__builtin_add_overflow(terms[last].coefficient, term.coefficient, &terms[last].coefficient)) {
      return false;
    }
  }
  terms.resize(last + 1);
  std::erase_if(terms, [](const Dim::Term& term) { return term.coefficient == 0; });
  return true;
}

}  // namespace

int compare_factors(const std::vector<AtomRef>& a, const std::vector<AtomRef>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (const int order = a[i]->name.compare(b[i]->name)) return order;
  }
  return 0;
}

Dim unmanageable(std::string_view operation, const Dim& a, const Dim& b) {
  const std::string text = a.str() + ' ' + std::string(operation) + ' ' + b.str();
  std::array<char, 40> name;
  std::snprintf(name.data(), name.size(), "?#%016llx%016llx",
                static_cast<unsigned long long>(hash_of(text, 0xcbf29ce484222325u)),
                static_cast<unsigned long long>(hash_of(text, 0x84222325cbf29ce4u)));
  return Dim::of_atom(symbol_atom(name.data(), true, true));
}

Dim opaque(Atom::Kind kind, const Dim& a, const Dim& b, bool may_be_negative) {
  const std::string left = a.str(), right = b.str();
  std::string name;
  if (kind == Atom::Kind::kFloorDiv) {
    const auto grouped = [](const Dim& dim, const std::string& text) {
      const bool single = dim.terms().size() == 1 &&
                          (dim.is_constant() || (dim.terms()[0].coefficient == 1 && dim.terms()[0].factors.size() == 1));
      return single ? text : "(" + text + ")";
    };
    name = "floor(" + grouped(a, left) + "/" + grouped(b, right) + ")";
  } else {
    name = (kind == Atom::Kind::kMin ? "min(" : "max(") + left + ", " + right + ")";
  }
  if (name.size() > kMaxText) return unmanageable(name.substr(0, 3), a, b);
  return Dim::of_atom(std::make_shared<const Atom>(Atom{kind, std::move(name), {a, b}, false, may_be_negative}));
}

Dim::Dim(int64_t value) : number_{value, {}} {}

Dim Dim::of_atom(AtomRef atom) {
  Dim dim;
  dim.terms_ = std::make_shared<const std::vector<Term>>(1, Term{1, {std::move(atom)}});
  return dim;
}

Dim Dim::symbol(const std::string& name) {
  return of_atom(symbol_atom(is_plain(name) ? name : '"' + name + '"', false, false));
}

Dim Dim::unknown(const std::string& hint, int number) {
  return of_atom(symbol_atom("?" + hint + "." + std::to_string(number), true, false));
}

Dim Dim::unknown_integer(const std::string& hint, int number) {
  return of_atom(symbol_atom("?" + hint + "[" + std::to_string(number) + "]", true, true));
}

std::optional<Dim> Dim::sum(std::vector<Term> terms) {
  if (terms.size() > 1 && !merge_like(terms)) return std::nullopt;
  if (terms.empty() || terms[0].coefficient == 0) return Dim();
  if (terms.size() == 1 && terms[0].factors.empty()) return Dim(terms[0].coefficient);
  const auto is_too_large = [](const Term& term) { return term.factors.size() > kMaxDegree; };
  if (terms.size() > kMaxTerms || std::ranges::any_of(terms, is_too_large)) return std::nullopt;
  if (terms.size() > 1 && join_parts(terms)) return sum(std::move(terms));
  Dim result;
  result.terms_ = std::make_shared<const std::vector<Term>>(std::move(terms));
  return result;
}

std::span<const Dim::Term> Dim::terms() const {
  if (terms_) return *terms_;
  return {&number_, number_.coefficient == 0 ? size_t{0} : size_t{1}};
}

Dim Dim::operator+(const Dim& other) const {
  if (is(0)) return other;
  if (other.is(0)) return *this;
  std::vector<Term> terms(this->terms().begin(), this->terms().end());
  terms.insert(terms.end(), other.terms().begin(), other.terms().end());
  std::optional<Dim> result = sum(std::move(terms));
  return result ? *std::move(result) : unmanageable("+", *this, other);
}

Dim Dim::operator-(const Dim& other) const {
  if (other.is(0)) return *this;
  std::vector<Term> terms(this->terms().begin(), this->terms().end());
  for (const Term& term : other.terms()) {
    terms.push_back(term);
    if (__builtin_sub_overflow(int64_t{0}, term.coefficient, &terms.back().coefficient)) {
      return unmanageable("-", *this, other);
    }
  }
  std::optional<Dim> result = sum(std::move(terms));
  return result ? *std::move(result) : unmanageable("-", *this, other);
}

Dim Dim::operator*(const Dim& other) const {
  if (is(1)) return other;
  if (other.is(1)) return *this;
  int64_t number = 0;
  if (is_constant() && other.is_constant() && !__builtin_mul_overflow(value(), other.value(), &number)) return number;
  std::vector<Term> terms;
  terms.reserve(this->terms().size() * other.terms().size());
  for (const Term& a : this->terms()) {
    for (const Term& b : other.terms()) {
      Term& term = terms.emplace_back();
      if (__builtin_mul_overflow(a.coefficient, b.coefficient, &term.coefficient)) {
        return unmanageable("*", *this, other);
      }
      term.factors.resize(a.factors.size() + b.factors.size());
      std::ranges::merge(a.factors, b.factors, term.factors.begin(),
                         [](const AtomRef& x, const AtomRef& y) { return x->name < y->name; });
    }
  }
  std::optional<Dim> result = sum(std::move(terms));
  return result ? *std::move(result) : unmanageable("*", *this, other);
}

bool Dim::operator==(const Dim& other) const {
  if (is_constant() || other.is_constant()) {
    return is_constant() && other.is_constant() && value() == other.value();
  }
  return terms_ == other.terms_ ||
         std::equal(terms().begin(), terms().end(), other.terms().begin(), other.terms().end(),
                    [](const Term& a, const Term& b) {
                      return a.coefficient == b.coefficient && compare_factors(a.factors, b.factors) == 0;
                    });
}

bool Dim::may_be_size() const {
  const auto terms = this->terms();
  return terms.empty() || std::ranges::any_of(terms, [](const Term& term) { return term.coefficient > 0; });
}

bool Dim::never_negative() const { return is_never_negative(*this, kMaxFloors); }

bool Dim::from_sizes() const {
  for (const Term& term : this->terms()) {
    for (const AtomRef& factor : term.factors) {
      if (!factor->may_be_negative) continue;
      if (factor->kind == Atom::Kind::kSymbol) return false;
      for (const Dim& operand : factor->operands) {
        if (!operand.from_sizes()) return false;
      }
    }
  }
  return true;
}

std::string Dim::str() const {
  if (is(0)) return "0";
  std::string text;
  for (const Term& term : this->terms()) {
    const bool negative = term.coefficient < 0;
    if (text.empty()) {
      if (negative) text = "-";
    } else {
      text += negative ? " - " : " + ";
    }
    text += text_of(term);
  }
  return text;
}

std::vector<AtomRef> Dim::atoms() const {
  std::vector<AtomRef> atoms;
  if (is_constant()) return atoms;
  std::unordered_set<std::string> seen;
  collect_atoms(*this, seen, atoms);
  return atoms;
}

std::optional<int64_t> Dim::evaluate(const SizeOf& size_of) const {
  int64_t total = 0;
  for (const Term& term : this->terms()) {
    int64_t product = term.coefficient;
    for (const AtomRef& factor : term.factors) {
      const std::optional<int64_t> size = evaluate_atom(*factor, size_of);
      if (!size || __builtin_mul_overflow(product, *size, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(total, product, &total)) return std::nullopt;
  }
  return total;
}

}  // namespace attn_opt
