#include "src/graph/provenance.h"

#include <charconv>
#include <map>
#include <string_view>

namespace attn_opt {
namespace {

constexpr std::string_view kScopes = "pkg.torch.onnx.name_scopes", kStack = "pkg.torch.onnx.stack_trace",
                           kRewriterRule = "pkg.onnxscript.rewriter.rule_name";

std::string_view metadata(const Node& node, std::string_view key) {
  for (const auto& property : node.proto->metadata_props())
    if (property.key() == key) return property.value();
  return {};
}

/// The texts of a list as Python prints it: ['', 'model', 'softmax'].
std::vector<std::string> python_list(std::string_view text) {
  std::vector<std::string> elements;
  for (size_t at = 0; at < text.size(); ++at) {
    const char quote = text[at];
    if (quote != '\'' && quote != '"') continue;
    const size_t end = text.find(quote, at + 1);
    if (end == std::string_view::npos) break;
    elements.emplace_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return elements;
}

/// "/model/layers/layers.0/attn/Softmax" is the Softmax of layers.0.attn: TorchScript's exporter begins again at a list's
/// element.
std::string module_of_path(std::string_view name) {
  if (!name.starts_with('/')) return {};
  std::string module;
  for (size_t end = name.find('/', 1); end != std::string_view::npos; end = name.find('/', 1)) {
    const std::string_view part = name.substr(1, end - 1), next = name.substr(end + 1);
    const bool is_begun_again = next.starts_with(part) && next.substr(part.size()).starts_with('.');
    if (!is_begun_again) module.append(module.empty() ? "" : ".").append(part);
    name = name.substr(end);
  }
  return module;
}

struct Frame {
  std::string file;
  int line = 0;
};

/// Of a line of Python's traceback: File "src/a.py", line 10, in forward.
Frame frame_of(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const size_t begin = line.find(kFile), end = line.find(kLine);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + kFile.size()) return {};
  const std::string_view number = line.substr(end + kLine.size());
  Frame frame = {std::string(line.substr(begin + kFile.size(), end - begin - kFile.size())), 0};
  std::from_chars(number.data(), number.data() + number.size(), frame.line);
  return frame;
}

/// The one to show of a traceback, whose last call is the innermost.
Frame shown_frame(std::string_view trace) {
  Frame shown;
  bool is_users = false;
  while (!trace.empty()) {
    const size_t end = trace.find('\n');
    Frame frame = frame_of(trace.substr(0, end));
    trace = end == std::string_view::npos ? std::string_view() : trace.substr(end + 1);
    if (frame.line <= 0 || (is_users && is_installed(frame.file))) continue;
    is_users = !is_installed(frame.file);
    shown = std::move(frame);
  }
  return shown;
}

void add_all(const Node& node, std::map<std::string, std::string>& merged) {
  for (const auto& property : node.proto->metadata_props()) {
    if (property.value().empty()) continue;
    std::string& value = merged[property.key()];
    if (value.empty())
      value = property.value();
    else if (property.key() == kRewriterRule)
      value += ", " + property.value();
  }
}

}  // namespace

Provenance provenance_of(const Node& node) {
  const auto scopes = python_list(metadata(node, kScopes));  // the last is the operator's own
  Frame frame = shown_frame(metadata(node, kStack));
  return {scopes.size() < 2 ? module_of_path(node.label()) : scopes[scopes.size() - 2], std::move(frame.file), frame.line};
}

bool is_installed(const std::string& file) {
  return file.starts_with('<') || file.find("site-packages/") != std::string::npos ||
         file.find("dist-packages/") != std::string::npos;
}

void carry_metadata(const std::vector<const Node*>& replaced, const std::vector<Node*>& made) {
  std::map<std::string, std::string> merged;
  for (const Node* node : replaced) add_all(*node, merged);
  for (Node* node : made) {
    if (!node->proto->metadata_props().empty()) continue;
    for (const auto& [key, value] : merged) {
      auto* property = node->proto->add_metadata_props();
      property->set_key(key);
      property->set_value(value);
    }
  }
}

}  // namespace attn_opt
