#include "src/opset/site_key.h"

#include <algorithm>

namespace attn_opt {
namespace {

/// Sizes of one node. Symbols are numbered in the order in which they come, unless some size is computed from
/// others.
class SizeTexts {
 public:
  explicit SizeTexts(const RaiseSite& site) {
    for (size_t i = 0; i < site.node().inputs.size(); ++i) {
      const MaybeShape shape = site.shape(i);
      if (shape) by_name_ |= std::ranges::any_of(*shape, is_computed);
    }
  }

  void append(const Shape& shape, std::string& text) {
    for (const Dim& size : shape) {
      text += size.is_constant() ? ' ' : '#';
      if (size.is_constant())
        text += std::to_string(size.value());
      else
        text += by_name_ ? size.str() : number_of(size);
    }
  }

 private:
  static bool is_computed(const Dim& size) {
    if (size.is_constant()) return false;
    const Dim::Term& term = size.terms().front();
    return size.terms().size() > 1 || term.coefficient != 1 || term.factors.size() > 1 ||
           term.factors.front()->kind != Atom::Kind::kSymbol;
  }

  std::string number_of(const Dim& size) {
    const std::string& name = size.terms().front().factors.front()->name;
    const auto number = std::ranges::find(symbols_, name) - symbols_.begin();
    if (number == std::ssize(symbols_)) symbols_.push_back(name);
    return std::to_string(number);
  }

  bool by_name_ = false;
  std::vector<std::string> symbols_;
};

void append_input(const RaiseSite& site, size_t i, SizeTexts& sizes, std::string& key) {
  key += '\n';
  if (site.node().inputs[i] == nullptr) return;
  key += std::to_string(site.type(i));
  if (const Tensor* constant = site.constant(i))
    key += '=' + to_proto(*constant).SerializeAsString();
  else if (const MaybeShape shape = site.shape(i))
    sizes.append(*shape, key);
  else
    key += '?';
}

}  // namespace

std::string site_key(const RaiseSite& site) {
  const Node& node = site.node();
  std::string key = node.op();
  for (const auto& attribute : node.proto->attribute()) attribute.AppendToString(&key);
  SizeTexts sizes(site);
  for (size_t i = 0; i < node.inputs.size(); ++i) append_input(site, i, sizes, key);
  key += '\n';
  for (const Value* output : node.outputs) key += output == nullptr ? '-' : output->unused() ? 'u' : 'r';
  return key;
}

}  // namespace attn_opt
