// Sizes at run time: how to compute the number that a Dim stands for from the values that a site has at hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/facts.h"

namespace attn_opt {

/// Those of SIZES that may be 0 in a run, each once, with commas between.
std::string sizes_that_may_be_0(const Shape& sizes);

class SizeSource {
 public:
  /// Knows the inputs of the builder's graph and of those around it.
  SizeSource(GraphBuilder& build, Facts& facts);

  /// VALUE, of SHAPE, may be asked for its sizes too. Graph inputs come first: what is read from them is the
  /// same for all sites, and shared.
  void add(Value& value, const Shape& shape) { local_.push_back({&value, shape}); }

  bool knows(const Dim& size) const { return find(size).has_value(); }
  /// int64 [n] of DIMS; numbers are written as they are (also the 0 and -1 of Reshape). Null if a size is not
  /// known.
  Value* sizes(const Shape& dims);

 private:
  struct Known {
    Value* value;
    Shape shape;
  };
  struct Expression {
    enum class Kind { kNumber, kAxis, kAdd, kMul, kDiv, kMin, kMax, kBroadcast };
    Kind kind = Kind::kNumber;
    int64_t number = 0;      ///< of kNumber; of kAxis: which axis
    Value* value = nullptr;  ///< of kAxis
    std::vector<Expression> operands;
  };
  using Found = std::optional<Expression>;

  static std::optional<Expression::Kind> kind_of(const Atom& atom);
  Found find(const Dim& size) const;
  Found axis_of(const Dim& size, bool with_local) const;
  Found composed(const Dim& size, bool with_local, int depth) const;
  std::vector<Expression> axes_within(std::vector<Dim>& parts) const;
  Found of_atom(const AtomRef& atom, bool with_local, int depth) const;
  Found part_of_axis(const Dim& size) const;
  static const char* operator_of(Expression::Kind kind);
  Value* write_broadcast(Value* one, Value* other);
  Value* write(const Expression& expression);

  GraphBuilder& build_;
  std::vector<Known> inputs_, local_;
};

}  // namespace attn_opt
