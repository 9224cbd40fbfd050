#include "src/exec/thread_pool.h"

#include <algorithm>

namespace attn_opt {
namespace {

thread_local bool is_in_loop = false;

int helpers_for(int threads) {
  constexpr int kMostThreads = 256;
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(threads, 1, kMostThreads) - 1;
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int i = helpers_for(threads); i > 0; --i) helpers_.emplace_back([this] { help(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
}

void ThreadPool::take_numbers() {
  is_in_loop = true;
  try {
    for (int64_t i; (i = next_.fetch_add(1)) < count_;) (*work_)(i);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!thrown_) thrown_ = std::current_exception();
    next_ = count_;
  }
  is_in_loop = false;
}

void ThreadPool::help() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stops_ || loop_ != seen; });
    if (stops_) return;
    seen = loop_;
    if (work_ == nullptr) continue;  // woke after the loop was done
    ++working_;
    lock.unlock();
    take_numbers();
    lock.lock();
    if (--working_ == 0) done_.notify_one();
  }
}

void ThreadPool::parallel_for(int64_t count, const std::function<void(int64_t)>& work) {
  if (helpers_.empty() || count < 2 || is_in_loop) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    next_ = 0;
    count_ = count;
    thrown_ = nullptr;
    ++loop_;
  }
  wake_.notify_all();
  take_numbers();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return working_ == 0; });
  work_ = nullptr;
  if (thrown_) std::rethrow_exception(thrown_);
}

}  // namespace attn_opt
