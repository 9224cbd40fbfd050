// Threads that share the loops of kernels.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attn_opt {

class ThreadPool {
 public:
  /// THREADS of them work on a loop, the caller among them; 0: as many as there are processors.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  /// Calls WORK for every number in [0, COUNT), in any order and on any thread, and returns when all are done. What WORK
  /// throws is thrown again, once. A loop within WORK runs on its thread alone.
  void parallel_for(int64_t count, const std::function<void(int64_t)>& work);

 private:
  void help();
  void take_numbers();

  std::vector<std::jthread> helpers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  uint64_t loop_ = 0;  ///< counts loops, so that a helper joins each once
  bool stops_ = false;
  int working_ = 0;

  const std::function<void(int64_t)>* work_ = nullptr;
  std::atomic<int64_t> next_ = 0;
  int64_t count_ = 0;
  std::exception_ptr thrown_;
};

}  // namespace attn_opt
