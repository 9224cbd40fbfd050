// Axes that stand side by side taken for one, as keys of two axes are those of one that is as long as both:
//
//   Reshape(f(Einsum("bhqd,bhxyd->bhqxy", Q, K), m))  =>  f(Einsum("bhqd,bhsd->bhqs", Q, Reshape(K)), Reshape(m))
//
// pushed up to the product, through what acts in places, moves axes, or reduces these.
#pragma once

#include "attn_opt/pattern.h"
#include "patterns/inner_values.h"
#include "patterns/products/product_letters.h"

namespace attn_opt {

/// COUNT axes from FIRST on.
struct AxisRun {
  size_t first = 0, count = 0;
};

/// For each axis of AFTER the axes of BEFORE that it holds; nullopt if it holds others.
std::optional<std::vector<AxisRun>> runs_merged(const Shape& before, const Shape& after);

/// SOURCE with the axes of each of RUNS taken for one, as AFTER has them, the last ones above the product; null if that is not
/// reached. What is made stands above READER.
Value* with_axes_merged(Value& source, const std::vector<AxisRun>& runs, const Shape& after, Node& reader,
                        MatchContext& context);

/// What NODE, which takes the axes of keys or queries for one, makes, with that done above the product; null if it does
/// anything else.
Value* with_last_axes_merged(Node& node, MatchContext& context);

class AxisMerger {
 public:
  /// What is made stands above READER.
  AxisMerger(Node& reader, MatchContext& context) : context_(context), facts_(context.facts), inner_(reader, context) {}

  /// VALUE with the axes of RUN for one, made of what a product, or a Reshape that parts them, has for it; null if none has.
  Value* above(Value& value, AxisRun run) { return above(value, run, kMostSteps); }
  /// The same by a Reshape.
  Value* reshaped(Value& value, AxisRun run);
  /// The same of an operand, of TERM, where the letters of RUN stand for these axes; moved side by side, as TERM then says.
  Value* gathered(Value& operand, std::string& term, const std::string& run);
  /// The product of OPERANDS, of LETTERS without those that are GONE.
  Value* product_of(const std::vector<Value*>& operands, ProductLetters letters, const std::string& gone);
  /// VALUE, of as many elements, in SHAPE; null if that has several sizes that are no numbers.
  Value* in_shape(Value& value, const Shape& shape);

 private:
  static constexpr int kMostSteps = 24;

  Value* above(Value& value, AxisRun run, int steps);
  Value* of_transposed(const Node& node, const std::vector<int64_t>& perm, AxisRun run, int steps);
  /// Of the result of PRODUCT, moved by PERM.
  Value* of_product(const Node& product, AxisRun run, const std::vector<int64_t>& perm = {});
  /// As of_product(), of what NODE, a Transpose by PERM, and those above it move.
  Value* of_moved_product(const Node& node, std::vector<int64_t> perm, AxisRun run);
  /// Of what NODE, a Transpose by PERM, moves: operands of what acts in places are moved, and axes parted before.
  Value* of_moved_elements(const Node& node, const std::vector<int64_t>& perm, AxisRun run, int steps);
  /// OPERAND, of TERM, without the axes of RUN, of SIZES in the product, which repeats it along all of these that it has; null
  /// if it does not.
  Value* without_repeated(Value& operand, std::string& term, const std::string& run, const Shape& sizes);
  Value* of_elements(const Node& node, AxisRun run, int steps);
  Value* of_broadcast(Value& operand, const Shape& whole, AxisRun run, int steps);
  Value* of_reduced(Value& rows, AxisRun run, int steps);

  MatchContext& context_;
  Facts& facts_;
  InnerValues inner_;
};

}  // namespace attn_opt
