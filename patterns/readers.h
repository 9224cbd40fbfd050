// Who reads a value, seen through copies of it.
#pragma once

#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

struct Reader {
  Node* node = nullptr;  ///< null: an output of a nested graph
  int input = 0;
  Value* read = nullptr;  ///< the value, or a copy of it

  bool reads_type_alone() const { return node && node->is("CastLike") && input == 1; }
};

struct Readers {
  std::vector<Reader> all;
  bool is_output = false;  ///< the value, or a copy, is an output of its graph
  bool is_sized = false;   ///< sizes of it serve other nodes, for which what makes it may stay

  /// True if all that is made of the value is made by one reader.
  bool only_one() const { return all.size() == 1 && !is_output; }
};

/// What reads VALUE or a copy of it. Left out are the nodes that make the copies, and those that only say a size to one of
/// these nodes or readers: the shape of a Reshape.
Readers readers_of(Value& value, Facts& facts);

/// True if READER is END, or makes by moves and casts alone what END alone reads.
bool leads_alone_to(const Reader& reader, const Node& end, Facts& facts);

/// True if VALUE is SOURCE, which a node makes, or computed from it.
bool is_made_of(const Value& value, const Value& source);

}  // namespace attn_opt
