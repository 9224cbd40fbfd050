// Which columns of a value hold the same numbers, or one the negative of the other: of cos(Concat(f, f)) those of both halves.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "patterns/around/columns.h"

namespace attn_opt {

/// SIGN times a column. Columns with equal SignedColumns hold the same numbers.
struct SignedColumn {
  Column column;
  int sign = 1;
  bool operator==(const SignedColumn&) const = default;
  auto operator<=>(const SignedColumn&) const = default;
};

class ColumnClasses {
 public:
  explicit ColumnClasses(Facts& facts) : facts_(facts) {}

  /// What stands for each column of VALUE on its last AXES axes; empty if their number is not known.
  const std::vector<SignedColumn>& of(Value& value, size_t axes);

 private:
  using Classes = std::vector<SignedColumn>;

  Classes found(Value& value, size_t axes);
  Classes by_producer(Value& value, size_t axes, const Dims& sizes);
  Classes moved(const std::vector<Column>& columns, const Shape& shape, size_t lead);
  Classes joined(Value& value, std::span<Value* const> inputs, size_t axes, const Dims& sizes);

  Facts& facts_;
  int depth_ = 0;
  std::map<std::pair<const Value*, size_t>, Classes> known_;
};

}  // namespace attn_opt
