#include "src/match/facts/fact_store.h"

#include <algorithm>
#include <iterator>

#include "src/match/node_forms.h"
#include "src/match/post_order.h"
#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {
namespace {

constexpr int64_t kMaxUnknownElements = 8;
/// Elements of all integer tensors whose contents are held as expressions; small ones do not count.
constexpr int64_t kMaxHeldIntegers = int64_t{1} << 20;
constexpr size_t kUncountedIntegers = 16;

/// Attributes of a function's body, and of graphs nested in it, that take their value from the call.
bool has_attribute_reference(const Node& node) {
  const auto& attributes = node.proto->attribute();
  return std::ranges::any_of(attributes,
                             [](const onnx::AttributeProto& attribute) { return !attribute.ref_attr_name().empty(); });
}

bool is_pure(std::string_view op) {
  static const auto* const ops = [] {
    auto* names = new std::unordered_set<std::string_view>{"Constant"};
    for (const auto rules : {elementwise_rules(), layout_rules(), indexing_rules(), generator_rules(), reduction_rules()}) {
      for (const ShapeRule& rule : rules) names->insert(rule.op);
    }
    return names;
  }();
  return ops->contains(op);
}

/// Elements of the result times those of the left operand: no less than the multiplications.
constexpr int64_t kMaxProducts = int64_t{1} << 26;

bool is_small_product(FactStore& store, const Node& node, const Shape& result) {
  if (!node.is("MatMul") && !node.is("Gemm")) return false;
  if (!node.input(0) || !store.computed(*node.inputs[0]).shape) return false;
  const std::optional<int64_t> outputs = element_count(result);
  const std::optional<int64_t> inputs = element_count(*store.computed(*node.inputs[0]).shape);
  if (!outputs || !inputs || *outputs > Facts::kMaxConstantElements) return false;
  return *inputs <= Facts::kMaxConstantElements && *outputs * *inputs <= kMaxProducts;
}

/// The contents of OUTPUT can be had by running NODE, in time and space that are bounded.
bool is_foldable(FactStore& store, const Node& node, const ValueFact& output) {
  if (!node.domain().empty() || !node.bodies.empty()) return false;
  int64_t input_elements = 0;
  for (const Value* input : node.inputs) {
    if (!input) continue;
    if (input_elements > 0 && node.is("CastLike")) break;
    const ValueFact& fact = store.computed(*input);
    if (!fact.foldable || !fact.shape) return false;
    const std::optional<int64_t> count = element_count(*fact.shape);
    if (!count || (input_elements += *count) > 4 * Facts::kMaxConstantElements) return false;
  }
  if (!output.shape || output.type == onnx::TensorProto::UNDEFINED || is_random(*node.proto)) return false;
  if (!is_pure(node.op()) && !is_small_product(store, node, *output.shape)) return false;
  if (node.is("NonZero")) return input_elements <= Facts::kMaxConstantElements / 8;
  const std::optional<int64_t> count = element_count(*output.shape);
  return count && *count <= Facts::kMaxConstantElements;
}

bool all_numbers(const IntegerData& data) {
  return std::ranges::all_of(data.values, [](const Dim& dim) { return dim.is_constant(); });
}

}  // namespace

const ValueFact& FactStore::computed_from_inputs(const Value& value) {
  post_order(
      value, [&](const Value& v) { return facts_.find(v) != nullptr; },
      [&](const Value& v, int stage) { return inputs_of(v, stage); },
      [&](const Value& v) {
        if (facts_.find(v)) return;
        if (v.producer) compute_or_leave_open(*v.producer);
        if (!facts_.find(v)) facts_[v] = leaf(v);
      });
  return facts_[value];
}

void FactStore::take_over(const Value& existing, const Value& made) {
  const auto is_whole = [](const ValueFact& own) { return own.shape && own.type != onnx::TensorProto::UNDEFINED; };
  if (is_whole(fact(existing))) return;
  const ValueFact of_made = fact(made);
  ValueFact& own = facts_[existing];
  if (own.type == onnx::TensorProto::UNDEFINED) own.type = of_made.type;
  if (!own.shape) own.shape = of_made.shape;
}

const ValueFact& FactStore::leaf_or_unknown(const Value& value) {
  static const ValueFact kUnknown;
  if (value.producer) return kUnknown;
  return facts_[value] = leaf(value);
}

std::vector<const Value*> FactStore::inputs_of(const Value& value, int stage) {
  if (!value.producer) {
    if (stage > 0) return {};
    const Node* owner = value.graph->owner();
    if (initial_of_carried(value)) return carried_.contains(owner) ? std::vector<const Value*>{} : needed_for_carried(*owner);
    const Value *initial = initial_of_state(value), *source = initial ? initial : scanned_by(value).whole;
    return source ? std::vector{source} : std::vector<const Value*>{};
  }
  const Node& node = *value.producer;
  std::vector<const Value*> values;
  if (stage == 0) {
    const auto is_open = [this](const Value* input) { return input && !facts_.find(*input); };
    if (node.is("Loop"))
      std::ranges::copy_if(needed_for_carried(node), std::back_inserter(values), is_open);
    else
      std::ranges::copy_if(node.inputs, std::back_inserter(values), is_open);
    if (!values.empty()) return values;
  }
  if (stage > 1) return {};
  const Graph* selected = selected_branch(*this, node);
  for (const Graph* branch : node.bodies) {
    if (selected && branch != selected) continue;
    for (const Value* output : branch->outputs()) {
      if (output) values.push_back(output);
    }
  }
  return values;
}

void FactStore::compute_or_leave_open(const Node& node) {
  try {
    compute(node);
  } catch (const std::exception&) {
    // A rule's defect, which costs no more than what the rule would have found.
  }
}

void FactStore::compute(const Node& node) {
  RuleContext context(*this, node);
  const bool plain = !has_attribute_reference(node);
  if (!node.bodies.empty()) {
    apply_if_rule(context);
    apply_loop_rule(context);
    apply_scan_rule(context);
  } else if (plain && !apply_function_rule(context)) {
    apply_shape_rule(context);
    apply_schema_inference(context);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i] || facts_.find(*node.outputs[i])) continue;
    ValueFact& fact = context.result(i);
    merge_declared(*node.outputs[i], fact);
    fact.foldable = fact.foldable || (plain && !fact.same_as && is_foldable(*this, node, fact));
  }
  if (plain && node.bodies.empty()) apply_integer_rule(context);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] && !facts_.find(*node.outputs[i])) complete(*node.outputs[i], context.result(i));
  }
}

void FactStore::complete(const Value& value, ValueFact& fact) {
  if (fact.integers && fact.integers->values.size() > kUncountedIntegers) {
    integer_elements_ += static_cast<int64_t>(fact.integers->values.size());
    if (integer_elements_ > kMaxHeldIntegers) fact.integers.reset();
  }
  if (fact.integers && all_numbers(*fact.integers)) fact.foldable = true;
  ValueFact& stored = facts_[value] = std::move(fact);
  if (stored.integers || !stored.foldable || !is_integer(stored.type) || !stored.shape) return;
  const std::optional<int64_t> count = element_count(*stored.shape);
  if (!(value.producer && value.producer->is("NonZero")) && (!count || *count > kMaxIntegers)) return;
  const Tensor* tensor = constant(value);
  if (!tensor) return;
  stored.shape = Shape(tensor->dims().begin(), tensor->dims().end());
  if (tensor->size() <= kMaxIntegers && integer_elements_ < kMaxHeldIntegers) stored.integers = integers_of(*tensor);
}

/// Type and shape of what starts as INITIAL and keeps them in each iteration.
void FactStore::enter_kept(const Value& initial, ValueFact& fact) {
  const ValueFact& first = computed(initial);
  if (first.type != onnx::TensorProto::UNDEFINED) fact.type = first.type;
  if (first.shape) fact.shape = first.shape;
}

/// Type and shape of what a Scan cuts SCANNED into.
void FactStore::enter_piece(const Scanned& scanned, ValueFact& fact) {
  const ValueFact& whole = computed(*scanned.whole);
  fact.type = whole.type;
  const auto axis = whole.shape ? axis_in(scanned.axis, whole.shape->size()) : std::nullopt;
  if (!axis) return;
  fact.shape = *whole.shape;
  fact.shape->erase(fact.shape->begin() + static_cast<std::ptrdiff_t>(*axis));
}

ValueFact FactStore::leaf(const Value& value) {
  ValueFact fact;
  if (!value.initializer) {
    merge_declared(value, fact);
    if (const Value* initial = same_in_all_iterations(*this, value)) {
      enter_kept(*initial, fact);
      fact.integers = computed(*initial).integers;
    } else if (initial = initial_of_carried(value); initial) {  // its shape may be another in each iteration
      enter_carried(value, *initial, fact);
    } else if (initial = initial_of_state(value); initial) {
      enter_kept(*initial, fact);  // as the specification requires
    }
    if (const Scanned scanned = scanned_by(value); scanned.whole && !fact.shape) enter_piece(scanned, fact);
    return fact;
  }
  const onnx::TensorProto& initializer = *value.initializer;
  if (onnx::TensorProto::DataType_IsValid(initializer.data_type())) {
    fact.type = static_cast<DataType>(initializer.data_type());
  }
  const int64_t count = element_count(std::span<const int64_t>(initializer.dims().data(), initializer.dims_size()));
  if (count < 0 || initializer.dims_size() > static_cast<int>(kMaxRank)) return fact;
  fact.shape = Shape(initializer.dims().begin(), initializer.dims().end());
  fact.foldable = count <= Facts::kMaxConstantElements && fact.type != onnx::TensorProto::STRING;
  if (count > kMaxIntegers || !is_integer(fact.type)) return fact;
  const Expected<Tensor> tensor = to_tensor(initializer, tensors_);
  if (tensor) fact.integers = integers_of(*tensor);
  return fact;
}

const IntegerData* FactStore::elements(const Value& value) {
  const ValueFact& known = computed(value);
  if (known.integers) return &*known.integers;
  if (!is_integer(known.type) || !known.shape || known.shape->size() > 1) return nullptr;
  const std::optional<int64_t> count = element_count(*known.shape);
  if (!count || *count > kMaxUnknownElements) return nullptr;
  IntegerData data;
  for (const Dim& dim : *known.shape) data.dims.push_back(dim.value());
  for (int i = 0; i < *count; ++i) data.values.push_back(Dim::unknown_integer(hint(value), i));
  ValueFact* found = facts_.find(value);
  if (!found) return nullptr;
  found->integers = std::move(data);
  return &*found->integers;
}

std::string equation_text(const Dim& one, const Dim& other) { return one.str() + " = " + other.str(); }

void FactStore::demand(const Dim& one, const Dim& other, bool broadcasts, const Node& node) {
  if (!proven_ || one == other) return;
  const std::string text = (broadcasts ? "~ " : "") + equation_text(one, other);
  if (demanded_.emplace(node.graph, text).second) demands_.push_back({one, other, broadcasts, &node});
}

void FactStore::demand_positive(const Dim& size, const Node& node) {
  if (proven_ && !size.is_constant() && demanded_.emplace(node.graph, "> " + size.str()).second)
    positive_demands_.push_back({size, &node});
}

void FactStore::assume_equal(const Dim& one, const Dim& other, const Node& node) {
  if (one == other) return;
  const auto [known, is_new] = assumed_.try_emplace(equation_text(one, other), assumptions_.size());
  if (!is_new) return assumptions_[known->second].nodes.push_back(&node);
  for (const Dim* dim : {&one, &other})
    for (const AtomRef& atom : dim->atoms()) assumptions_of_symbol_[atom->name].push_back(assumptions_.size());
  assumptions_.push_back({one, other, {&node}});
}

bool FactStore::is_assumed_equal(const Dim& one, const Dim& other) const {
  return !assumed_.empty() && (assumed_.count(equation_text(one, other)) || assumed_.count(equation_text(other, one)));
}

std::vector<const SizeAssumption*> FactStore::assumptions_about(const std::set<std::string>& symbols) const {
  std::set<size_t> indices;
  for (const std::string& symbol : symbols)
    if (const auto found = assumptions_of_symbol_.find(symbol); found != assumptions_of_symbol_.end())
      indices.insert(found->second.begin(), found->second.end());
  std::vector<const SizeAssumption*> about;
  for (const size_t index : indices) about.push_back(&assumptions_[index]);
  return about;
}

const Opsets& FactStore::opsets(const Node& node) {
  const bool is_of_file = node.placement == Placement::kOfFile;
  const auto [found, added] = opsets_.try_emplace(is_of_file ? node.graph : nullptr);
  if (added) found->second[""] = view_.onnx_opset(node);
  return found->second;
}

const std::string& FactStore::hint(const Value& value) {
  std::string& hint = hints_[&value];
  if (hint.empty()) {
    const int count = ++hint_counts_[value.name];
    hint = hint_prefix_ + value.name + (count > 1 || value.name.empty() ? "~" + std::to_string(count) : "");
  }
  return hint;
}

std::optional<int64_t> element_count(const Shape& shape) {
  std::vector<int64_t> dims;
  for (const Dim& dim : shape) {
    if (!dim.is_constant()) return std::nullopt;
    dims.push_back(dim.value());
  }
  const int64_t count = element_count(std::span<const int64_t>(dims));
  return count < 0 ? std::nullopt : std::optional(count);
}

}  // namespace attn_opt
