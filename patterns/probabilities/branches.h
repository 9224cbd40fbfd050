// The ways from probabilities to the products with V that read them, as they are or each behind steps of its own.
//
//   softmax ─┬─ Mul(mask) ─── product with V
//            └─ Where(IsNaN) ─ product with W
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

/// A reader of probabilities, and the product that it is or that is made of what it makes.
struct Way {
  Reader first, product;
};

/// Ways to several products.
struct Branches {
  std::vector<Way> ways;     ///< empty if there are not several, or none is behind what is asked for
  bool others_read = false;  ///< some lead to none of these products
};

/// True for copies and moves, which leave probabilities as they are.
bool is_on_the_way(const Node& node);

class WayReader {
 public:
  /// From VALUE, probabilities whose KEYS lie so far from the last axis, HAVING them there since the softmax.
  WayReader(Value& value, std::optional<size_t> keys, bool having, MatchContext& context)
      : value_(value), keys_(keys), has_kept_axes_(having), context_(context), facts_(context.facts) {}

  /// The product that FIRST is; of several READERS also the one that a chain of swaps from FIRST on ends at.
  std::optional<Reader> product_at_end(const Reader& first, const Readers& readers) const;
  /// Leaves those of WAYS whose products sum over the keys, first to last, or one if there are none.
  void keep_readable(std::vector<Way>& ways) const;
  /// Of which one is behind steps, or BY_MOVES behind moves that are no chain of swaps.
  Branches branches(const Readers& readers, bool by_moves) const;
  /// True if one of CANDIDATES is alone, or a product is behind that one alone: it is left.
  bool keep_leading(std::vector<Reader>& candidates) const;
  /// Leaves those of READERS behind which PRODUCT is.
  void keep_branch(Readers& readers, const Node& product) const;

 private:
  std::optional<size_t> keys_in(Value& made) const;
  Readers summed_readers_of(Value& made) const;
  std::optional<Reader> product_behind(const Reader& first) const;
  bool sums_over_keys(const Way& way) const;

  Value& value_;
  std::optional<size_t> keys_;
  bool has_kept_axes_;
  MatchContext& context_;
  Facts& facts_;
};

}  // namespace attn_opt
