#include "src/match/positions/written_region.h"

#include <algorithm>
#include <limits>

#include "attn_opt/canonical.h"
#include "src/match/node_forms.h"
#include "src/match/positions/position_reader.h"

namespace attn_opt {
namespace {

/// The index of the first element of CONSTANT, which holds that of each element of a tensor of its shape without the last axis,
/// cut out of a larger one; nullopt if it holds others.
std::optional<Shape> start_of_grid(const Tensor& constant) {
  const Dims sizes(constant.dims().begin(), constant.dims().end() - 1);
  if (constant.type() != onnx::TensorProto::INT64 || constant.size() == 0) return std::nullopt;
  const int64_t* index = constant.data<int64_t>().data();
  const Dims first(index, index + sizes.size());
  for (size_t axis = 0; axis < first.size(); ++axis)
    if (first[axis] < 0 || first[axis] > std::numeric_limits<int64_t>::max() - sizes[axis]) return std::nullopt;
  Dims at = first;
  for (int64_t element = element_count(sizes); element-- > 0;) {
    for (const int64_t expected : at)
      if (*index++ != expected) return std::nullopt;
    for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == first[axis] + sizes[axis];) at[axis] = first[axis];
  }
  return Shape(first.begin(), first.end());
}

/// The index from which the elements of INDEX, of as many axes as SHAPE and one more, count along AXIS; nullopt if they do not.
std::optional<Dim> start_along(Value& index, size_t axis, const Shape& shape, Facts& facts) {
  PositionReader reader(facts);
  const auto form = reader.read_form(index);
  if (!form) return std::nullopt;
  IndexForm expected;
  expected.set_factor(shape.size() - axis, 1);
  expected.offset = form->offset;
  Shape own = shape;
  own.push_back(1);
  const bool counts = without_single_axes(*form, own) == without_single_axes(expected, own);
  return counts && form->offset.never_negative() ? std::optional(form->offset) : std::nullopt;
}

/// Adds to PARTS what Concats join along axis LAST to VALUE, that itself if none does; stops where there are more than LAST.
void add_parts(Value& value, int64_t last, Facts& facts, std::vector<Value*>& parts) {
  const Node* joined = canonical(value, facts).producer;
  const int64_t along = joined && joined->is("Concat") ? joined->int_attribute("axis", 0) : 0;
  if (along != -1 && along != last) return parts.push_back(&value);
  for (Value* part : joined->inputs)
    if (std::ssize(parts) <= last) add_parts(*part, last, facts, parts);
}

/// Where the INDICES of elements of SHAPE begin along each axis.
std::optional<Shape> start_along_all(Value& indices, const Shape& shape, Facts& facts) {
  if (const Tensor* constant = facts.constant(indices)) return start_of_grid(*constant);
  std::vector<Value*> parts;
  add_parts(indices, std::ssize(shape), facts, parts);
  if (parts.size() != shape.size()) return std::nullopt;
  Shape first;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const auto start = start_along(*parts[axis], axis, shape, facts);
    if (!start) return std::nullopt;
    first.push_back(*start);
  }
  return first;
}

}  // namespace

std::optional<WrittenRegion> written_region(const Node& node, Facts& facts) {
  const bool writes = node.is("ScatterND") && node.input(0) && node.input(1) && node.input(2) &&
                      node.string_attribute("reduction", "none") == "none";
  if (!writes) return std::nullopt;
  const MaybeShape data = facts.shape(*node.inputs[0]), indices = facts.shape(*node.inputs[1]),
                   updates = facts.shape(*node.inputs[2]);
  if (!data || !updates || !indices || data->empty() || updates->size() != data->size() || indices->empty())
    return std::nullopt;
  const Dim& indexed = indices->back();  // so many leading axes; what lies behind these is written as a whole
  if (!indexed.is_constant() || indexed.value() < 1 || indexed.value() > std::ssize(*data)) return std::nullopt;
  const Shape leading(updates->begin(), updates->begin() + indexed.value());
  Shape expected = leading;
  expected.push_back(indexed);
  if (*indices != expected || !std::equal(updates->begin() + indexed.value(), updates->end(), data->begin() + indexed.value()))
    return std::nullopt;
  auto first = start_along_all(*node.inputs[1], leading, facts);
  if (!first) return std::nullopt;
  first->resize(data->size(), 0);
  return WrittenRegion{node.inputs[2], *std::move(first)};
}

Value* written_over_all(const Node& node, Facts& facts) {
  if (!node.input(0) || !node.input(2)) return nullptr;
  const MaybeShape data = facts.shape(*node.inputs[0]), updates = facts.shape(*node.inputs[2]);
  if (!data || !updates || *data != *updates) return nullptr;
  const auto region = written_region(node, facts);
  const bool is_all = region && std::ranges::all_of(region->first, [](const Dim& first) { return first.is(0); });
  return is_all ? region->updates : nullptr;
}

}  // namespace attn_opt
