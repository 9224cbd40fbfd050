// How much a generator makes: what ctest runs, or what an environment variable asks for.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace attn_opt {

struct Extent {
  unsigned long long seed = 1;
  int count = 0;
  bool prints_all = false;
};

/// COUNT at seed 1, unless VARIABLE holds SEED,COUNT.
inline Extent extent_of(const char* variable, int count) {
  Extent asked{1, count, false};
  if (const char* given = std::getenv(variable))
    asked.prints_all = std::sscanf(given, "%llu,%d", &asked.seed, &asked.count) > 0;
  return asked;
}

}  // namespace attn_opt
