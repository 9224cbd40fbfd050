#include "src/match/positions/whole_scatter.h"

#include "attn_opt/canonical.h"
#include "src/match/node_forms.h"
#include "src/match/positions/position_reader.h"

namespace attn_opt {
namespace {

/// True if CONSTANT holds the index of each element of a tensor of its shape without the last axis.
bool is_grid(const Tensor& constant) {
  const Dims sizes(constant.dims().begin(), constant.dims().end() - 1);
  if (constant.type() != onnx::TensorProto::INT64 || constant.size() == 0) return false;
  Dims at(sizes.size(), 0);
  const int64_t* index = constant.data<int64_t>().data();
  for (int64_t element = element_count(sizes); element-- > 0;) {
    for (const int64_t expected : at)
      if (*index++ != expected) return false;
    for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == sizes[axis];) at[axis] = 0;
  }
  return true;
}

/// True if the elements of INDEX, of as many axes as SHAPE and one more, are their index of AXIS.
bool counts_along(Value& index, size_t axis, const Shape& shape, Facts& facts) {
  PositionReader reader(facts);
  const auto form = reader.read_form(index);
  if (!form) return false;
  IndexForm expected;
  expected.set_factor(shape.size() - axis, 1);
  Shape own = shape;
  own.push_back(1);
  return without_single_axes(*form, own) == without_single_axes(expected, own);
}

/// Adds to PARTS what Concats join along axis LAST to VALUE, that itself if none does; stops where there are more than LAST.
void add_parts(Value& value, int64_t last, Facts& facts, std::vector<Value*>& parts) {
  const Node* joined = canonical(value, facts).producer;
  const int64_t along = joined && joined->is("Concat") ? joined->int_attribute("axis", 0) : 0;
  if (along != -1 && along != last) return parts.push_back(&value);
  for (Value* part : joined->inputs)
    if (std::ssize(parts) <= last) add_parts(*part, last, facts, parts);
}

bool counts_along_all(Value& indices, const Shape& shape, Facts& facts) {
  if (const Tensor* constant = facts.constant(indices)) return is_grid(*constant);
  std::vector<Value*> parts;
  add_parts(indices, std::ssize(shape), facts, parts);
  if (parts.size() != shape.size()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (!counts_along(*parts[axis], axis, shape, facts)) return false;
  return true;
}

}  // namespace

Value* written_over_all(const Node& node, Facts& facts) {
  if (!node.is("ScatterND") || node.string_attribute("reduction", "none") != "none" || node.inputs.size() != 3) return nullptr;
  const MaybeShape data = facts.shape(*node.inputs[0]), indices = facts.shape(*node.inputs[1]),
                   updates = facts.shape(*node.inputs[2]);
  if (!data || !updates || !indices || data->empty() || *updates != *data || indices->empty()) return nullptr;
  const Dim& indexed = indices->back();  // so many leading axes; what lies behind these is written as a whole
  if (!indexed.is_constant() || indexed.value() < 1 || indexed.value() > std::ssize(*data)) return nullptr;
  const Shape leading(data->begin(), data->begin() + indexed.value());
  Shape expected = leading;
  expected.push_back(indexed);
  return *indices == expected && counts_along_all(*node.inputs[1], leading, facts) ? node.inputs[2] : nullptr;
}

}  // namespace attn_opt
