// Symbolic sizes: polynomials with integer coefficients over named symbols.
//
// A Dim is a number, a symbol of the model (a dim_param), an unknown (a symbol of our own), or a sum of products of
// those. What is no polynomial (a floor division that does not come out, a minimum, ...) is an opaque atom that keeps
// its operands, so that equal expressions stay equal and can be evaluated. Equality is proven equality: two Dims that
// do not compare equal may still be equal at run time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace attn_opt {

class Dim;

/// A symbol, or an operation on Dims that is no polynomial.
struct Atom {
  enum class Kind { kSymbol, kFloorDiv, kMin, kMax };
  Kind kind = Kind::kSymbol;
  std::string name;       ///< canonical text; two atoms of one name are the same
  std::vector<Dim> operands;  ///< of kFloorDiv, kMin, kMax: two
  bool unknown = false;   ///< a symbol that the model does not name
};
using AtomRef = std::shared_ptr<const Atom>;

class Dim {
 public:
  Dim() = default;  ///< 0
  Dim(int64_t value);  // NOLINT: sizes are numbers first
  static Dim symbol(const std::string& name);
  /// A new symbol that equals nothing else; HINT and NUMBER make its name, ?HINT.NUMBER.
  static Dim unknown(const std::string& hint, int number);

  bool is_constant() const { return terms_.empty() || (terms_.size() == 1 && terms_[0].factors.empty()); }
  /// The number; only if is_constant().
  int64_t value() const { return terms_.empty() ? 0 : terms_[0].coefficient; }
  bool is(int64_t number) const { return is_constant() && value() == number; }
  /// False only if the Dim is a negative number or all its coefficients are negative (a size is never negative).
  bool may_be_size() const;
  std::string str() const;

  Dim operator+(const Dim& other) const;
  Dim operator-(const Dim& other) const;
  Dim operator*(const Dim& other) const;
  bool operator==(const Dim& other) const;

  /// The atoms in it, operands of opaque atoms included, each once.
  std::vector<AtomRef> atoms() const;
  /// Its value where SIZE_OF gives each symbol's; nullopt if a symbol has none or on overflow.
  std::optional<int64_t> evaluate(const std::function<std::optional<int64_t>(const Atom&)>& size_of) const;

 private:
  friend std::optional<Dim> exact_quotient(const Dim&, const Dim&);
  struct Term {
    int64_t coefficient = 0;
    std::vector<AtomRef> factors;  // sorted by name
  };
  static Dim of_atom(AtomRef atom);
  static Dim normalized(std::vector<Term> terms);
  std::vector<Term> terms_;  // sorted, no zero coefficients
  friend Dim floor_quotient(const Dim&, const Dim&);
  friend Dim minimum(const Dim&, const Dim&);
  friend Dim maximum(const Dim&, const Dim&);
};

/// a / b if it comes out as a polynomial (b may have several terms), else nullopt.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
/// floor(a / b): exact where it comes out, a number for numbers, else an opaque atom.
Dim floor_quotient(const Dim& a, const Dim& b);
Dim minimum(const Dim& a, const Dim& b);
Dim maximum(const Dim& a, const Dim& b);
Dim product(std::span<const Dim> dims);

using Shape = std::vector<Dim>;
/// "(batch, 8, past + seq, 64)".
std::string to_string(const Shape& shape);

}  // namespace attn_opt
