#include "patterns/operands/head_region.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/readers.h"
#include "src/match/node_forms.h"
#include "src/match/permutation.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// Of a region: RoPE and RMSNorm written out are 16.
constexpr size_t kMaxRegionNodes = 32;
/// Operators have had their present inputs and attributes since, but for those that are written anew below.
constexpr int kFirstOpset = 13;

/// Input number INPUT of a node, whose heads lie on AXIS.
struct HeadInput {
  size_t input, axis;
};

/// How many leading axes NODE, a regrouping, leaves as they are.
size_t axes_kept(const Node& node, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  if (!before || !after) return 0;
  return static_cast<size_t>(std::ranges::mismatch(*before, *after).in1 - before->begin());
}

/// The shape that a Reshape must be given to do what NODE, a regrouping, does, of however many heads; nullopt if it cannot be
/// told.
std::optional<std::vector<int64_t>> wanted_shape(const Node& node, Facts& facts) {
  const MaybeShape after = facts.shape(*node.outputs[0]);
  if (!after) return std::nullopt;
  std::vector<int64_t> shape(axes_kept(node, facts), 0);
  for (size_t axis = shape.size(); axis < after->size(); ++axis)
    shape.push_back((*after)[axis].is_constant() ? (*after)[axis].value() : -1);
  return std::ranges::count(shape, -1) <= 1 && std::ranges::count(*after, Dim(0)) == 0 ? std::optional(shape) : std::nullopt;
}

/// The inputs of an operator that acts within each head, where the heads of its result lie on one axis; empty if it is none, or
/// if heads differ in what is done to them.
class HeadInputs {
 public:
  HeadInputs(const Node& node, const Shape& result, size_t axis, Facts& facts)
      : node_(node), result_(result), axis_(axis), facts_(facts) {}

  std::vector<HeadInput> find() const {
    if (has(node_, Trait::kElementwise) || multiplies_features()) return broadcast();
    if (node_.is("Transpose")) return transposed();
    if (node_.is("Concat")) return joined();
    return keeps_heads() ? std::vector<HeadInput>{{0, axis_}} : std::vector<HeadInput>();
  }

 private:
  /// The inputs that have all heads. The others must be the same for all.
  std::vector<HeadInput> broadcast() const {
    const size_t from_end = result_.size() - 1 - axis_;
    std::vector<HeadInput> found;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const MaybeShape shape = node_.inputs[i] ? facts_.shape(*node_.inputs[i]) : MaybeShape();
      if (!shape) return {};
      if (is_same_for_all(*shape, from_end)) continue;
      if (from_last(*shape, from_end) != result_[axis_]) return {};
      found.push_back({i, shape->size() - 1 - from_end});
    }
    return found;
  }

  /// True for a product of rows or features: the axes before those broadcast.
  bool multiplies_features() const {
    const auto has_rows = [&](const Value* value) {
      const MaybeShape shape = facts_.shape(*value);
      return shape && shape->size() >= 2;
    };
    return node_.is("MatMul") && axis_ + 2 < result_.size() && std::ranges::all_of(node_.inputs, has_rows);
  }

  static bool is_same_for_all(const Shape& shape, size_t from_end) {
    return shape.size() <= from_end || from_last(shape, from_end).is(1);
  }

  std::vector<HeadInput> transposed() const {
    const std::vector<int64_t> perm = permutation(node_, result_.size());
    if (perm.empty()) return {};
    return {{0, static_cast<size_t>(perm[axis_])}};
  }

  std::vector<HeadInput> joined() const {
    std::vector<HeadInput> found;
    for (size_t i = 0; has_other_axis(0) && i < node_.inputs.size(); ++i) found.push_back({i, axis_});
    return found;
  }

  /// True if the node works along other axes of its first input alone, and its other inputs are the same for all heads.
  bool keeps_heads() const {
    if (has(node_, Trait::kRegroups)) return axis_ < axes_kept(node_, facts_);
    if (node_.is("Gather")) return takes_from_later_axis();
    if (node_.is("RotaryEmbedding")) return result_.size() == 4 && axis_ == 1;
    if (node_.is("Split")) return has_other_axis(0);
    if (node_.is("Softmax") || node_.is("LogSoftmax") || node_.is("LpNormalization")) return has_other_axis(-1);
    if (node_.is("LayerNormalization") || node_.is("RMSNormalization")) return normalises_later_axes();
    if (node_.is("Slice")) return cuts_other_axis();
    const bool reduces = node_.is("ReduceMean") || node_.is("ReduceSum") || node_.is("ReduceMax") || node_.is("ReduceMin") ||
                         node_.is("ReduceL2") || node_.is("ReduceSumSquare");
    const auto reduced =
        reduces && node_.int_attribute("keepdims", 1) != 0 ? reduced_axis(node_, result_.size(), facts_) : std::nullopt;
    return reduced && *reduced != axis_;
  }

  bool has_other_axis(int64_t otherwise) const {
    const auto own = axis_in(node_.int_attribute("axis", otherwise), result_.size());
    return own && *own != axis_;
  }

  bool takes_from_later_axis() const {
    const MaybeShape before = facts_.shape(*node_.inputs[0]);
    const auto taken = before ? axis_in(node_.int_attribute("axis", 0), before->size()) : std::nullopt;
    return taken && *taken > axis_;
  }

  bool normalises_later_axes() const {
    const auto first = axis_in(node_.int_attribute("axis", -1), result_.size());
    const auto is_parameter = [&](const Value* value) {
      const MaybeShape shape = value ? facts_.shape(*value) : MaybeShape();
      return !value || (shape && is_same_for_all(*shape, result_.size() - 1 - axis_));
    };
    return first && *first > axis_ && is_parameter(node_.input(1)) && is_parameter(node_.input(2));
  }

  bool cuts_other_axis() const {
    const IntegerData* axes = node_.input(3) ? facts_.integers(*node_.inputs[3]) : nullptr;
    return axes && std::ranges::all_of(axes->values, [&](const Dim& given) {
             const auto cut = given.is_constant() ? axis_in(given.value(), result_.size()) : std::nullopt;
             return cut && *cut != axis_;
           });
  }

  const Node& node_;
  const Shape& result_;
  size_t axis_;
  Facts& facts_;
};

/// The nodes between repeated heads and a value.
class Region {
 public:
  Region(Value& value, MatchContext& context)
      : value_(canonical(value, context.facts)), context_(context), facts_(context.facts) {}

  /// False if what the value is made of is not the same function of each head, of heads that are all repeated as often.
  bool find(size_t axis) {
    add(value_, axis);
    for (size_t i = 0; i < values_.size(); ++i)
      if (!enter(*values_[i])) return false;
    std::ranges::sort(nodes_, {}, [](const ActingNode& acting) { return std::pair(acting.node->position, acting.node->id); });
    return copies_.source &&
           std::ranges::none_of(nodes_, [&](const ActingNode& acting) { return is_read_outside(*acting.node); });
  }

  AxisCopies write(size_t axis) {
    InnerValues inner(*value_.producer, context_);
    for (const ActingNode& acting : nodes_) write(acting, inner);
    AxisCopies copies = copies_;
    copies.source = written_.at(&value_);
    copies.axis = axis;
    return copies;
  }

 private:
  struct ActingNode {
    const Node* node;
    std::vector<HeadInput> inputs;
  };

  bool holds(const Node* node) const { return std::ranges::find(nodes_, node, &ActingNode::node) != nodes_.end(); }

  bool add(Value& value, size_t axis) {
    const auto [known, is_new] = axes_.emplace(&value, axis);
    if (is_new) values_.push_back(&value);
    return known->second == axis;
  }

  /// False if VALUE is neither repeated heads nor made by a node that acts within each head.
  bool enter(Value& value) {
    const size_t axis = axes_.at(&value);
    if (const auto copies = repeated_heads(value, axis)) {
      written_.emplace(&value, copies->source);
      const bool is_alike = !copies_.source || (copies_.kept == copies->kept && copies_.each == copies->each);
      copies_ = *copies;
      return is_alike && &value != &value_;
    }
    Node* node = value.producer;
    const MaybeShape shape = facts_.shape(value);
    if (!node || !shape || node->graph != value_.graph || !node->domain().empty() || !may_be_written(*node, value))
      return false;
    const std::vector<HeadInput> inputs = HeadInputs(*node, *shape, axis, facts_).find();
    if (!holds(node)) nodes_.push_back({node, inputs});
    const auto follow = [&](const HeadInput& input) { return add(canonical(*node->inputs[input.input], facts_), input.axis); };
    return !inputs.empty() && nodes_.size() <= kMaxRegionNodes && std::ranges::all_of(inputs, follow);
  }

  bool may_be_written(const Node& node, const Value& value) {
    if (node.is("Split") ? !sizes_of_parts(node) : value.output != 0) return false;
    if (has(node, Trait::kRegroups) && !wanted_shape(node, facts_)) return false;
    return node.graph->model().onnx_opset(node) >= kFirstOpset;
  }

  /// The heads that VALUE repeats, each in turn, if nothing but that was done to them.
  std::optional<AxisCopies> repeated_heads(Value& value, size_t axis) {
    const MaybeShape shape = facts_.shape(value);
    if (!shape || shape->size() > 4) return std::nullopt;
    std::vector<Role> roles{Role::kBatch, Role::kRow, Role::kFeature};
    roles.insert(roles.begin() + static_cast<std::ptrdiff_t>(axis), Role::kHead);
    roles.resize(shape->size(), Role::kFeature);
    for (const OperandView& view : walk_movement({&value, AxisMap::of(*shape, roles)}, context_).views) {
      const Dim kept = view.axes.size(Role::kHead), each = view.axes.size(Role::kHead, true);
      const bool is_grouped = view.axes.has_repeats() && view.axes.repeats_interleave() && view.axes.is_order(roles);
      if (is_grouped && kept.is_constant() && each.is_constant())
        return AxisCopies{view.value, axis, kept.value(), each.value()};
    }
    return std::nullopt;
  }

  /// True if something outside of the region reads what NODE, one of it, makes but the value.
  bool is_read_outside(const Node& node) {
    return std::ranges::any_of(node.outputs, [&](Value* made) { return made && made != &value_ && is_read_outside(*made); });
  }

  bool is_read_outside(Value& made) {
    const Readers readers = readers_of(made, facts_);
    const auto is_outside = [&](const Reader& reader) { return !holds(reader.node); };
    return readers.is_output || readers.is_sized || std::ranges::any_of(readers.all, is_outside);
  }

  std::optional<std::vector<int64_t>> sizes_of_parts(const Node& split) {
    std::vector<int64_t> sizes;
    for (const Value* part : split.outputs) {
      const MaybeShape shape = part ? facts_.shape(*part) : MaybeShape();
      const auto axis = shape ? axis_in(split.int_attribute("axis", 0), shape->size()) : std::nullopt;
      if (!axis || !(*shape)[*axis].is_constant()) return std::nullopt;
      sizes.push_back((*shape)[*axis].value());
    }
    return sizes;
  }

  /// The node of ACTING on heads that are not repeated, as the opset of edits has it.
  void write(const ActingNode& acting, InnerValues& inner) {
    const Node& node = *acting.node;
    std::vector<Value*> inputs(node.inputs.begin(), node.inputs.end());
    for (const HeadInput& heads : acting.inputs) inputs[heads.input] = written_.at(&canonical(*inputs[heads.input], facts_));
    if (node.is("Split")) {
      const auto parts = inner.split(inputs[0], *sizes_of_parts(node), node.int_attribute("axis", 0));
      for (size_t i = 0; i < parts.size(); ++i) written_[node.outputs[i]] = parts[i];
      return;
    }
    if (has(node, Trait::kRegroups)) {
      written_[node.outputs[0]] = inner.reshaped(inputs[0], *wanted_shape(node, facts_));
      return;
    }
    written_[node.outputs[0]] = inner.again(node, inputs);
  }

  Value& value_;
  MatchContext& context_;
  Facts& facts_;
  std::vector<Value*> values_;                        ///< that have all heads, from the value upward
  std::unordered_map<const Value*, size_t> axes_;     ///< on which their heads lie
  std::unordered_map<const Value*, Value*> written_;  ///< with heads that are not repeated
  std::vector<ActingNode> nodes_;
  AxisCopies copies_;
};

}  // namespace

std::optional<AxisCopies> copies_of_region(Value& value, size_t axis, MatchContext& context) {
  Region region(value, context);
  return region.find(axis) ? std::optional(region.write(axis)) : std::nullopt;
}

}  // namespace attn_opt
