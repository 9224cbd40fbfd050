#include "src/optimizer/graph_part.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "src/graph/operator_name.h"
#include "src/io/number_text.h"

namespace attn_opt {
namespace {

constexpr size_t kMostVisited = 512;
constexpr int kMostInts = 8;
constexpr size_t kLongestText = 40;

/// Sizes, axes and indices: small integers that say how a node moves what it reads, and are no part of the computation.
bool says_sizes(const Value& value, Facts& facts) {
  const DataType type = facts.type(value);
  if (type != onnx::TensorProto::INT64 && type != onnx::TensorProto::INT32) return false;
  const MaybeShape shape = facts.shape(value);
  return shape && shape->size() <= 1;
}

bool is_constant(const Value& value, Facts& facts) { return value.is_stored() || facts.scalar(value); }

std::string ints_text(const google::protobuf::RepeatedField<int64_t>& ints) {
  if (ints.size() > kMostInts) return std::to_string(ints.size()) + " numbers";
  std::string text;
  for (const int64_t number : ints) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

std::optional<std::string> attribute_text(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT: return std::to_string(attribute.i());
    case onnx::AttributeProto::FLOAT: return number_text(attribute.f());
    case onnx::AttributeProto::INTS: return ints_text(attribute.ints());
    case onnx::AttributeProto::STRING: return attribute.s().size() > kLongestText ? std::nullopt : std::optional(attribute.s());
    default: return std::nullopt;
  }
}

SiteGraph::Node drawn(const Node& node, SiteGraph::Node::Role role) {
  SiteGraph::Node result{node.label(), operator_name(node), role, {}};
  for (const auto& attribute : node.proto->attribute())
    if (auto text = attribute_text(attribute)) result.attributes.emplace_back(attribute.name(), *std::move(text));
  return result;
}

/// What an edit makes stands before its anchor, in the order in which it was made.
bool precedes(const Node* one, const Node* other) {
  return std::tie(one->position, one->id) < std::tie(other->position, other->id);
}

void enter_neighbours(const Node& node, Facts& facts, std::vector<const Node*>& found) {
  for (const Value* value : node.inputs)
    if (value && value->producer && !says_sizes(*value, facts)) found.push_back(value->producer);
  for (const Value* value : node.outputs) {
    if (!value || says_sizes(*value, facts)) continue;
    for (const Use& use : value->uses)
      if (use.node) found.push_back(use.node);
  }
}

}  // namespace

void GraphPart::add_above(const std::vector<const Value*>& ends, const std::function<bool(const Value&)>& is_leaf,
                          size_t most) {
  std::deque<const Value*> pending(ends.begin(), ends.end());
  std::set<const Value*> seen(ends.begin(), ends.end());
  const std::set<const Value*> first = seen;
  for (size_t added = 0; !pending.empty(); pending.pop_front()) {
    const Value& value = *pending.front();
    if (!value.producer ||
        (!first.contains(&value) && (is_leaf(value) || is_constant(value, facts_) || says_sizes(value, facts_))))
      continue;
    if (nodes_.contains(value.producer)) continue;
    if (added++ == most) {
      is_cut_ = true;
      return;
    }
    add(*value.producer);
    for (const Value* input : value.producer->inputs)
      if (input && seen.insert(input).second) pending.push_back(input);
  }
}

SiteGraph::Tensor GraphPart::tensor(const Value& value) {
  const auto final = finals_.find(&value);
  const Value& named = final == finals_.end() ? value : *final->second;
  SiteGraph::Tensor result;
  result.name = named.name;
  const DataType type = facts_.type(named);
  if (type != onnx::TensorProto::UNDEFINED) result.type = type_name(type);
  result.number = facts_.scalar(named);
  const MaybeShape shape = facts_.shape(named);
  if (!shape) return result;
  result.shape.emplace();
  for (const Dim& size : *shape) result.shape->push_back(size.str());
  return result;
}

std::vector<const Node*> GraphPart::in_order() const {
  std::vector<const Node*> nodes(nodes_.begin(), nodes_.end());
  std::ranges::sort(nodes, precedes);
  return nodes;
}

SiteGraph GraphPart::graph(const std::function<SiteGraph::Node::Role(const Node&)>& role, const TensorRoles& roles,
                           const std::vector<const Value*>& ends, const TensorRoles& inner) {
  SiteGraph result;
  result.is_cut = is_cut_;
  std::map<const Node*, int> numbers;
  std::map<const Value*, size_t> places;
  const auto place_of = [&](const Value& value) {
    const auto [place, is_new] = places.emplace(&value, result.tensors.size());
    if (!is_new) return place->second;
    SiteGraph::Tensor made = tensor(value);
    if (value.producer && numbers.contains(value.producer)) made.from = numbers.at(value.producer);
    const bool is_inside = made.from >= 0 && std::ranges::find(ends, &value) == ends.end();
    const TensorRoles& known = is_inside || inner.contains(&value) ? inner : roles;
    if (const auto role_of_value = known.find(&value); role_of_value != known.end()) made.role = role_of_value->second;
    result.tensors.push_back(std::move(made));
    return place->second;
  };
  for (const Node* node : in_order()) {
    numbers[node] = static_cast<int>(result.nodes.size());
    result.nodes.push_back(drawn(*node, role(*node)));
    for (const Value* input : node->inputs) {
      if (!input || (!nodes_.contains(input->producer) && says_sizes(*input, facts_))) continue;
      std::vector<int>& to = result.tensors[place_of(*input)].to;
      if (std::ranges::find(to, numbers[node]) == to.end()) to.push_back(numbers[node]);
    }
  }
  for (const Value* end : ends) place_of(*end);
  return result;
}

std::vector<const Node*> way_between(const Node& one, const Node& other, Facts& facts) {
  std::map<const Node*, const Node*> reached = {{&one, nullptr}};
  std::deque<const Node*> pending = {&one};
  for (; !pending.empty() && reached.size() < kMostVisited && !reached.contains(&other); pending.pop_front()) {
    std::vector<const Node*> neighbours;
    enter_neighbours(*pending.front(), facts, neighbours);
    for (const Node* node : neighbours)
      if (reached.emplace(node, pending.front()).second) pending.push_back(node);
  }
  std::vector<const Node*> way;
  const auto found = reached.find(&other);
  if (found == reached.end()) return way;
  for (const Node* node = found->second; node && node != &one; node = reached.at(node)) way.push_back(node);
  return way;
}

}  // namespace attn_opt
