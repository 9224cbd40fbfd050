// Names looked up by their hash in one flat array: a model has more names than caches hold, and each lookup costs the
// cache lines that it touches.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace attn_opt {

/// Never 0. In the line, eight bytes at a time: every name of a model is hashed when it is read, checked and written, and a
/// call to std::hash costs as much as all else that a lookup does.
inline size_t name_hash(std::string_view name) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
  const auto mixed = [](uint64_t word) {
    const auto product = static_cast<unsigned __int128>(word) * kOdd;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  const auto word_at = [&name](size_t begin, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, name.data() + begin, size);
    return word;
  };
  uint64_t hash = mixed(name.size() + 1);
  for (size_t begin = 0; begin + 8 < name.size(); begin += 8) hash = mixed(hash ^ word_at(begin, 8));
  // The last eight, some of them a second time, or all there are.
  hash = mixed(hash ^ (name.size() >= 8 ? word_at(name.size() - 8, 8) : word_at(0, name.size())));
  return hash | ~(~size_t{0} >> 1);
}

/// Of what stands for itself, and has no name.
inline size_t pointer_hash(const void* pointer) { return name_hash({reinterpret_cast<const char*>(&pointer), sizeof pointer}); }

/// Entries are added, never taken out.
template <class Entry>
class NameTable {
 public:
  /// Makes room for COUNT entries: none that is there moves when they are added.
  void reserve(size_t count) {
    if (2 * count > slots_.size()) resize(std::bit_ceil(std::max(2 * count, kSmallest)));
  }

  /// The first entry under HASH for which IS_IT; null if there is none.
  template <class Predicate>
  const Entry* find(size_t hash, Predicate is_it) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(hash, is_it)];
    return slot.hash ? &slot.entry : nullptr;
  }

  /// False, and nothing is added, if there is an entry under HASH for which IS_IT.
  template <class Predicate>
  bool insert(size_t hash, Entry entry, Predicate is_it) {
    const size_t before = size_;
    find_or_insert(hash, std::move(entry), is_it);
    return size_ != before;
  }

  /// The first entry under HASH for which IS_IT, which is ENTRY, added, if there was none. Others that are added may move it.
  template <class Predicate>
  Entry& find_or_insert(size_t hash, Entry entry, Predicate is_it) {
    if (2 * size_ == slots_.size()) resize(std::max(2 * slots_.size(), kSmallest));
    Slot& slot = slots_[place_of(hash, is_it)];
    if (slot.hash) return slot.entry;
    slot = {hash, std::move(entry)};
    ++size_;
    return slot.entry;
  }

 private:
  static constexpr size_t kSmallest = 16;

  struct Slot {
    size_t hash = 0;  ///< 0: free
    [[no_unique_address]] Entry entry{};
  };

  /// Where it is, or else the free slot where it would be.
  template <class Predicate>
  size_t place_of(size_t hash, Predicate is_it) const {
    const size_t mask = slots_.size() - 1;
    size_t place = hash & mask;
    while (slots_[place].hash && !(slots_[place].hash == hash && is_it(slots_[place].entry))) place = (place + 1) & mask;
    return place;
  }

  void resize(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.hash) slots_[place_of(slot.hash, [](const Entry&) { return false; })] = std::move(slot);
  }

  std::vector<Slot> slots_;  ///< a power of two, at most half of them taken
  size_t size_ = 0;
};

}  // namespace attn_opt
