// Numpy broadcasting.
#pragma once

#include <array>
#include <initializer_list>

#include "src/exec/kernel.h"
#include "src/exec/layout/strided.h"

namespace attn_opt {

/// The shape that A and B broadcast to.
Expected<Dims> broadcast_dims(const KernelContext& context, const Dims& a, const Dims& b);
/// Strides of a contiguous tensor of shape FROM read as shape TO, which FROM broadcasts to.
Dims broadcast_strides(const Dims& from, const Dims& to);
/// TENSOR copied to shape TO, which it broadcasts to.
Expected<Tensor> expand(const KernelContext& context, const Tensor& tensor, const Dims& to);
/// Input 1 as Add, And, ... before opset 7 take it: reshaped so that its axes stand at attribute axis of
/// input 0.
Expected<Tensor> legacy_second_operand(const KernelContext& context);

/// out = f(a, b), element by element.
template <class A, class B, class Out, class F>
void broadcast_apply(const Tensor& a, const Tensor& b, Tensor& out, F&& f) {
  const StridedLoop<2> loop(out.dims(), {broadcast_strides(a.dims(), out.dims()), broadcast_strides(b.dims(), out.dims())});
  const A* a_data = a.data<A>().data();
  const B* b_data = b.data<B>().data();
  Out* to = out.mutable_data<Out>().data();
  loop.rows([&](const std::array<int64_t, 2>& at, int64_t count, const std::array<int64_t, 2>& step) {
    const A* x = a_data + at[0];
    const B* y = b_data + at[1];
    if (step[0] == 1 && step[1] == 1) {
      for (int64_t i = 0; i < count; ++i) to[i] = f(x[i], y[i]);
    } else if (step[0] == 1 && step[1] == 0) {
      for (int64_t i = 0; i < count; ++i) to[i] = f(x[i], *y);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = f(x[i * step[0]], y[i * step[1]]);
    }
    to += count;
  });
}

}  // namespace attn_opt
