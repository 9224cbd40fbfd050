#include "src/io/text_format.h"

#include <onnx/defs/parser.h>
#include <onnx/defs/printer.h>

#include <algorithm>
#include <cctype>
#include <exception>

#include "attn_opt/internal/model_walk.h"
#include "src/io/one_line.h"

namespace attn_opt {
namespace {

// ONNX's parser recurses once a bracket. What is within this limit is also within protobuf's when it is written.
constexpr int kMaxBracketDepth = 30;

/// Calls VISIT(c, line) for what of TEXT stands neither in comments nor in strings, until it returns false.
template <class Visit>
void for_each_sign(std::string_view text, Visit visit) {
  int line = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (!visit(c, line)) {
      return;
    }
  }
}

/// Line (from 1) of the first bracket that is nested too deep; 0 if none is.
int line_nested_too_deep(std::string_view text) {
  int depth = 0, found = 0;
  for_each_sign(text, [&](char c, int line) {
    if (c == '(' || c == '[' || c == '{') {
      if (++depth > kMaxBracketDepth) found = line;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
    return found == 0;
  });
  return found;
}

/// ONNX says "[ParseError at position (line: L column: C)]\nError context: TEXT\nREASON".
std::string parse_error(const std::string& message) {
  const auto between = [&message](const std::string& before, const std::string& after) -> std::string {
    const size_t begin = message.find(before);
    if (begin == std::string::npos) return {};
    const size_t from = begin + before.size();
    return message.substr(from, message.find(after, from) - from);
  };
  const std::string line = between("(line: ", " "), column = between("column: ", ")");
  if (line.empty()) return one_line(message);
  const std::string context = between("Error context: ", "\n");
  const size_t reason = message.rfind('\n', message.find_last_not_of('\n'));
  return one_line("line " + line + ", column " + column + ": " + message.substr(reason + 1) + " (in: " + context + ")");
}

/// What of MODEL the syntax has no words for and a reader would miss; empty if nothing.
std::string inexpressible(const onnx::ModelProto& model) {
  if (model.training_info_size() > 0) return "training information";
  std::string found;
  for (const onnx::FunctionProto& function : model.functions())
    if (function.attribute_size() + function.attribute_proto_size() > 0)
      found = "attributes of the function '" + function.name() + "', which ONNX's printer leaves out";
  for_each_graph(model, [&found](const onnx::GraphProto& graph) {
    if (graph.sparse_initializer_size() > 0) found = "a sparse initializer";
  });
  return found;
}

/// What PARSE makes of TEXT.
template <class Parsed, class Parse>
Expected<Parsed> parsed(std::string_view text, const std::string& where, Parse parse) {
  if (const int line = line_nested_too_deep(text); line > 0) {
    return fail(ErrorCode::kLimit, where,
                "line " + std::to_string(line) + ": brackets are nested deeper than " + std::to_string(kMaxBracketDepth));
  }
  Parsed result;
  try {
    onnx::OnnxParser parser(text);
    const auto status = parse(parser, result);
    if (!status.IsOK()) return fail(ErrorCode::kInvalidInput, where, parse_error(status.ErrorMessage()));
    if (!parser.EndOfInput()) return fail(ErrorCode::kInvalidInput, where, "there is more text behind its end");
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalidInput, where, one_line(error.what()));
  }
  return result;
}

}  // namespace

Expected<onnx::ModelProto> parse_text(std::string_view text, const std::string& where) {
  return parsed<onnx::ModelProto>(text, where,
                                  [](onnx::OnnxParser& parser, onnx::ModelProto& model) { return parser.Parse(model); });
}

Expected<std::vector<onnx::FunctionProto>> parse_functions(std::string_view text, const std::string& where) {
  using Functions = std::vector<onnx::FunctionProto>;
  return parsed<Functions>(text, where, [](onnx::OnnxParser& parser, Functions& functions) {
    auto status = onnx::Common::Status::OK();
    while (status.IsOK() && !parser.EndOfInput()) status = parser.Parse(functions.emplace_back());
    return status;
  });
}

std::vector<int> operator_lines(std::string_view text) {
  std::vector<int> lines;
  bool in_body = false, in_attributes = false, is_next = false;
  for_each_sign(text, [&](char c, int line) {
    if (is_next && !std::isspace(static_cast<unsigned char>(c))) {
      lines.push_back(line);
      is_next = false;
    }
    if (c == '{' || c == '}') in_body = c == '{';
    if (c == '<' || c == '>') in_attributes = c == '<';
    if (c == '=' && in_body && !in_attributes) is_next = true;  // of the attributes' signs none stands outside of <>
    return true;
  });
  return lines;
}

std::string print_function(const onnx::FunctionProto& function) { return onnx::ProtoToString(function) + "\n"; }

Expected<std::string> print_text(const onnx::ModelProto& model, const std::string& where) {
  const auto cannot = [&where](const std::string& reason) {
    return fail(ErrorCode::kOutput, where, "the model cannot be written as text: " + reason, "write it as .onnx");
  };
  if (const std::string found = inexpressible(model); !found.empty()) return cannot("it has " + found);
  std::string text;
  try {
    text = onnx::ProtoToString(model) + "\n";
  } catch (const std::exception& error) {
    return cannot(one_line(error.what()));
  }
  // The printer writes "..." for what it cannot print, and writes on.
  if (const auto parsed = parse_text(text, where); !parsed) return cannot(parsed.error().what);
  return text;
}

}  // namespace attn_opt
