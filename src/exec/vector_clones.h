// Functions compiled once more for AVX2 and FMA, or written once more for AVX-512: chosen when the program starts.
#pragma once

/// Of what is to be compiled as the function is that it stands in.
#define ATTN_OPT_INLINE [[gnu::always_inline]] inline

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#if defined(__SANITIZE_THREAD__)  // its calls stand in what chooses the clone, too, and that runs before it is loaded
#define ATTN_OPT_VECTOR_CLONES
#else
#define ATTN_OPT_VECTOR_CLONES [[gnu::target_clones("arch=x86-64-v3", "default")]]
#endif
/// Of a function that is called only where has_wide_vectors().
#define ATTN_OPT_WIDE_VECTORS [[gnu::target("arch=x86-64-v4")]]
#else
#define ATTN_OPT_VECTOR_CLONES
#endif

namespace attn_opt {

/// True if vectors of 64 bytes are computed with as one.
inline bool has_wide_vectors() {
#ifdef ATTN_OPT_WIDE_VECTORS
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace attn_opt
