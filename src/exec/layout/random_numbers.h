// Random numbers that are the same everywhere: what standard libraries make of a seed differs between them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace attn_opt {

/// FNV-1a.
inline uint64_t hash_bytes(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

inline uint64_t hash_number(uint64_t number, uint64_t hash = 0xcbf29ce484222325u) {
  return hash_bytes({reinterpret_cast<const char*>(&number), sizeof number}, hash);
}

class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : state_(seed) {}

  /// splitmix64.
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// Box-Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// Four uniform numbers added up, of mean 0 and variance 1: like normal() within 3.4, and many times cheaper.
  double bell() {
    constexpr int kParts = 4, kBits = 16;
    constexpr double kSteps = 1 << kBits, kMean = kParts * (kSteps - 1) / 2;
    const uint64_t parts = bits();
    uint64_t sum = 0;
    for (int part = 0; part < kParts; ++part) sum += parts >> (part * kBits) & ((1u << kBits) - 1);
    return (static_cast<double>(sum) - kMean) * std::sqrt(12.0 / kParts) / kSteps;
  }
  /// In [0, COUNT).
  int64_t below(int64_t count) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(count)); }

 private:
  uint64_t state_;
};

}  // namespace attn_opt
