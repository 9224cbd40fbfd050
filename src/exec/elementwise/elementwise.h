// Kernels of one input that compute each element by itself.
#pragma once

#include "src/exec/dispatch.h"
#include "src/exec/kernel.h"

namespace attn_opt {

/// f applied to every element of input 0, whose type is one of TYPES; f gets and returns the arithmetic type.
template <class Types, class F>
Outputs map_elements(const KernelContext& context, F&& f) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(Tensor out, context.allocate_unset(x.type(), x.dims()));
  return single(dispatch(context, x.type(), Types{}, [&]<class T>() -> Expected<Tensor> {
    const auto in = x.data<T>();
    const auto to = out.mutable_data<T>();
    for (size_t i = 0; i < in.size(); ++i) to[i] = round_to<T>(f(static_cast<Compute<T>>(in[i])));
    return std::move(out);
  }));
}

}  // namespace attn_opt
