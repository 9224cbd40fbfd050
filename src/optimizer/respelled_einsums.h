// Einsums that say more than one thing at once, in plainer words for as long as attention is looked for: those of one operand
// that only move its axes, and those that map a product and add it up over what the map has its own of, as the heads of one
// matrix for each:
//
//   Einsum("abc->cab", x)  =>  Transpose(x)      Einsum("bhqk,bhkd,hde->bqe", p, v, w)  =>  Einsum("bhqd,hde->bqe", p v, w)
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <string>

namespace attn_opt {

class RespelledEinsums {
 public:
  /// Writes those of MODEL anew.
  explicit RespelledEinsums(onnx::ModelProto& model);
  /// Writes those that are left in MODEL as they were.
  void restore(onnx::ModelProto& model) const;

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  /// An Einsum as it was, and the two that stand for it.
  struct Split {
    onnx::NodeProto read, product, map;
  };

  void move_axes(onnx::NodeProto& node);
  /// Splits those of NODES; NAMES: what nodes make, to which those of the products are added.
  void split(Nodes& nodes, std::set<std::string>& names);
  void join(Nodes& nodes) const;

  std::multimap<std::string, onnx::NodeProto> read_;  ///< by the name of what they make
  std::map<std::string, Split> split_;                ///< by the name of the product
};

}  // namespace attn_opt
