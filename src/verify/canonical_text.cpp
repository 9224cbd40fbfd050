#include "src/verify/canonical_text.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "src/exec/layout/random_numbers.h"
#include "src/verify/draws.h"
#include "src/verify/mask_axes.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxVerbatim = 64;
constexpr size_t kUsualSize = 8192;
constexpr size_t kMaxKey = 40;  ///< longer than the id of any precondition

class SiteWriter {
 public:
  explicit SiteWriter(const SiteText& given) : given_(given) {}

  std::string write() {
    text_.reserve(kUsualSize);
    for (const auto& input : given_.site.inputs) add_input(input);
    for (const Value* value : given_.site.handed_over) add("handed", number_of(value));
    for (const Cone* cone : {&given_.site.before, &given_.site.after}) {
      text_ += "side\n";
      for (const Node* node : cone->nodes) add_node(*node);
    }
    for (const Value* value : given_.site.replaced) add("replaced", number_of(value));
    for (const Value* value : given_.site.written) add("written", number_of(value));
    add_description();
    return std::move(text_);
  }

 private:
  /// A line of KEY and NUMBER. There are hundreds for each site.
  void add(std::string_view key, int64_t number) {
    char line[kMaxKey + 24];
    char* end = std::ranges::copy(key.substr(0, kMaxKey), line).out;
    *end++ = ' ';
    end = std::to_chars(end, line + sizeof line - 1, number).ptr;
    *end++ = '\n';
    text_.append(line, static_cast<size_t>(end - line));
  }

  void add_real(double number) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::hex).ptr;
    text_.append(digits, end) += '\n';
  }

  /// BYTES, or what stands for them when they are many.
  void add_bytes(std::string_view bytes) {
    add("bytes", static_cast<int64_t>(bytes.size()));
    if (bytes.size() <= kMaxVerbatim)
      text_ += bytes;
    else
      add("hash", static_cast<int64_t>(hash_bytes(bytes)));
  }

  int64_t number_of(const Value* value) {
    if (!value) return -1;
    return numbers_.try_emplace(value, static_cast<int64_t>(numbers_.size())).first->second;
  }

  void add_dims(const Dims& dims) {
    for (const int64_t dim : dims) text_ += std::to_string(dim) + ' ';
    text_ += '\n';
  }

  void add_dim(const Dim& dim) {
    const auto known = std::ranges::find(dims_, dim, &std::pair<Dim, std::string>::first);
    if (known != dims_.end()) {
      text_ += known->second;
      return;
    }
    const size_t start = text_.size();
    for (const auto& sizes : given_.assignments) add("dim", sizes.of(dim).value_or(-1));
    dims_.emplace_back(dim, text_.substr(start));
  }

  void add_shape(const Shape& shape) {
    add("rank", static_cast<int64_t>(shape.size()));
    for (const Dim& dim : shape) add_dim(dim);
  }

  void add_input(const SiteInput& input) {
    add("input", number_of(input.value));
    add("type", input.type);
    add("source", static_cast<int64_t>(input.source));
    if (input.twin) add("twin", number_of(input.twin));
    add("role", static_cast<int64_t>(role_of(input, given_.sdpa)));
    const AxisRange keys = key_axes_of_mask(input, given_.sdpa);
    add("keys from", static_cast<int64_t>(keys.begin));
    add("keys to", static_cast<int64_t>(keys.end));
    add_real(input.uniform);
    add_shape(input.shape);
    for (const Dim& dim : input.integers.values) add_dim(dim);
    if (!input.fixed.has_value()) return;
    add_dims(input.fixed.dims());
    const auto bytes = input.fixed.bytes();
    add_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  void add_node(const Node& node) {
    ((text_ += node.proto->domain()) += '.') += node.op();
    ((text_ += ':') += node.proto->overload()) += '\n';
    add("opset", node.graph->model().opset(*node.graph, std::string(node.domain())));
    for (const auto& attribute : node.proto->attribute()) add_bytes(attribute.SerializeAsString());
    add_bytes(given_.read.text(node));
    for (const Value* value : reads_of(node)) add("reads", number_of(value));
    for (auto input : node.inputs) add("in", number_of(input));
    for (const Value* output : node.outputs) add("out", number_of(output));
  }

  void add_axes(const AxisMap& map) {
    (text_ += map.str()) += '\n';
    for (const Factor& factor : map.factors()) {
      add("role", static_cast<int64_t>(factor.role));
      add("repeated", factor.repeated);
      add_dim(factor.size);
    }
  }

  void add_operand(const Operand& operand) {
    for (const auto& view : operand.views) {
      add("view", number_of(view.value));
      add("past", number_of(view.past));
      add("present", number_of(view.present));
      add_real(view.scale);
      add_axes(view.axes);
    }
  }

  void add_description() {
    const Sdpa& sdpa = given_.sdpa;
    for (const Operand* operand : {&sdpa.q, &sdpa.k, &sdpa.v}) add_operand(*operand);
    for (const double number : {given_.emission.scale, sdpa.scale, sdpa.softcap}) add_real(number);
    for (const auto& scale : sdpa.tensor_scales) add(scale.divides ? "divisor" : "factor", number_of(scale.value));
    for (const auto& term : sdpa.terms) {
      add("term", static_cast<int64_t>(term.kind));
      add("value", number_of(term.value));
      add_real(term.coefficient);
      add_real(term.fill);
      add_shape(term.frame);
    }
    add("causal", sdpa.is_causal);
    add("lengths", number_of(sdpa.nonpad_kv_seqlen));
    for (const auto& output : sdpa.outputs) {
      add("output", number_of(output.value));
      add_axes(output.axes);
    }
    for (const auto& condition : given_.emission.preconditions)
      if (condition.id != kSizesNotEmpty)  // no run has such sizes
        add(condition.id, condition.proven ? 1 : condition.is_refinement ? 2 : 0);
  }

  const SiteText& given_;
  std::string text_;
  std::unordered_map<const Value*, int64_t> numbers_;
  std::vector<std::pair<Dim, std::string>> dims_;  ///< few, each in many places, and what was written of it
};

}  // namespace

std::string canonical_text(const SiteText& text) { return SiteWriter(text).write(); }

}  // namespace attn_opt
