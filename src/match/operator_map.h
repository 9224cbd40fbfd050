// What is known of operators by their names, for questions asked of every node many times.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "attn_opt/graph.h"
#include "src/graph/operator_number.h"

namespace attn_opt {

/// Of OP_TYPE, which is among kOperatorNames: no constant is made otherwise.
constexpr OperatorNumber number_of(std::string_view op_type) {
  const OperatorNumber number = kOperatorNumbers.of(op_type);
  if (number == 0) throw "an operator without a number";
  return number;
}

/// A T for each of some operators of ONNX's own domain, made when the program is compiled.
template <class T>
class OperatorMap {
 public:
  using Row = std::pair<std::string_view, T>;

  /// Does not compile with a name that kOperatorNames lacks.
  template <size_t kCount>
  constexpr explicit OperatorMap(const std::array<Row, kCount>& rows) {
    for (const Row& row : rows) {
      const OperatorNumber number = number_of(row.first);
      known_[number] = true;
      values_[number] = row.second;
    }
  }

  /// What is known of NODE's operator; null if nothing is.
  constexpr const T* find(const Node& node) const { return known_[node.number] ? &values_[node.number] : nullptr; }
  constexpr const T* find(std::string_view op_type) const {
    const OperatorNumber number = kOperatorNumbers.of(op_type);
    return known_[number] ? &values_[number] : nullptr;
  }

 private:
  std::array<bool, kOperatorNames.size() + 1> known_{};
  std::array<T, kOperatorNames.size() + 1> values_{};
};

/// Some operators of ONNX's own domain.
class OperatorSet {
 public:
  /// Does not compile with a name that kOperatorNames lacks.
  constexpr OperatorSet(std::initializer_list<std::string_view> op_types) {
    for (const std::string_view op_type : op_types) has_[number_of(op_type)] = true;
  }

  constexpr bool has(const Node& node) const { return has_[node.number]; }

 private:
  std::array<bool, kOperatorNames.size() + 1> has_{};
};

}  // namespace attn_opt
