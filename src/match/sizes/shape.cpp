#include "attn_opt/shape.h"

#include <cstdio>
#include <cstdlib>

namespace attn_opt {
namespace {

/// A fuzzer is to find what a run survives.
[[noreturn]] void stop(const std::string& what) {
#ifdef ATTN_OPT_ABORT_ON_DEFECT
  std::fprintf(stderr, "defect: %s\n", what.c_str());
  std::abort();
#else
  throw Defect(what);
#endif
}

}  // namespace

void DimList::lacks(size_t i) const {
  stop("element " + std::to_string(static_cast<int64_t>(i)) + " of a list of " + std::to_string(size()) + " sizes was read");
}

void MaybeShape::lacks() { stop("a shape that is not known was read"); }

Dim from_last(const Shape& shape, size_t axis) { return axis < shape.size() ? shape[shape.size() - 1 - axis] : Dim(1); }

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (const Dim& dim : shape) text += (text.size() > 1 ? ", " : "") + dim.str();
  return text + ")";
}

}  // namespace attn_opt
