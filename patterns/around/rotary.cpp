// Rotary position embedding (RoPE), in whatever form (rotation.h), as RotaryEmbedding of opset 23.
//
//   x ─┬─────────────────────── Mul(cos) ─ Add ─ y            RotaryEmbedding(x, cos, sin) ─ y
//      └─ Concat(-x2, x1) ───── Mul(sin) ──┘
//
// The operator takes cos and sin as (batch, seq, pairs): one column of each pair, the axis of heads left out, and repeated for
// each batch element.
#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/rewrite.h"
#include "patterns/around/rotation.h"

namespace attn_opt {
namespace {

/// A size as a number, or as one that is read at run time of an axis of a value.
struct SizeOf {
  std::optional<int64_t> number = {};
  Value* value = nullptr;
  int64_t axis = 0;
};

/// One of the tables, and what is done to it.
struct TableForm {
  PairTable table;
  size_t lead = 0;                        ///< axes in front of those of the columns
  std::optional<int64_t> columns = {};    ///< how many there are, if that is known
  bool is_part = false;                   ///< not all are taken
  std::optional<size_t> heads_axis = {};  ///< its axis of heads, of size 1
  bool is_expanded = false;               ///< to batch and seq
};

struct RotaryForm {
  Rotation rotation;
  TableForm cos, sin;
  SizeOf batch, seq;
  std::optional<int64_t> heads;  ///< if it is a number
  bool heads_behind = false;     ///< x is (batch, seq, heads, columns)
  bool is_joined = false;        ///< x is (batch, seq, heads * columns)
  std::vector<SizeOf> widened;   ///< what x is expanded to, 1 for an axis that stays; empty: it has y's shape
};

/// Finds out how the operands of RotaryEmbedding are made of those of a rotation.
class RotaryReader {
 public:
  RotaryReader(const Rotation& rotation, const Node& node, Facts& facts)
      : node_(node), facts_(facts), shape_(facts.shape(*rotation.y).known()) {
    form_.rotation = rotation;
  }

  Matched<RotaryForm> read() {
    const DataType type = facts_.type(*form_.rotation.x);
    if (!is_floating(type) || type == onnx::TensorProto::DOUBLE)
      return missed("rotary.type", &node_, "'" + form_.rotation.x->name + "' is of type " + type_name(type));
    ATTN_OPT_DONE(find_heads());
    const size_t seq = form_.is_joined || form_.heads_behind ? 1 : 2;
    form_.batch = size_of(0);
    form_.seq = size_of(seq);
    form_.cos = table_form(form_.rotation.cos, seq);
    form_.sin = table_form(form_.rotation.sin, seq);
    widen();
    return form_;
  }

 private:
  /// Size of TABLE on the axis that meets AXIS of x.
  Dim met(const PairTable& table, size_t axis) const {
    return from_last(facts_.shape(*table.value).known(), shape_.size() - 2 - axis + table.axes);
  }

  bool is_one(size_t axis) const { return met(form_.rotation.cos, axis).is(1) && met(form_.rotation.sin, axis).is(1); }

  Matched<void> find_heads() {
    const Rotation& rotation = form_.rotation;
    if (shape_.size() != 3 && shape_.size() != 4)
      return missed("rotary.rank", &node_, "'" + rotation.x->name + "' is of shape " + to_string(shape_));
    const auto columns = static_cast<size_t>(shape_.back().value());
    form_.is_joined = shape_.size() == 3;
    if (form_.is_joined) {
      if (columns % rotation.head_size != 0)
        return missed("rotary.heads", &node_,
                      "heads of " + std::to_string(rotation.head_size) + " columns in " + std::to_string(columns));
      form_.heads = static_cast<int64_t>(columns / rotation.head_size);
      return {};
    }
    form_.heads_behind = !is_one(1);
    if (rotation.head_size != columns || (form_.heads_behind && !is_one(2)))
      return missed(
          "rotary.heads", &node_,
          "the angles of '" + rotation.x->name + "' of shape " + to_string(shape_) + " are not the same for all heads");
    const Dim& heads = shape_[form_.heads_behind ? 2 : 1];
    if (heads.is_constant()) form_.heads = heads.value();
    if (!form_.heads && (form_.heads_behind || rotation.rotated != columns))
      return missed("rotary.heads", &node_, "the number of heads is not known: " + heads.str());
    return {};
  }

  /// x broadcasts to the tables, whose size may be another than its own where the two are but assumed to be equal.
  void widen() {
    const Shape& own = facts_.shape(*form_.rotation.x).known();
    std::vector<SizeOf> sizes(shape_.size(), {.number = 1});
    bool widens = false;
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      if (own[axis] != shape_[axis])
        sizes[axis] = {.number = shape_[axis].value()};
      else if (const PairTable* table = table_beside(own, axis))
        sizes[axis] = {.value = table->value, .axis = static_cast<int64_t>(axis_in(*table, axis))};
      else
        continue;
      widens = true;
    }
    if (widens) form_.widened = std::move(sizes);
  }

  size_t axis_in(const PairTable& table, size_t axis) const {
    return facts_.shape(*table.value).known().size() - 1 - (shape_.size() - 2 - axis + table.axes);
  }

  /// The table whose size may be another than that of AXIS of x, of the shape OWN; null if there is none.
  const PairTable* table_beside(const Shape& own, size_t axis) const {
    if (own[axis].is_constant() || axis + 1 == shape_.size()) return nullptr;
    for (const PairTable* table : {&form_.rotation.cos, &form_.rotation.sin})
      if (const Dim size = met(*table, axis); !size.is(1) && size != own[axis]) return table;
    return nullptr;
  }

  TableForm table_form(const PairTable& table, size_t seq) {
    const Shape& shape = facts_.shape(*table.value).known();
    TableForm form{.table = table, .lead = shape.size() < table.axes ? 0 : shape.size() - table.axes};
    const auto columns = column_sizes(*table.value, table.axes, facts_);
    if (columns) form.columns = element_count(*columns);
    form.is_part = !columns || table.count != static_cast<size_t>(*form.columns) || table.step != 1;
    const size_t before = shape_.size() - 1 - form.lead, heads = form_.heads_behind ? 2 : 1;
    if (!form_.is_joined && heads >= before) form.heads_axis = heads - before;
    const bool has_rank = form.lead == shape_.size() - 1;
    form.is_expanded = !has_rank || met(table, 0) != shape_[0] || met(table, seq) != shape_[seq];
    return form;
  }

  /// Where the size of AXIS of x is read: of an input of the model, if one has it, so that all places read the same.
  SizeOf size_of(size_t axis) {
    const Dim& size = shape_[axis];
    if (size.is_constant()) return {.number = size.value()};
    for (Value* input : node_.graph->model().main().inputs()) {
      const MaybeShape shape = facts_.shape(*input);
      if (!shape || !node_.graph->sees(*input)) continue;
      if (const auto at = std::ranges::find(*shape, size); at != shape->end())
        return {.value = input, .axis = at - shape->begin()};
    }
    return {.value = form_.rotation.x, .axis = static_cast<int64_t>(axis)};
  }

  const Node& node_;
  Facts& facts_;
  const Shape& shape_;
  RotaryForm form_;
};

Value* value_of(const SizeOf& size, GraphBuilder& build) {
  return size.number ? build.ints({*size.number}) : build.shape(*size.value, size.axis, size.axis + 1);
}

Value* reshaped_to(Value* value, const std::vector<int64_t>& sizes, GraphBuilder& build) {
  return build.node("Reshape", {value, build.ints(sizes)});
}

Value* shape_of(const std::vector<SizeOf>& sizes, GraphBuilder& build) {
  const auto is_number = [](const SizeOf& size) { return size.number.has_value(); };
  std::vector<int64_t> numbers;
  std::vector<Value*> parts;
  for (const SizeOf& size : sizes) {
    numbers.push_back(size.number.value_or(0));
    parts.push_back(value_of(size, build));
  }
  if (std::ranges::all_of(sizes, is_number)) return build.ints(numbers);
  return build.node("Concat", parts, {GraphBuilder::attribute("axis", int64_t{0})});
}

/// FORM's table as (batch, seq, pairs).
Value* table_of(const TableForm& form, const RotaryForm& all, GraphBuilder& build) {
  const PairTable& table = form.table;
  Value* made = table.value;
  if (table.axes > 1) {
    std::vector<int64_t> sizes(form.lead, 0);
    sizes.push_back(form.columns.value_or(-1));
    made = reshaped_to(made, sizes, build);
  }
  const auto start = static_cast<int64_t>(table.start), step = static_cast<int64_t>(table.step);
  const int64_t end = start + step * (static_cast<int64_t>(table.count) - 1) + 1;
  if (form.is_part)
    made = build.node("Slice", {made, build.ints({start}), build.ints({end}), build.ints({-1}), build.ints({step})});
  if (form.heads_axis) made = build.node("Squeeze", {made, build.ints({static_cast<int64_t>(*form.heads_axis)})});
  if (table.negated) made = build.node("Neg", {made});
  if (!form.is_expanded) return made;
  const SizeOf pairs{.number = static_cast<int64_t>(table.count)};
  return build.node("Expand", {made, shape_of({all.batch, all.seq, pairs}, build)});
}

GraphBuilder::Attributes rotary_attributes(const RotaryForm& form) {
  GraphBuilder::Attributes attributes;
  const bool is_partial = form.rotation.rotated != form.rotation.head_size;
  if (form.rotation.interleaved) attributes.push_back(GraphBuilder::attribute("interleaved", int64_t{1}));
  // ONNX Runtime 1.32 asks for num_heads wherever rotary_embedding_dim is given.
  if (form.is_joined || form.heads_behind || is_partial)
    attributes.push_back(GraphBuilder::attribute("num_heads", *form.heads));
  if (is_partial)
    attributes.push_back(GraphBuilder::attribute("rotary_embedding_dim", static_cast<int64_t>(form.rotation.rotated)));
  return attributes;
}

Matched<RotaryForm> rotary_form(Value& y, const Node& node, Facts& facts) {
  ATTN_OPT_MATCH(const Rotation rotation, rotation_of(y, facts));
  return RotaryReader(rotation, node, facts).read();
}

/// The one reader of VALUE or of a copy of it, in its graph.
const Node* only_reader(Value& value, Facts& facts) {
  for (Value* copy = &value; !copy->is_output && copy->uses.size() == 1;) {
    const Node* reader = copy->uses[0].node;
    if (!reader || reader->graph != value.graph || reader->outputs.empty()) return nullptr;
    copy = reader->outputs[0];
    if (!copy || &canonical(*copy, facts) != &canonical(value, facts)) return reader;
  }
  return nullptr;
}

/// True if Y is but a part of what its only reader makes: the columns that are rotated, of more.
bool is_part_of_rotation(Value& y, Facts& facts) {
  const Node* reader = only_reader(y, facts);
  return reader && reader->is("Concat") && rotary_form(*reader->outputs[0], *reader, facts).has_value();
}

class Rotary : public Rewrite {
 public:
  std::string_view name() const override { return "rotary"; }
  std::string_view summary() const override { return "x * cos + rotate_half(x) * sin, in all its forms, as RotaryEmbedding"; }
  bool is_anchor(const Node& node) const override {
    return node.is("Add") || node.is("Sub") || node.is("Concat") || node.is("Reshape");
  }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    Value& y = *node.outputs[0];
    if (&canonical(y, context.facts) != &y) return missed(std::string(kNoMatch), &node, "it changes nothing");
    ATTN_OPT_MATCH(RotaryForm form, rotary_form(y, node, context.facts));
    if (is_part_of_rotation(y, context.facts)) return missed(std::string(kNoMatch), &node, "its reader is the whole rotation");
    RewriteMatch match;
    match.peeled = {form.rotation.interleaved ? "pairs" : "halves"};
    match.values = {{"x", form.rotation.x}, {"y", &y}};
    match.computed = {form.rotation.cos.value, form.rotation.sin.value};
    match.more = std::move(form);
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    const auto& form = std::any_cast<const RotaryForm&>(match.more);
    Value* x = match.value("x");
    if (!form.widened.empty()) x = build.node("Expand", {x, shape_of(form.widened, build)});
    // Said as numbers: -1 stands for nothing where the batch or the sequence is empty.
    const auto head_size = static_cast<int64_t>(form.rotation.head_size);
    if (form.heads_behind) x = reshaped_to(x, {0, 0, *form.heads * head_size}, build);
    Value* y = build.node("RotaryEmbedding", {x, table_of(form.cos, form, build), table_of(form.sin, form, build)},
                          rotary_attributes(form));
    if (form.heads_behind) y = reshaped_to(y, {0, 0, *form.heads, head_size}, build);
    return std::vector<Replacement>{{match.value("y"), y}};
  }
};

}  // namespace

ATTN_OPT_REGISTER_REWRITE(Rotary)

}  // namespace attn_opt
