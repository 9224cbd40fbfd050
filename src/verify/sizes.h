// Small numbers for the symbols of a site's shapes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/verify/site_cut.h"

namespace attn_opt {

/// What symbols stand for by the assumptions that the facts have made: equal sizes get one number.
class SizeEquations {
 public:
  explicit SizeEquations(Facts& facts) : facts_(&facts) {}
  Facts& facts() const { return *facts_; }
  /// ONE and OTHER are equal too.
  void add(const Dim& one, const Dim& other);
  /// What SYMBOL is taken to equal; null if nothing.
  const Dim* meaning(const std::string& symbol);

 private:
  void read_assumptions();
  void define(const Dim& symbol, const Dim& meaning);
  void define_product(const Dim& product, const Dim& meaning);
  bool leads_to(const Dim& start, const std::string& symbol) const;
  Facts* facts_;
  size_t read_ = 0;
  std::unordered_map<std::string, Dim> meanings_;
};

/// Smaller numbers for large constant extents.
struct Shrinking {
  std::map<int64_t, int64_t> numbers;
  std::map<int64_t, int64_t> factors = {};  ///< by extent that is a product of two, the lesser
  bool renumbers = false;                   ///< constants are cut to them, and lists of sizes have them
  int64_t block = 0;                        ///< an extent that others are multiples of, by and large; 0 if there is none
  int64_t block_number = 0;
  /// That of EXTENT, EXTENT itself if it stays: with a block, as many of its number, and as much more or less, as of the block.
  int64_t number_of(int64_t extent) const;
  /// SIZE with those of its numbers; only with a block, since others are no part of an expression.
  Dim in_blocks(const Dim& size) const;
};

/// One choice of numbers.
class SizeAssignment {
 public:
  SizeAssignment(SizeEquations& equations, Shrinking shrinking) : equations_(&equations), shrinking_(std::move(shrinking)) {}

  void set(const std::string& symbol, int64_t number) { numbers_[symbol] = number; }
  /// SYMBOL is FACTOR times the number that it has.
  void multiply(const std::string& symbol, int64_t factor) {
    if (const auto found = numbers_.find(symbol); found != numbers_.end()) found->second *= factor;
  }
  /// SYMBOL is NUMBER, whatever it is assumed to equal.
  void set_apart(const std::string& symbol, int64_t number) { apart_[symbol] = number; }
  /// Does it break what is assumed of sizes? A model that runs all the same must run after the rewrite.
  bool breaks_assumptions() const { return !apart_.empty(); }
  /// nullopt if a symbol has no number.
  std::optional<int64_t> of(const Dim& dim) const;
  std::optional<Dims> of(const Shape& shape) const;
  /// "batch=3 seq=5" for messages.
  std::string str() const;
  /// Are constants others than in the model?
  bool renumbers() const { return shrinking_.renumbers; }
  /// What CONSTANT is then: a list of sizes has their numbers, another tensor is cut to them.
  Tensor renumbered(const Tensor& constant) const;
  bool is_fallback() const { return is_fallback_; }
  void make_fallback() { is_fallback_ = true; }

 private:
  std::optional<int64_t> number_of(const Atom& atom, int depth) const;
  std::optional<int64_t> evaluated(const Dim& size, int depth) const;
  SizeEquations* equations_;
  Shrinking shrinking_;
  std::map<std::string, int64_t> numbers_, apart_;
  bool is_fallback_ = false;  ///< to be tried where too few others run
};

/// The assignments to try, the most general first. Without symbols there is one, or two if extents can be shrunk. Those that
/// change constants stand for themselves: they are to be tried before all others.
std::vector<SizeAssignment> size_assignments(const CutSite& site, const Sdpa& sdpa, SizeEquations& equations);

/// Sizes as in FIRST, but for names of SITE's shapes that are assumed to be equal: each in turn is 1, and each is alone what
/// the others are not. One that is assumed to be an expression is 1 where that is not, or the other way round. One that is
/// assumed to be a number is 1, and where nothing may be assumed of sizes each name is.
std::vector<SizeAssignment> sizes_apart(const CutSite& site, SizeEquations& equations, const SizeAssignment& first);

/// Names of the symbols in SIZES, the last first, and in what they are taken to equal; without those that equal something.
std::vector<std::string> free_symbols(std::vector<Dim> sizes, SizeEquations& equations);

/// Names of the free symbols in SITE's shapes, in the order in which they occur.
std::vector<std::string> symbols_of(const CutSite& site, SizeEquations& equations);

}  // namespace attn_opt
