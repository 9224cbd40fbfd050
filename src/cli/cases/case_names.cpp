// Names that say nothing of where a case comes from.
#include <map>

#include "attn_opt/shape.h"
#include "src/cli/cases/case_cut.h"

namespace attn_opt {
namespace {

class Names {
 public:
  explicit Names(std::string prefix) : prefix_(std::move(prefix)) {}

  const std::string& of(const std::string& old) {
    auto& name = names_[old];
    if (name.empty()) name = prefix_ + std::to_string(names_.size());
    return name;
  }

 private:
  std::string prefix_;
  std::map<std::string, std::string> names_;
};

/// "past + query" with its symbols renamed; what is no polynomial is one symbol.
std::string renamed(const std::string& expression, Names& symbols) {
  const Dim dim = Dim::parse(expression);
  std::string text;
  for (const Dim::Term& term : dim.terms()) {
    std::string product = term.factors.empty() || term.coefficient != 1 ? std::to_string(std::abs(term.coefficient)) : "";
    for (const AtomRef& atom : term.factors) product += (product.empty() ? "" : "*") + symbols.of(atom->name);
    text += text.empty() ? (term.coefficient < 0 ? "-" : "") : (term.coefficient < 0 ? " - " : " + ");
    text += product;
  }
  return text;
}

void rename_sizes(onnx::ValueInfoProto& info, Names& symbols) {
  if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return;
  for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
    if (!dim.dim_param().empty()) dim.set_dim_param(renamed(dim.dim_param(), symbols));
}

}  // namespace

void rename_all(onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  std::map<std::string, std::string> names{{"", ""}};
  Names symbols("d");
  auto enter = [&names, counts = std::map<char, int>()](const std::string& old, char role) mutable {
    if (!names.contains(old)) names[old] = role + std::to_string(++counts[role]);
  };
  for (const auto& input : graph.input()) enter(input.name(), 'x');
  for (const auto& tensor : graph.initializer()) enter(tensor.name(), 'c');
  for (const auto& output : graph.output()) enter(output.name(), 'y');
  for (auto& node : *graph.mutable_node()) {
    node.clear_name();
    for (auto& input : *node.mutable_input()) input = names[input];
    for (auto& output : *node.mutable_output()) {
      enter(output, node.op_type() == "Constant" ? 'c' : 'v');
      output = names[output];
    }
  }
  for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(names[tensor.name()]);
  for (auto* infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto& info : *infos) {
      info.set_name(names[info.name()]);
      rename_sizes(info, symbols);
    }
}

}  // namespace attn_opt
