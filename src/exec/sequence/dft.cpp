#include "src/exec/sequence/dft.h"

#include <complex>
#include <numbers>

#include "src/exec/families.h"
#include "src/exec/kernel.h"

namespace attn_opt {
namespace {

using Complex = std::complex<double>;

constexpr int64_t kMostPoints = 1 << 14;
constexpr int64_t kMostProducts = int64_t{1} << 32;

Expected<Transform> read_transform(const KernelContext& context) {
  const Dims& dims = context.input(0).dims();
  if (dims.size() < 2 || (dims.back() != 1 && dims.back() != 2)) {
    return context.invalid("the last axis of " + print_dims(dims) + " is not that of complex numbers");
  }
  Transform transform;
  transform.inverse = context.attribute_int("inverse", 0) != 0;
  transform.onesided = context.attribute_int("onesided", 0) != 0;
  transform.complex = dims.back() == 2;
  int64_t axis = context.attribute_int("axis", 1);
  if (context.version >= 20) {
    ATTN_OPT_TRY(axis, context.integer(2, -2));
  }
  ATTN_OPT_TRY(transform.axis, context.axis(axis, context.input(0).rank()));
  if (transform.axis + 1 == context.input(0).rank()) return context.invalid("axis is that of complex numbers");
  transform.in = dims[static_cast<size_t>(transform.axis)];
  const int64_t given = transform.gives_real() ? 2 * (transform.in - 1) : transform.in;
  ATTN_OPT_TRY(transform.points, context.integer(1, given));
  if (transform.points < 1) return context.invalid("dft_length is not positive");
  if (transform.onesided && transform.inverse != transform.complex) {
    return context.invalid("onesided asks for real input, and for complex input when inverse");
  }
  return transform;
}

/// Puts the other half of a spectrum behind its first one.
void mirror(std::vector<Complex>& spectrum) {
  const size_t n = spectrum.size();
  for (size_t k = n / 2 + 1; k < n; ++k) spectrum[k] = std::conj(spectrum[n - k]);
}

std::vector<Complex> roots_of_unity(const Transform& transform) {
  std::vector<Complex> roots;
  const double turn = (transform.inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(transform.points);
  roots.reserve(transform.points);
  for (int64_t i = 0; i < transform.points; ++i) roots.push_back(std::polar(1.0, turn * static_cast<double>(i)));
  return roots;
}

Complex element(const std::vector<Complex>& line, const std::vector<Complex>& roots, size_t k) {
  Complex sum = 0;
  size_t turn = 0;
  for (const Complex& value : line) {
    sum += value * roots[turn];
    turn = (turn + k) % roots.size();
  }
  return sum;
}

Outputs dft(const KernelContext& context) {
  ATTN_OPT_TRY(const Transform transform, read_transform(context));
  return single(transformed(context, context.input(0), transform));
}

}  // namespace

Expected<Tensor> transformed(const KernelContext& context, const Tensor& x, const Transform& transform) {
  if (transform.points > kMostPoints) return context.unsupported("more than 16384 points");
  Dims dims = x.dims();
  const auto at = static_cast<size_t>(transform.axis);
  const int64_t parts_in = dims.back(), parts_out = transform.gives_real() ? 1 : 2;
  dims[at] = transform.out();
  dims.back() = parts_out;
  const int64_t outer = element_count(std::span(dims).first(at));
  const int64_t inner = element_count(std::span(dims).subspan(at + 1)) / parts_out;
  if (outer * inner > kMostProducts / (transform.points * transform.out())) {
    return context.unsupported("transforms of this size");
  }
  ATTN_OPT_TRY(const Tensor values, x.cast(onnx::TensorProto::DOUBLE));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, std::move(dims)));
  const auto from = values.data<double>();
  const auto to = out.mutable_data<double>();
  const auto roots = roots_of_unity(transform);
  const double factor = transform.inverse ? 1 / static_cast<double>(transform.points) : 1;
  const int64_t read = std::min(transform.in, transform.gives_real() ? transform.points / 2 + 1 : transform.points);
  for (int64_t line = 0; line < outer * inner; ++line) {
    std::vector<Complex> points(static_cast<size_t>(transform.points));
    for (int64_t i = 0; i < read; ++i) {
      const auto source = static_cast<size_t>(((line / inner * transform.in + i) * inner + line % inner) * parts_in);
      points[static_cast<size_t>(i)] = {from[source], transform.complex ? from[source + 1] : 0};
    }
    if (transform.gives_real()) mirror(points);
    for (int64_t k = 0; k < transform.out(); ++k) {
      const Complex result = element(points, roots, static_cast<size_t>(k)) * factor;
      const auto target = static_cast<size_t>(((line / inner * transform.out() + k) * inner + line % inner) * parts_out);
      to[target] = result.real();
      if (parts_out == 2) to[target + 1] = result.imag();
    }
  }
  return out.cast(x.type());
}

void register_dft(KernelRegistry& registry) { registry.add("DFT", 17, 20, dft); }

}  // namespace attn_opt
