// Operators that make tensors from little or no data: Constant, ConstantOfShape, Range, EyeLike, OneHot.
#include <cmath>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/sparse.h"

namespace attn_opt {
namespace {

/// TENSOR, or its error with the node that it concerns.
Expected<Tensor> located(const KernelContext& context, Expected<Tensor> tensor) {
  if (!tensor) tensor.error().where = describe(context.node);
  return tensor;
}

Outputs constant(const KernelContext& context) {
  for (const auto& attribute : context.node.attribute()) {
    const std::string& name = attribute.name();
    const Dims length{attribute.ints_size() + attribute.floats_size() + attribute.strings_size()};
    if (name == "value") {
      return single(located(context, to_tensor(attribute.t(), context.tensors)));
    }
    if (name == "value_int") return single(Tensor::scalar<int64_t>(attribute.i()));
    if (name == "value_float") return single(Tensor::scalar<float>(attribute.f()));
    if (name == "value_string") return single(Tensor::scalar<std::string>(attribute.s()));
    if (name == "value_ints") {
      return single(Tensor::of<int64_t>(length, {attribute.ints().begin(), attribute.ints().end()}));
    }
    if (name == "value_floats") {
      return single(Tensor::of<float>(length, {attribute.floats().begin(), attribute.floats().end()}));
    }
    if (name == "value_strings") {
      return single(Tensor::of<std::string>(length, {attribute.strings().begin(), attribute.strings().end()}));
    }
    if (name == "sparse_value") {
      return single(located(context, to_dense(attribute.sparse_tensor(), context.tensors, context.memory_budget)));
    }
  }
  return context.invalid("no value");
}

/// Every element of OUT = the one element of VALUE, of the same type.
Expected<Tensor> filled(const KernelContext& context, Tensor out, const Tensor& value) {
  return dispatch_cells(context, value.type(), [&]<class T>() -> Expected<Tensor> {
    std::fill_n(mutable_cells<T>(out), out.size(), cells<T>(value)[0]);
    return std::move(out);
  });
}

Outputs constant_of_shape(const KernelContext& context) {
  ATTN_OPT_TRY(Dims dims, context.integers(context.input(0)));
  Tensor value = Tensor::scalar<float>(0);
  if (const auto* attribute = context.attribute("value"); attribute != nullptr) {
    ATTN_OPT_TRY(value, to_tensor(attribute->t(), context.tensors));
    if (value.size() != 1) return context.invalid("value is not of one element");
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(value.type(), std::move(dims)));
  return single(filled(context, std::move(out), value));
}

/// How many elements Range makes; -1 for more than can be counted.
template <class T>
int64_t range_count(T start, T limit, T delta) {
  if constexpr (kIsFloat<T>) {
    const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (!(count > 0)) return 0;
    return count < 0x1p62 ? static_cast<int64_t>(count) : -1;
  } else {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    const auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                    : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const auto step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    const uint64_t count = (distance - 1) / step + 1;
    return count < (uint64_t{1} << 62) ? static_cast<int64_t>(count) : -1;
  }
}

Outputs range(const KernelContext& context) {
  const DataType type = context.input(0).type();
  for (size_t i = 0; i < 3; ++i) {
    ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(i)));
    if (context.input(i).size() != 1) return context.invalid("an input is not a scalar");
  }
  return single(dispatch(context, type, NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T start = context.input(0).data<T>()[0];
    const auto delta = static_cast<Compute<T>>(context.input(2).data<T>()[0]);
    if (delta == Compute<T>{}) return context.invalid("delta is 0");
    const int64_t count = range_count<T>(start, context.input(1).data<T>()[0], context.input(2).data<T>()[0]);
    ATTN_OPT_TRY(Tensor out, context.allocate(type, {count}));
    int64_t i = 0;
    for (T& to : out.mutable_data<T>()) {
      if constexpr (kIsFloat<T>)
        to = round_to<T>(static_cast<Compute<T>>(start) + static_cast<Compute<T>>(i) * delta);
      else
        to = static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      ++i;
    }
    return out;
  }));
}

Outputs eye_like(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.rank() != 2) return context.invalid("input is not a matrix");
  const auto type = static_cast<DataType>(context.attribute_int("dtype", x.type()));
  const int64_t k = context.attribute_int("k", 0);
  ATTN_OPT_TRY(const Tensor one, Tensor::scalar<float>(1).cast(type));
  ATTN_OPT_TRY(Tensor out, context.allocate(type, x.dims()));
  const int64_t rows = x.dims()[0];
  const int64_t columns = x.dims()[1];
  return single(dispatch_cells(context, type, [&]<class T>() -> Expected<Tensor> {
    T* to = mutable_cells<T>(out);
    for (int64_t row = 0; row < rows; ++row) {
      int64_t column = 0;
      if (__builtin_add_overflow(row, k, &column) || column < 0 || column >= columns) continue;
      to[row * columns + column] = cells<T>(one)[0];
    }
    return std::move(out);
  }));
}

Outputs one_hot(const KernelContext& context) {
  const Tensor& given = context.input(0);
  const Tensor& values = context.input(2);
  ATTN_OPT_TRY(const Tensor indices, given.cast(onnx::TensorProto::INT64));
  ATTN_OPT_TRY(const Tensor depths, context.input(1).cast(onnx::TensorProto::INT64));
  if (depths.size() != 1 || values.size() != 2) {
    return context.invalid("depth is not a scalar or values are not two");
  }
  const int64_t depth = depths.data<int64_t>()[0];
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", -1), indices.rank() + 1));
  Dims dims = indices.dims();
  dims.insert(dims.begin() + axis, depth);
  ATTN_OPT_TRY(Tensor out, context.allocate(values.type(), dims));
  const int64_t inner = element_count(std::span(dims).subspan(static_cast<size_t>(axis) + 1));
  return single(dispatch_cells(context, values.type(), [&]<class T>() -> Expected<Tensor> {
    T* to = mutable_cells<T>(out);
    std::fill_n(to, out.size(), cells<T>(values)[0]);
    for (int64_t i = 0; i < indices.size(); ++i) {
      int64_t index = indices.data<int64_t>()[static_cast<size_t>(i)];
      if (index < -depth || index >= depth) continue;
      if (index < 0) index += depth;
      to[(i / inner * depth + index) * inner + i % inner] = cells<T>(values)[1];
    }
    return std::move(out);
  }));
}

}  // namespace

void register_generators(KernelRegistry& registry) {
  registry.add("Constant", 1, 25, constant);
  registry.add("ConstantOfShape", 9, 25, constant_of_shape);
  registry.add("Range", 11, 11, range);
  registry.add("EyeLike", 9, 22, eye_like);
  registry.add("OneHot", 9, 28, one_hot);
}

}  // namespace attn_opt
