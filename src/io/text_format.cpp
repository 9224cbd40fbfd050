#include "src/io/text_format.h"

#include <onnx/defs/parser.h>
#include <onnx/defs/printer.h>

#include <exception>

#include "attn_opt/model_walk.h"
#include "src/io/one_line.h"

namespace attn_opt {
namespace {

// ONNX's parser recurses once a bracket. What is within this limit is also within protobuf's when it is written.
constexpr int kMaxBracketDepth = 30;

/// Line (from 1) of the first bracket that is nested too deep; 0 if none is.
int line_nested_too_deep(std::string_view text) {
  int depth = 0, line = 1;
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
    } else if (c == '(' || c == '[' || c == '{') {
      if (++depth > kMaxBracketDepth) return line;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
  }
  return 0;
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
  const size_t reason = message.rfind("\n", message.find_last_not_of('\n'));
  return one_line("line " + line + ", column " + column + ": " + message.substr(reason + 1) + " (in: " + context + ")");
}

/// What of MODEL the syntax has no words for and a reader would miss; empty if nothing.
std::string inexpressible(const onnx::ModelProto& model) {
  if (model.training_info_size() > 0) return "training information";
  std::string found;
  for_each_graph(model, [&found](const onnx::GraphProto& graph) {
    if (graph.sparse_initializer_size() > 0) found = "a sparse initializer";
  });
  return found;
}

/// What PARSE makes of TEXT.
template <class Parsed, class Parse>
Expected<Parsed> parsed(std::string_view text, const std::string& where, Parse parse) {
  if (const int line = line_nested_too_deep(text); line > 0) {
    return fail(ErrorCode::kLimit, where, "line " + std::to_string(line) + ": brackets are nested deeper than " +
                                              std::to_string(kMaxBracketDepth));
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
  return parsed<onnx::ModelProto>(text, where, [](onnx::OnnxParser& parser, onnx::ModelProto& model) {
    return parser.Parse(model);
  });
}

Expected<std::vector<onnx::FunctionProto>> parse_functions(std::string_view text, const std::string& where) {
  using Functions = std::vector<onnx::FunctionProto>;
  return parsed<Functions>(text, where, [](onnx::OnnxParser& parser, Functions& functions) {
    auto status = onnx::Common::Status::OK();
    while (status.IsOK() && !parser.EndOfInput()) status = parser.Parse(functions.emplace_back());
    return status;
  });
}

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
