#include "patterns/readers.h"

#include <algorithm>
#include <unordered_set>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/cut_range.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

/// Nodes looked at below one reader.
constexpr int kMaxReaderSteps = 64;
/// Nodes that together may make a copy: a Transpose and the one that undoes it.
constexpr size_t kMaxRoundTrip = 8;

class Search {
 public:
  Search(Value& value, Facts& facts) : source_(canonical(value, facts)), facts_(facts) { copies_.push_back(&value); }

  Readers run() {
    for (size_t i = 0; i < copies_.size() && i < kMaxReaderSteps; ++i) visit(*copies_[i]);
    found_.is_sized =
        std::ranges::any_of(found_.all, [this](const Reader& reader) { return is_shape(reader) && !serves_these(reader); });
    std::erase_if(found_.all, [this](const Reader& reader) { return only_says_size(reader); });
    return std::move(found_);
  }

 private:
  /// The copies that a reader and those behind it make, and whether they make anything else.
  struct WaysBack {
    std::vector<Value*> copies;
    bool are_all = true;
  };

  void visit(Value& copy) {
    found_.is_output = found_.is_output || copy.is_output;
    for (const Use& use : copy.uses) {
      const WaysBack back = use.node && use.node->graph == copy.graph ? ways_back(*use.node) : WaysBack{{}, false};
      for (Value* below : back.copies)
        if (std::ranges::find(copies_, below) == copies_.end()) copies_.push_back(below);
      if (back.are_all) continue;
      const bool may_be_sized = use.node && use.node->graph == copy.graph && use.input == 0;
      const std::vector<Node*> shapes = may_be_sized ? shapes_of(*use.node) : std::vector<Node*>();
      for (Node* shape : shapes) found_.all.push_back({shape, 0, &copy});
      if (shapes.empty()) found_.all.push_back({use.node, use.input, &copy});
    }
  }

  /// What NODE leads to.
  WaysBack ways_back(Node& node) {
    std::vector<Node*> way;
    if (Node* joint = joint_of_parts(node, way); joint && &canonical(*joint->outputs[0], facts_) == &source_) {
      makers_.insert(way.begin(), way.end());
      return {{joint->outputs[0]}};
    }
    way.clear();
    looked_at_ = 0;
    return ways_behind(node, way);
  }

  /// The same of NODE behind WAY.
  WaysBack ways_behind(Node& node, std::vector<Node*>& way) {
    const bool is_too_far = way.size() == kMaxRoundTrip || ++looked_at_ > kMaxReaderSteps;
    if (is_too_far || !may_be_copy(node) || (way.empty() && takes_back_alone(node))) return {{}, false};
    Value* made = node.is("Split") ? only_output(node) : node.output(0);
    if (!made) return {{}, false};
    way.push_back(&node);
    WaysBack back{{}, !made->is_output};
    if (&canonical(*made, facts_) == &source_) {
      makers_.insert(way.begin(), way.end());
      back = {{made}};
    } else if (is_reversible(node) || may_be_undone(node) || is_no_op(node, facts_)) {
      const std::vector<Node*> readers = computing_readers(*made);
      back.are_all &= !readers.empty();
      for (Node* reader : readers) {
        const WaysBack own = reader->graph == node.graph ? ways_behind(*reader, way) : WaysBack{{}, false};
        back.copies.insert(back.copies.end(), own.copies.begin(), own.copies.end());
        back.are_all &= own.are_all;
      }
    } else {
      back.are_all = false;
    }
    way.pop_back();
    return back;
  }

  /// The Concat that alone reads what NODE cuts out, or copies of that, and in WAY all nodes to there; null if there are other
  /// readers.
  static Node* joint_of_parts(Node& node, std::vector<Node*>& way) {
    Node* joint = nullptr;
    if (!cuts_out(node)) return nullptr;
    way.push_back(&node);
    for (const Value* part : node.outputs) {
      Node* reader = part ? joint_behind_copies(*part, way) : nullptr;
      if (!reader || reader->graph != node.graph || (joint && reader != joint)) return nullptr;
      joint = reader;
    }
    return joint;
  }

  /// The Concat of several parts that PART comes to by what may be copies; enters it and these in WAY.
  static Node* joint_behind_copies(const Value& part, std::vector<Node*>& way) {
    const Value* value = &part;
    for (size_t step = 0; step < kMaxRoundTrip && value && !value->is_output; ++step) {
      Node* reader = only_computing_reader(*value);
      if (!reader || !(reader->is("Concat") || may_be_copy(*reader))) return nullptr;
      way.push_back(reader);
      if (reader->is("Concat") && reader->inputs.size() > 1) return reader;
      value = reader->output(0);
    }
    return nullptr;
  }

  /// The Shapes that NODE, which may be a copy, is or that alone read what it makes; empty if something else does.
  static std::vector<Node*> shapes_of(Node& node, int steps = 3) {
    if (node.is("Shape")) return {&node};
    std::vector<Node*> shapes;
    if (steps == 0 || !may_be_no_op(node) || !node.output(0) || node.output(0)->is_output) return {};
    for (const Use& use : node.output(0)->uses) {
      const std::vector<Node*> own = use.node ? shapes_of(*use.node, steps - 1) : std::vector<Node*>();
      if (own.empty()) return {};
      shapes.insert(shapes.end(), own.begin(), own.end());
    }
    return shapes;
  }

  /// The nodes that read VALUE, apart from those that say a size to one of them or to one behind it; none if other graphs or
  /// sizes for others do.
  static std::vector<Node*> computing_readers(const Value& value) {
    std::vector<Node*> readers;
    std::vector<const Node*> shapes;
    for (const Use& use : value.uses) {
      const std::vector<Node*> own = use.node ? shapes_of(*use.node) : std::vector<Node*>();
      shapes.insert(shapes.end(), own.begin(), own.end());
      if (!own.empty()) continue;
      if (!use.node) return {};
      readers.push_back(use.node);
    }
    std::ranges::sort(readers, {}, &Node::id);
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());  // NOLINT(modernize-use-ranges)
    const auto is_reader = [&readers](const Node* node) {
      return node && std::ranges::binary_search(readers, node->id, {}, &Node::id);
    };
    const auto is_told = [&](const Node& node) {
      return is_reader(&node) || (node.input(0) && is_reader(node.input(0)->producer));
    };
    for (const Node* shape : shapes)
      if (!only_read_as_shape(*shape, is_told)) return {};
    return readers;
  }

  /// The one of computing_readers(); null if there are others.
  static Node* only_computing_reader(const Value& value) {
    const std::vector<Node*> readers = computing_readers(value);
    return readers.size() == 1 ? readers[0] : nullptr;
  }

  /// Cheap, since it is asked of every reader: false for what is no part of a copy.
  static bool may_be_copy(const Node& node) {
    return may_be_no_op(node) || is_reversible(node) || cuts_out(node) || takes_back_alone(node) || node.is("SplitToSequence");
  }

  /// True for what makes no copy but of what others made before.
  static bool takes_back_alone(const Node& node) {
    static constexpr OperatorSet kOfSingleElements = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"};
    return kOfSingleElements.has(node) || node.is("ConcatFromSequence");
  }

  /// True for what a cut may take out again as it was, or another order undo.
  static bool may_be_undone(const Node& node) {
    static constexpr OperatorSet kUndone = {"Pad", "Concat", "Tile", "Slice", "Gather"};
    return kUndone.has(node) || node.is("SplitToSequence");
  }

  /// The one output of NODE that is read; null if none or several are.
  static Value* only_output(const Node& node) {
    Value* only = nullptr;
    for (Value* output : node.outputs) {
      if (!output || (output->uses.empty() && !output->is_output)) continue;
      if (only) return nullptr;
      only = output;
    }
    return only;
  }

  static bool is_reversible(const Node& node) {
    static constexpr OperatorSet kReversible = {"Cast", "Not", "Log", "Exp"};
    return has(node, Trait::kKeepsAll) || kReversible.has(node) || !node.bodies.empty();
  }

  static bool is_shape(const Reader& reader) { return reader.node && reader.node->is("Shape"); }

  /// True if SHAPE serves nothing but copies, and nodes that read one.
  bool serves_these(const Reader& shape) const {
    return only_read_as_shape(*shape.node, [this](const Node& node) { return takes_shape(node); });
  }

  bool only_says_size(const Reader& reader) const {
    return is_shape(reader) && (facts_.integers(*reader.node->outputs[0]) || serves_these(reader));
  }

  /// True if all that comes of SHAPE, within a few nodes of shape arithmetic, is the second input of nodes that IS_TAKER.
  template <class IsTaker>
  static bool only_read_as_shape(const Node& shape, IsTaker is_taker) {
    std::vector<const Value*> pending{shape.outputs[0]};
    for (int step = 0; step < kMaxReaderSteps && !pending.empty(); ++step) {
      const Value* next = pending.back();
      pending.pop_back();
      if (next->is_output) return false;
      for (const Use& use : next->uses) {
        if (use.node && use.input == 1 && is_taker(*use.node)) continue;
        if (!use.node || use.node->graph != shape.graph || !use.node->bodies.empty()) return false;
        for (const Value* made : use.node->outputs)
          if (made) pending.push_back(made);
      }
    }
    return pending.empty();
  }

  /// True for a node that makes a copy, or reads one, and whose second input may be a shape.
  bool takes_shape(const Node& node) const {
    if (makers_.contains(&node)) return true;
    return (node.is("Reshape") || node.is("Expand")) &&
           std::ranges::any_of(found_.all, [&node](const Reader& reader) { return reader.node == &node && reader.input == 0; });
  }

  Value& source_;
  Facts& facts_;
  std::vector<Value*> copies_;
  std::unordered_set<const Node*> makers_;  ///< of copies
  Readers found_;
  int looked_at_ = 0;  ///< nodes, below one reader
};

}  // namespace

Readers readers_of(Value& value, Facts& facts) { return Search(value, facts).run(); }

bool leads_alone_to(const Reader& reader, const Node& end, Facts& facts) {
  Reader next = reader;
  for (size_t step = 0; step < kMaxRoundTrip && next.node; ++step) {
    if (next.node == &end) return true;
    const bool moves = has(*next.node, Trait::kKeepsAll) || next.node->is("Cast");
    const Readers readers = moves && next.input == 0 ? readers_of(*next.node->outputs[0], facts) : Readers();
    if (!readers.only_one()) return false;
    next = readers.all[0];
  }
  return false;
}

bool is_made_of(const Value& value, const Value& source) {
  std::unordered_set<const Value*> seen{&value};
  std::vector<const Value*> pending{&value};
  while (!pending.empty()) {
    const Value* next = pending.back();
    pending.pop_back();
    if (next == &source) return true;
    // What the graph is given is made by nothing, and may be read anywhere.
    if (!next->producer || (source.producer && next->producer->position < source.producer->position)) continue;
    for (const Value* input : next->producer->inputs)
      if (input && seen.insert(input).second) pending.push_back(input);
  }
  return false;
}

}  // namespace attn_opt
