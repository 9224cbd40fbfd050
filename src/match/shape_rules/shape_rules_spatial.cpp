// Convolutions, pooling and resizing: tensors (N, C, D1, D2, ...).
#include <algorithm>
#include <cmath>

#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

struct Window {
  std::vector<Dim> kernel;
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad;
};

std::vector<int64_t> ints_or(const Node& node, std::string_view name, size_t count, int64_t otherwise) {
  const auto* ints = node.ints_attribute(name);
  if (!ints) return std::vector<int64_t>(count, otherwise);
  return std::vector<int64_t>(ints->begin(), ints->end());
}

std::optional<Window> window_of(const RuleContext& context, size_t spatial, MaybeShape weights) {
  const Node& node = context.node();
  Window window;
  if (const auto* kernel = node.ints_attribute("kernel_shape")) {
    window.kernel.assign(kernel->begin(), kernel->end());
  } else if (weights && weights->size() == spatial + 2) {
    window.kernel.assign(weights->begin() + 2, weights->end());
  }
  window.strides = ints_or(node, "strides", spatial, 1);
  window.dilations = ints_or(node, "dilations", spatial, 1);
  window.pads = ints_or(node, "pads", 2 * spatial, 0);
  window.auto_pad = node.string_attribute("auto_pad", "NOTSET");
  const bool valid = window.kernel.size() == spatial && window.strides.size() == spatial &&
                     window.dilations.size() == spatial && window.pads.size() == 2 * spatial;
  if (!valid || std::ranges::any_of(window.strides, [](int64_t s) { return s < 1; })) {
    return std::nullopt;
  }
  return window;
}

/// Where the window may begin along spatial axis I of size DIM, less the first place: negative where it does not fit.
Dim room_of(const Window& window, size_t i, const Dim& dim) {
  const Dim reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
  const Dim room = dim - reach;
  return window.auto_pad == "VALID" ? room : room + window.pads[i] + window.pads[i + window.strides.size()];
}

bool pads_to_same(const Window& window) { return window.auto_pad.starts_with("SAME"); }

/// Positions of the window along spatial axis I of size DIM. Where it does not fit there are none, or the node fails.
Dim positions(const Window& window, size_t i, const Dim& dim) {
  const int64_t stride = window.strides[i];
  return pads_to_same(window) ? floor_quotient(dim + (stride - 1), stride)
                              : floor_quotient(room_of(window, i, dim), stride) + 1;
}

/// Whether no window begins in the padding behind axis I, however far it is rounded up: runtimes differ in whether they drop
/// such a one.
bool begins_inside(const Window& window, size_t i) {
  const int64_t behind = window.auto_pad == "VALID" ? 0 : window.pads[i + window.strides.size()];
  const Dim& kernel = window.kernel[i];
  return kernel.is_constant() && behind + window.strides[i] <= (kernel.value() - 1) * window.dilations[i] + 1;
}

/// As positions(), where a window that reaches beyond the end counts, too.
Dim positions_rounded_up(const Window& window, size_t i, const Dim& dim) {
  const int64_t stride = window.strides[i];
  return floor_quotient(room_of(window, i, dim) + (stride - 1), stride) + 1;
}

/// Runtimes refuse to convolve or to pool an axis of no rows.
void require_rows(RuleContext& context, const Shape& shape) {
  for (size_t axis = 2; axis < shape.size(); ++axis) context.require_positive(shape[axis]);
}

void conv(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const MaybeShape weights = context.shape(1);
  if (!shape || shape->size() < 3) return;
  const size_t spatial = shape->size() - 2;
  Shape result = context.fresh_shape(0, shape->size());
  result[0] = (*shape)[0];
  if (weights && !weights->empty()) result[1] = (*weights)[0];
  require_rows(context, *shape);
  if (const std::optional<Window> window = window_of(context, spatial, weights)) {
    for (size_t i = 0; i < spatial; ++i) {
      result[i + 2] = positions(*window, i, (*shape)[i + 2]);
      // A kernel that reaches beyond the padded axis is refused too.
      context.require_positive(result[i + 2]);
      if (!pads_to_same(*window)) context.require_positive(room_of(*window, i, (*shape)[i + 2]) + 1);
    }
  }
  context.set_shape(0, std::move(result));
}

void conv_transpose(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const MaybeShape weights = context.shape(1);
  if (!shape || shape->size() < 3) return;
  const Node& node = context.node();
  const size_t spatial = shape->size() - 2;
  Shape result = context.fresh_shape(0, shape->size());
  result[0] = (*shape)[0];
  if (weights && weights->size() > 1) result[1] = (*weights)[1] * node.int_attribute("group", 1);
  const std::optional<Window> window = window_of(context, spatial, weights);
  const std::vector<int64_t> output_shape = ints_or(node, "output_shape", 0, 0);
  const std::vector<int64_t> output_padding = ints_or(node, "output_padding", spatial, 0);
  for (size_t i = 0; i < spatial && window && output_padding.size() == spatial; ++i) {
    Dim& size = result[i + 2];
    if (output_shape.size() == spatial) {
      size = output_shape[i];
    } else if (window->auto_pad.starts_with("SAME")) {
      size = (*shape)[i + 2] * window->strides[i];
    } else {
      size =
          ((*shape)[i + 2] - 1) * window->strides[i] + output_padding[i] + (window->kernel[i] - 1) * window->dilations[i] + 1;
      if (window->auto_pad != "VALID") size = size - window->pads[i] - window->pads[i + spatial];
      size = context.not_negative(size);
    }
  }
  context.set_shape(0, std::move(result));
}

void pool(RuleContext& context) {
  context.set_type(1, onnx::TensorProto::INT64);
  const MaybeShape shape = context.shape(0);
  if (!shape || shape->size() < 3) return;
  const std::optional<Window> window = window_of(context, shape->size() - 2, nullptr);
  if (!window) return;
  const bool rounds_up = context.node().int_attribute("ceil_mode", 0) != 0 && !pads_to_same(*window);
  require_rows(context, *shape);
  Shape result = context.fresh_shape(0, shape->size());
  std::copy_n(shape->begin(), 2, result.begin());
  for (size_t i = 0; i + 2 < shape->size(); ++i) {
    const Dim& dim = (*shape)[i + 2];
    if (!rounds_up) {
      result[i + 2] = positions(*window, i, dim);
    } else if (begins_inside(*window, i)) {
      result[i + 2] = positions_rounded_up(*window, i, dim);
    }
  }
  context.set_shape(1, result);
  context.set_shape(0, std::move(result));
}

void global_pool(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  Shape result(shape->size(), Dim(1));
  result[0] = (*shape)[0];
  result[1] = (*shape)[1];
  context.set_shape(0, std::move(result));
}

/// SIZE times a factor that is a whole number; nullopt for others (ONNX's inference knows those of numbers).
std::optional<Dim> scaled(const Dim& size, double scale) {
  if (scale == 1) return size;
  if (scale != std::floor(scale) || scale < 1 || scale > 1e6) return std::nullopt;
  return size * static_cast<int64_t>(scale);
}

std::optional<std::vector<double>> scales_of(const RuleContext& context, size_t input) {
  if (const onnx::AttributeProto* attribute = context.node().attribute("scales")) {
    return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
  }
  const Value* value = context.node().input(input);
  const Tensor* tensor = value && context.store().computed(*value).foldable ? context.store().constant(*value) : nullptr;
  if (!tensor || tensor->size() == 0) return std::nullopt;
  const Expected<Tensor> scales = tensor->cast(onnx::TensorProto::DOUBLE);
  if (!scales) return std::nullopt;
  return std::vector<double>(scales->data<double>().begin(), scales->data<double>().end());
}

void resize(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const Node& node = context.node();
  if (!shape || node.string_attribute("keep_aspect_ratio_policy", "stretch") != "stretch") return;
  std::vector<size_t> axes = all_axes(shape->size());
  if (const auto* given = node.ints_attribute("axes")) {
    axes.clear();
    for (const int64_t number : *given) {
      const std::optional<size_t> axis = axis_in(number, shape->size());
      if (!axis) return;
      axes.push_back(*axis);
    }
  }
  const bool single_input = node.op() == "Upsample" || context.opset() < 11;
  const std::optional<std::vector<double>> scales = scales_of(context, single_input ? 1 : 2);
  const IntegerData* sizes = single_input ? nullptr : context.elements(3);
  Shape result = *shape;
  bool numeric = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axes[i];
    std::optional<Dim> size;
    if (sizes && sizes->values.size() == axes.size()) {
      size = context.not_negative(sizes->values[i]);
    } else if (scales && scales->size() == axes.size()) {
      numeric = numeric && (*shape)[axis].is_constant();
      size = scaled((*shape)[axis], (*scales)[i]);
      if (!size && numeric) return;
    }
    result[axis] = size ? *size : context.fresh(0, axis);
  }
  context.set_shape(0, std::move(result));
}

/// To blocks of channels, which are padded to whole ones.
void reorder_input(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  Shape result = *shape;
  if (context.node().int_attribute("channels_last", 0) != 0) std::rotate(result.begin() + 1, result.end() - 1, result.end());
  result[1] = context.fresh(0, 1);
  context.set_shape(0, std::move(result));
}

/// From blocks of channels.
void reorder_output(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  Shape result = *shape;
  result[1] = context.node().int_attribute("channels", 0);
  if (context.node().int_attribute("channels_last", 0) != 0) std::rotate(result.begin() + 1, result.begin() + 2, result.end());
  context.set_shape(0, std::move(result));
}

void upsample_blocks(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const auto* scales = context.node().ints_attribute("scales");
  if (!shape || !scales || scales->size() != static_cast<int>(shape->size())) return;
  Shape result = *shape;
  for (size_t axis = 0; axis < result.size(); ++axis) result[axis] = result[axis] * scales->Get(static_cast<int>(axis));
  context.set_shape(0, std::move(result));
}

using enum ResultType;
constexpr ShapeRule kSpatialRules[] = {
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"AveragePool", pool},
    {"LpPool", pool},
    {"MaxPool", pool},
    {"GlobalAveragePool", global_pool},
    {"GlobalLpPool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"Resize", resize},
    {"Upsample", resize},
};

constexpr ShapeRule kNchwcRules[] = {
    {"Conv", conv},
    {"AveragePool", pool},
    {"MaxPool", pool},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"ReorderInput", reorder_input},
    {"ReorderOutput", reorder_output},
    {"Upsample", upsample_blocks},
};

}  // namespace

std::span<const ShapeRule> spatial_rules() { return kSpatialRules; }
std::span<const ShapeRule> nchwc_rules() { return kNchwcRules; }

}  // namespace attn_opt
