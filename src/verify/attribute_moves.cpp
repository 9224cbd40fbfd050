#include "src/verify/attribute_moves.h"

#include <cmath>
#include <limits>

#include "attn_opt/internal/model_walk.h"

namespace attn_opt {
namespace {

void for_each_float_attribute(onnx::ModelProto& model, const std::function<void(onnx::AttributeProto&)>& visit) {
  for_each_node(model, [&](onnx::NodeProto& node) {
    if (node.op_type() == "Constant") return;
    for (onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.type() == onnx::AttributeProto::FLOAT && std::isfinite(attribute.f())) visit(attribute);
  });
}

/// Adds |ONE - OTHER| to MOVES where both are finite.
void add_difference(std::span<const double> one, std::span<const double> other, std::span<double> moves) {
  for (size_t i = 0; i < moves.size(); ++i)
    if (std::isfinite(one[i]) && std::isfinite(other[i])) moves[i] += std::abs(one[i] - other[i]);
}

}  // namespace

Expected<AttributeMoves> AttributeMoves::create(const onnx::ModelProto& model, const TensorStore& tensors,
                                                const ExecutorOptions& options) {
  AttributeMoves moves;
  onnx::ModelProto copy = model;
  size_t count = 0;
  for_each_float_attribute(copy, [&](const onnx::AttributeProto&) { ++count; });
  if (count > kMostAttributes) return moves;
  for (size_t moved = 0; moved < count; ++moved) {
    size_t at = 0;
    onnx::ModelProto& other = moves.models_.emplace_back(model);
    for_each_float_attribute(other, [&](onnx::AttributeProto& attribute) {
      if (at++ == moved) attribute.set_f(std::nextafter(attribute.f(), std::numeric_limits<float>::infinity()));
    });
    ATTN_OPT_TRY(auto executor, Executor::create(other, tensors, options));
    moves.executors_.push_back(std::move(executor));
  }
  return moves;
}

std::vector<Tensor> AttributeMoves::of(const Feeds& feeds, const std::vector<Tensor>& results) const {
  std::vector<Tensor> moves(results.size());
  for (const Executor& executor : executors_) {
    const auto moved = executor.run(feeds);
    if (!moved) continue;  // an attribute that may not lie there allows nothing
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor& one = results[i];
      const Tensor& other = (*moved)[i];
      if (one.type() != onnx::TensorProto::DOUBLE || other.type() != one.type() || other.dims() != one.dims()) continue;
      if (!moves[i].has_value()) moves[i] = Tensor(onnx::TensorProto::DOUBLE, one.dims());
      add_difference(one.data<double>(), other.data<double>(), moves[i].mutable_data<double>());
    }
  }
  return moves;
}

}  // namespace attn_opt
