// What is known of operators by their names, for questions asked of every node many times.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace attn_opt {

/// A T for each of up to kSlots / 2 operators, made when the program is compiled: found without hashing the whole name.
template <class T>
class OperatorMap {
 public:
  using Row = std::pair<std::string_view, T>;

  template <size_t kCount>
  constexpr explicit OperatorMap(const std::array<Row, kCount>& rows) {
    static_assert(2 * kCount <= kSlots);
    for (const Row& row : rows) {
      size_t slot = slot_of(row.first);
      while (!table_[slot].first.empty()) slot = (slot + 1) % kSlots;
      table_[slot] = row;
    }
  }

  /// What is known of OP_TYPE; null if nothing is.
  constexpr const T* find(std::string_view op_type) const {
    if (op_type.size() < kEnd) return nullptr;
    for (size_t slot = slot_of(op_type); !table_[slot].first.empty(); slot = (slot + 1) % kSlots)
      if (table_[slot].first == op_type) return &table_[slot].second;
    return nullptr;
  }

 private:
  static constexpr size_t kSlots = 128;
  static constexpr size_t kEnd = 2;  // letters of a name that are looked at

  /// The length and the last letters tell most operators apart.
  static constexpr size_t slot_of(std::string_view op_type) {
    const size_t last = static_cast<unsigned char>(op_type[op_type.size() - 1]);
    const size_t before = static_cast<unsigned char>(op_type[op_type.size() - 2]);
    return (op_type.size() * 12 + last * 11 + before * 4) % kSlots;
  }

  std::array<Row, kSlots> table_{};
};

}  // namespace attn_opt
