#include "tests/metamorphic/graph_text.h"

#include <cmath>
#include <sstream>

namespace attn_opt {
namespace {

template <class T>
std::string joined_with_commas(const std::vector<T>& items) {
  std::ostringstream text;
  for (size_t i = 0; i < items.size(); ++i) text << (i ? ", " : "") << items[i];
  return text.str();
}

/// NUMBER as an element of TYPE: halves are their bits.
std::string element(DataType type, double number) {
  if (type == onnx::TensorProto::FLOAT16) return std::to_string(Half(static_cast<float>(number)).bits);
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::ostringstream text;
  text.precision(type == onnx::TensorProto::DOUBLE ? 17 : 9);
  text << number;
  const bool is_whole = text.str().find_first_of(".e") == std::string::npos;
  return text.str() + (is_whole ? ".0" : "");
}

std::string in_brackets(const std::vector<std::string>& sizes) {
  std::string text;
  for (const std::string& size : sizes) {
    const bool is_expression = size.find(' ') != std::string::npos;
    text += (text.empty() ? "" : ",") + (is_expression ? "\"" + size + "\"" : size);
  }
  return "[" + text + "]";
}

void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : ",\n     ") + item; }

}  // namespace

std::string syntax_name(DataType type) {
  if (type == onnx::TensorProto::FLOAT16) return "float16";
  return type == onnx::TensorProto::DOUBLE ? "double" : "float";
}

std::string GraphText::input(const std::string& name, const std::string& type, const std::vector<std::string>& sizes) {
  append(inputs_, type + in_brackets(sizes) + " " + name);
  return name;
}

std::string GraphText::float_input(const std::string& name, const std::vector<std::string>& sizes) {
  return input(name, syntax_name(type_), sizes);
}

void GraphText::output(const std::string& name, const std::string& type, const std::vector<std::string>& sizes) {
  append(outputs_, type + in_brackets(sizes) + " " + name);
}

void GraphText::float_output(const std::string& name, const std::vector<std::string>& sizes) {
  output(name, syntax_name(type_), sizes);
}

std::string GraphText::node(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes) {
  return node_called(fresh(), op, inputs, attributes);
}

std::string GraphText::node_called(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                                   const std::string& attributes) {
  nodes_ += "  " + name + " = " + op + (attributes.empty() ? "" : " <" + attributes + ">") + " (" + joined_with_commas(inputs) +
            ")\n";
  return name;
}

std::string GraphText::commuted(const std::string& op, const std::string& one, const std::string& other) {
  return random_.coin() ? node(op, {one, other}) : node(op, {other, one});
}

std::string GraphText::transpose(const std::string& value, const std::vector<int>& perm) {
  return node("Transpose", {value}, "perm = [" + joined_with_commas(perm) + "]");
}

std::string GraphText::reshape(const std::string& value, const std::vector<int64_t>& sizes) {
  return node("Reshape", {value, ints(sizes)});
}

std::string GraphText::constant(const std::string& type, const std::string& dims, const std::string& elements) {
  const std::string name = fresh();
  const std::string value = type + dims + " " + name + " = {" + elements + "}";
  if (random_.coin())
    append(initializers_, value);
  else
    nodes_ += "  " + name + " = Constant <value = " + type + dims + " {" + elements + "}> ()\n";
  return name;
}

std::string GraphText::number(double number) { return number_of(type_, number); }

std::string GraphText::number_of(DataType type, double number) {
  return constant(syntax_name(type), random_.coin() ? "[1]" : "", element(type, number));
}

std::string GraphText::ints(const std::vector<int64_t>& values) {
  return constant("int64", "[" + std::to_string(values.size()) + "]", joined_with_commas(values));
}

std::string GraphText::size_of(const std::string& value, int axis) {
  const std::string shape = node("Shape", {value});
  switch (random_.below(3)) {
    case 0: return node("Slice", {shape, ints({axis}), ints({axis + 1})});
    case 1: return node("Gather", {shape, ints({axis})}, "axis = 0");
    default: return node("Shape", {value}, "start = " + std::to_string(axis) + ", end = " + std::to_string(axis + 1));
  }
}

std::string GraphText::text(const std::string& name) const {
  return "<ir_version: 8, opset_import: [\"\" : 17]>\n" + name + " (" + inputs_ + ")\n    => (" + outputs_ + ")\n" +
         (initializers_.empty() ? "" : "<" + initializers_ + ">\n") + "{\n" + nodes_ + "}\n";
}

}  // namespace attn_opt
