#include "src/match/positions/position_constants.h"

#include <bit>
#include <cmath>

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

constexpr size_t kMaxChanges = 4;

/// The axis, counted from the last, that alone has more than one element.
std::optional<size_t> only_long_axis(const Dims& dims) {
  std::optional<size_t> found;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[dims.size() - 1 - axis] == 1) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found;
}

/// A matrix' number for each difference of column and row, the smallest difference first; empty if that does not tell it.
template <class T>
std::vector<double> along_diagonals(std::span<const T> data, size_t rows, size_t columns) {
  std::vector<double> diagonals(rows + columns - 1, NAN);
  for (size_t at = 0; at < data.size(); ++at) {
    const double number = static_cast<double>(data[at]);
    double& known = diagonals[at % columns + rows - 1 - at / columns % rows];
    if (std::isnan(known)) known = number;
    if (known != number) return {};
  }
  return diagonals;
}

std::vector<double> along_diagonals(const Tensor& constant) {
  const Dims& dims = constant.dims();
  if (dims.size() < 2 || constant.size() == 0) return {};
  const size_t rows = static_cast<size_t>(dims[dims.size() - 2]), columns = static_cast<size_t>(dims.back());
  if (columns == 1) return {};
  switch (constant.type()) {
    case P::BOOL: return along_diagonals(constant.data<bool>(), rows, columns);
    case P::FLOAT: return along_diagonals(constant.data<float>(), rows, columns);
    case P::DOUBLE: return along_diagonals(constant.data<double>(), rows, columns);
    case P::FLOAT16: return along_diagonals(constant.data<Half>(), rows, columns);
    case P::BFLOAT16: return along_diagonals(constant.data<BFloat16>(), rows, columns);
    case P::UINT8: return along_diagonals(constant.data<uint8_t>(), rows, columns);
    case P::INT32: return along_diagonals(constant.data<int32_t>(), rows, columns);
    case P::INT64: return along_diagonals(constant.data<int64_t>(), rows, columns);
    default: return {};
  }
}

}  // namespace

std::optional<IndexForm> even_steps(const Tensor& constant) {
  const auto axis = only_long_axis(constant.dims());
  const auto numbers = constant.cast(onnx::TensorProto::DOUBLE);
  if (!axis || constant.type() == onnx::TensorProto::BOOL || constant.size() < 2 || !numbers) return std::nullopt;
  const auto data = numbers->data<double>();
  const double step = data[1] - data[0];
  for (size_t at = 0; at < data.size(); ++at)
    if (!is_integral(data[at]) || data[at] != data[0] + step * static_cast<double>(at)) return std::nullopt;
  IndexForm form{{}, static_cast<int64_t>(data[0])};
  form.set_factor(*axis, static_cast<int64_t>(step));
  return form;
}

std::optional<PositionTable> diagonal_steps(const Tensor& constant) {
  const std::vector<double> diagonals = along_diagonals(constant);
  if (diagonals.empty()) return std::nullopt;
  const int64_t first_difference = 1 - constant.dims()[constant.dims().size() - 2];
  const Shape shape(constant.dims().begin(), constant.dims().end());
  PositionTable table;
  std::vector<double> runs{diagonals.front()};
  for (size_t at = 1; at < diagonals.size(); ++at) {
    if (diagonals[at] == diagonals[at - 1]) continue;
    if (runs.size() > kMaxChanges) return std::nullopt;
    runs.push_back(diagonals[at]);
    const IndexForm form{{1, -1}, -(first_difference + static_cast<int64_t>(at))};
    table.conditions.push_back(without_single_axes(form, shape));
  }
  // Conditions further on hold only with those before them: the last that holds tells the number.
  std::vector<double> values(size_t{1} << table.conditions.size(), runs.front());
  for (size_t truths = 1; truths < values.size(); ++truths) values[truths] = runs[static_cast<size_t>(std::bit_width(truths))];
  const auto typed = Tensor::of<double>({static_cast<int64_t>(values.size())}, values).cast(constant.type());
  if (!typed) return std::nullopt;
  table.values = *typed;
  return table;
}

}  // namespace attn_opt
