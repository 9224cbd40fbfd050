// Symbolic sizes: polynomials with integer coefficients over named symbols.
//
// A Dim is a number, a symbol of the model (a dim_param), an unknown (a symbol of our own), or a sum of
// products of those. What is no polynomial (a floor division that does not come out, a minimum, ...) is an
// opaque atom that keeps its operands, so that equal expressions stay equal and can be evaluated. Equality is
// proven equality: two Dims that do not compare equal may still be equal at run time. Arithmetic that
// overflows 64 bits and expressions that grow out of hand become unknowns.
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
  std::string name;              ///< canonical text; two atoms of one name are the same
  std::vector<Dim> operands;     ///< of kFloorDiv, kMin, kMax: two; of a symbol: the sizes that broadcast to it
  bool unknown = false;          ///< a symbol that the model does not name
  bool may_be_negative = false;  ///< not proven to be at least 0; of a symbol: it is data, not a size
};
/// Atoms are shared and never change.
using AtomRef = std::shared_ptr<const Atom>;

/// A size: a polynomial of atoms with integer coefficients.
class Dim {
 public:
  /// A product: COEFFICIENT times FACTORS, which are sorted by name.
  struct Term {
    int64_t coefficient = 0;
    std::vector<AtomRef> factors;
  };

  Dim() = default;     ///< 0
  Dim(int64_t value);  // NOLINT: sizes are numbers first
  static Dim symbol(const std::string& name);
  /// The expression that DIM_PARAM spells ("past + seq", "2*s", "s//2", "floor(s/2)", "min(a, b)"); else one
  /// symbol of that name. A minus stands between blanks: "seq-len" is a name.
  static Dim parse(const std::string& dim_param);
  /// A new size that equals nothing else; HINT and NUMBER make its name, ?HINT.NUMBER.
  static Dim unknown(const std::string& hint, int number);
  /// A new integer of either sign, ?HINT[NUMBER]: an element of a tensor.
  static Dim unknown_integer(const std::string& hint, int number);
  static Dim of_atom(AtomRef atom);
  /// The sum of TERMS in any order; nullopt where it overflows or becomes too large to handle.
  static std::optional<Dim> sum(std::vector<Term> terms);

  bool is_constant() const { return !terms_; }
  /// The number; only if is_constant().
  int64_t value() const { return number_.coefficient; }
  bool is(int64_t number) const { return is_constant() && value() == number; }
  /// False only if the Dim is a negative number or all its coefficients are negative (a size is never
  /// negative).
  bool may_be_size() const;
  /// Proven to be at least 0, all sizes being so.
  bool never_negative() const;
  /// Made of sizes, or of what is at least 0 whatever the tensors hold: no element of a tensor makes it
  /// negative.
  bool from_sizes() const;
  /// Canonical: equal Dims have equal texts. Sums of higher degree first, then by name, the number last.
  std::string str() const;
  /// Sorted, none with coefficient 0; empty for 0.
  std::span<const Term> terms() const;

  Dim operator+(const Dim& other) const;
  Dim operator-(const Dim& other) const;
  Dim operator*(const Dim& other) const;
  bool operator==(const Dim& other) const;

  /// The atoms in it, operands of opaque atoms included, each once.
  std::vector<AtomRef> atoms() const;
  /// Its value where SIZE_OF gives each symbol's; nullopt if a symbol has none or on overflow.
  std::optional<int64_t> evaluate(const std::function<std::optional<int64_t>(const Atom&)>& size_of) const;

 private:
  Term number_;                                     // most sizes are numbers, which need no allocation
  std::shared_ptr<const std::vector<Term>> terms_;  // shared by copies; null for a number
};

/// a / b if it comes out as a polynomial (b may have several terms), else nullopt.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
/// floor(a / b): exact where it comes out, a number for numbers, else an opaque atom.
Dim floor_quotient(const Dim& a, const Dim& b);
/// The smaller of two, or an opaque atom where that is not proven.
Dim minimum(const Dim& a, const Dim& b);
/// The greater of two, or an opaque atom where that is not proven.
Dim maximum(const Dim& a, const Dim& b);
/// 1 for no DIMS.
Dim product(std::span<const Dim> dims);

}  // namespace attn_opt
