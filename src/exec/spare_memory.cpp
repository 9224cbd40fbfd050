#include "src/exec/spare_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace attn_opt {
namespace {

constexpr size_t kLeastKept = size_t{1} << 16, kMostKept = size_t{1} << 26;  ///< bytes: of a block, of all

struct Block {
  std::byte* data;
  size_t size;
};

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif
#else
constexpr bool kKeeps = true;
#endif

bool is_kept(size_t bytes) { return kKeeps && bytes >= kLeastKept && bytes <= kMostKept; }

/// Blocks that no tensor has, the oldest first.
class Spares {
 public:
  /// One of at least BYTES and not much more; null if there is none.
  Block take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(blocks_.rbegin(), blocks_.rend(), [bytes](const Block& block) {
      return block.size >= bytes && block.size - bytes <= bytes / 4;
    });
    if (found == blocks_.rend()) return {nullptr, bytes};
    const Block block = *found;
    blocks_.erase(std::next(found).base());
    kept_ -= block.size;
    return block;
  }

  void give(Block block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
    kept_ += block.size;
    free_down_to(users_ > 0 ? kMostKept : 0);
  }

  bool has_users() {
    const std::lock_guard lock(mutex_);
    return users_ > 0;
  }

  void count_user(int more) {
    const std::lock_guard lock(mutex_);
    users_ += more;
    if (users_ == 0) free_down_to(0);
  }

 private:
  void free_down_to(size_t most) {
    auto block = blocks_.begin();
    for (; kept_ > most; ++block) {
      std::free(block->data);
      kept_ -= block->size;
    }
    blocks_.erase(blocks_.begin(), block);
  }

  std::mutex mutex_;
  std::vector<Block> blocks_;
  size_t kept_ = 0;
  int users_ = 0;
};

/// Never destroyed: tensors may live until the program ends.
Spares& spares() {
  static auto* const all = new Spares;
  return *all;
}

std::shared_ptr<std::byte[]> freed_later(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [](std::byte* data) { std::free(data); }};
}

std::shared_ptr<std::byte[]> kept_later(size_t bytes) {
  constexpr size_t kLine = 64;
  Block block = spares().take(bytes);
  if (block.data == nullptr) {
    block.size = (bytes + kLine - 1) / kLine * kLine;
    block.data = static_cast<std::byte*>(std::aligned_alloc(kLine, block.size));
  }
  if (block.data == nullptr) throw std::bad_alloc();
  return {block.data, [size = block.size](std::byte* data) { spares().give({data, size}); }};
}

}  // namespace

SpareMemory::SpareMemory() { spares().count_user(1); }
SpareMemory::~SpareMemory() { spares().count_user(-1); }

bool SpareMemory::keeps() { return kKeeps; }

std::shared_ptr<std::byte[]> SpareMemory::take(size_t bytes) {
  return is_kept(bytes) ? kept_later(bytes) : freed_later(std::malloc(bytes));
}

std::shared_ptr<std::byte[]> SpareMemory::take_zeroed(size_t bytes) {
  // What comes from the system anyway is zero already.
  if (!is_kept(bytes) || !spares().has_users()) return freed_later(std::calloc(bytes, 1));
  auto memory = kept_later(bytes);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

}  // namespace attn_opt
