// Functions compiled once more for AVX2 and FMA, chosen when the program starts.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define ATTN_OPT_VECTOR_CLONES [[gnu::target_clones("arch=x86-64-v3", "default")]]
#else
#define ATTN_OPT_VECTOR_CLONES
#endif
