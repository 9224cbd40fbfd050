// Memory for vectors: aligned to a cache line and not set to anything.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace attn_opt {

template <class C>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t count)
      : data_(static_cast<C*>(::operator new(static_cast<size_t>(count) * sizeof(C), kAlignment))), count_(count) {}

  C* data() const { return data_.get(); }

  /// Memory for COUNT elements: what there is if it is enough, else other.
  C* reserve(int64_t count) {
    if (count > count_) *this = AlignedBuffer(count);
    return data();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(C* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<C, Free> data_;
  int64_t count_ = 0;
};

}  // namespace attn_opt
