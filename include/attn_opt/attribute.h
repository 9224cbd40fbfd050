// Attributes of nodes from C++ values.
//
//   build.node("Softmax", {scores}, {{"axis", -1}});
//   build.node("Transpose", {x}, {{"perm", {0, 2, 1}}});
#pragma once

#include <onnx/onnx_pb.h>

#include <concepts>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attn_opt/tensor.h"

namespace attn_opt {

class GraphBuilder;

/// A name and a value: an integer or bool (INT), a float or double (FLOAT), a string, a tensor, a type, a body, or a list.
class Attribute {
 public:
  Attribute(onnx::AttributeProto proto) : proto_(std::move(proto)) {}  // NOLINT: the same
  template <class T>
    requires std::integral<T> || (std::is_enum_v<T> && std::convertible_to<T, int64_t>)
  Attribute(std::string name, T value) : Attribute(integer(std::move(name), static_cast<int64_t>(value))) {}
  template <std::floating_point T>
  Attribute(std::string name, T value) : Attribute(number(std::move(name), static_cast<float>(value))) {}
  Attribute(std::string name, std::string value);
  Attribute(std::string name, const char* value) : Attribute(std::move(name), std::string(value)) {}
  Attribute(std::string name, const std::vector<int64_t>& values);
  Attribute(std::string name, const std::vector<float>& values);
  Attribute(std::string name, const std::vector<std::string>& values);
  template <class T>
    requires std::is_arithmetic_v<T>
  Attribute(std::string name, std::initializer_list<T> values)
      : Attribute(std::move(name), std::vector<Element<T>>(values.begin(), values.end())) {}
  Attribute(std::string name, std::initializer_list<const char*> values)
      : Attribute(std::move(name), std::vector<std::string>(values.begin(), values.end())) {}
  Attribute(std::string name, const Tensor& value);
  Attribute(std::string name, onnx::TypeProto value);
  /// What BODY, which GraphBuilder::body() made, has now. BODY is finished: nothing can be added to it.
  Attribute(std::string name, const GraphBuilder& body);

  /// In a function: what the call gives as the function's attribute PARAMETER, which is of TYPE.
  static Attribute reference(std::string name, std::string parameter, onnx::AttributeProto::AttributeType type);

  const std::string& name() const { return proto_.name(); }
  const onnx::AttributeProto& proto() const { return proto_; }
  operator const onnx::AttributeProto&() const { return proto_; }  // NOLINT: the same

 private:
  template <class T>
  using Element = std::conditional_t<std::is_integral_v<T>, int64_t, float>;
  static onnx::AttributeProto integer(std::string name, int64_t value);
  static onnx::AttributeProto number(std::string name, float value);

  onnx::AttributeProto proto_;
};

/// In any order.
using Attributes = std::vector<Attribute>;

}  // namespace attn_opt
