// Why a pattern did not match.
//
// A condition that fails returns a Miss: a stable id ("softmax.axis"), the node it looked at, and what it found there.
// Tests and docs/misses.md refer to ids; the detail is for people. Of several ways tried, the miss that got furthest is
// the one worth showing.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

/// A condition that kept a pattern from matching.
struct Miss {
  std::string id;
  const Node* node = nullptr;       ///< where; null: at a graph input or initializer
  std::string found;                ///< what was there
  std::vector<std::string> peeled;  ///< what had been recognised by then, from the anchor on
};

/// A T, or why there is none.
template <class T>
using Matched = tl::expected<T, Miss>;

/// A Miss, to be returned as a Matched of any type.
inline tl::unexpected<Miss> missed(std::string id, const Node* node, std::string found, std::vector<std::string> peeled = {}) {
  return tl::unexpected<Miss>(Miss{std::move(id), node, std::move(found), std::move(peeled)});
}

/// The one of two misses that had recognised more; ONE if they are even.
inline Miss deeper(Miss one, Miss other) { return other.peeled.size() > one.peeled.size() ? std::move(other) : std::move(one); }

}  // namespace attn_opt

/// ATTN_OPT_MATCH(auto x, expression): x is what matched, or the enclosing function returns the miss.
#define ATTN_OPT_MATCH(declaration, expression) \
  ATTN_OPT_MATCH_IMPL(ATTN_OPT_MATCH_CONCAT(attn_opt_match_, __LINE__), declaration, expression)
#define ATTN_OPT_MATCH_CONCAT_INNER(a, b) a##b
#define ATTN_OPT_MATCH_CONCAT(a, b) ATTN_OPT_MATCH_CONCAT_INNER(a, b)
#define ATTN_OPT_MATCH_IMPL(temporary, declaration, expression)                          \
  auto temporary = (expression);                                                         \
  if (!temporary) return tl::unexpected<::attn_opt::Miss>(std::move(temporary.error())); \
  declaration = *std::move(temporary)

/// Returns the miss of a Matched<void> expression from the enclosing function.
#define ATTN_OPT_DONE(expression)                        \
  if (auto attn_opt_done = (expression); !attn_opt_done) \
  return tl::unexpected<::attn_opt::Miss>(std::move(attn_opt_done.error()))
