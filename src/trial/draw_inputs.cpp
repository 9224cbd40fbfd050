#include "src/trial/draw_inputs.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "attn_opt/shape.h"
#include "src/match/sizes/input_size.h"

namespace attn_opt {
namespace {

constexpr std::array<int64_t, 10> kSmallSizes = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};

struct DeclaredInput {
  std::string name;
  DataType type;
  Shape shape;
};

Dim declared_size(const onnx::TensorShapeProto::Dimension& dim, const std::string& input, int axis) {
  if (dim.has_dim_value()) return dim.dim_value();
  if (!dim.dim_param().empty()) return input_size(dim.dim_param());
  return Dim::symbol(input + "[" + std::to_string(axis) + "]");
}

Expected<DeclaredInput> declared(const onnx::ValueInfoProto& input) {
  const auto cannot = [&input](const std::string& why) {
    return fail(ErrorCode::kUnsupported, "input " + input.name(), why, "give its value with --test-data");
  };
  if (!input.type().has_tensor_type()) return cannot("only tensors can be drawn");
  const auto& tensor = input.type().tensor_type();
  if (!tensor.has_shape()) return cannot("no shape is declared to draw it from");
  DeclaredInput drawn{input.name(), static_cast<DataType>(tensor.elem_type()), {}};
  for (int axis = 0; axis < tensor.shape().dim_size(); ++axis) {
    drawn.shape.push_back(declared_size(tensor.shape().dim(axis), input.name(), axis));
  }
  return drawn;
}

std::vector<std::string> symbols_of(const std::vector<DeclaredInput>& inputs) {
  std::vector<std::string> symbols;
  std::unordered_set<std::string> seen;
  for (const DeclaredInput& input : inputs) {
    for (const Dim& dim : input.shape) {
      for (const AtomRef& atom : dim.atoms()) {
        if (atom->kind == Atom::Kind::kSymbol && seen.insert(atom->name).second) symbols.push_back(atom->name);
      }
    }
  }
  return symbols;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "there are none" : "there are " + list;
}

Expected<Sizes> sizes_for(const std::vector<std::string>& symbols, const Sizes& given) {
  Sizes sizes;
  size_t next = 0;
  for (const std::string& symbol : symbols) sizes[symbol] = kSmallSizes[next++ % kSmallSizes.size()];
  for (const auto& [name, size] : given) {
    auto found = sizes.find(name);
    if (found == sizes.end()) found = sizes.find(symbol_name(Dim::symbol(name)));  // "seq-len" is in quotes there
    if (found == sizes.end()) {
      return fail(ErrorCode::kUsage, name, "no input has a size of that name", listed(symbols));
    }
    found->second = size;
  }
  return sizes;
}

Expected<Dims> dims_of(const DeclaredInput& input, const Sizes& sizes) {
  Dims dims;
  for (const Dim& dim : input.shape) {
    const auto size = dim.evaluate([&sizes](const Atom& atom) -> std::optional<int64_t> {
      const auto found = sizes.find(atom.name);
      return found == sizes.end() ? std::nullopt : std::optional(found->second);
    });
    if (!size || *size < 0) {
      return fail(ErrorCode::kInvalidInput, "input " + input.name, "the size " + dim.str() + " has no value",
                  "give its symbols with --dim");
    }
    dims.push_back(*size);
  }
  return dims;
}

Status check_fills(const std::map<std::string, Fill>& fills, const std::vector<DeclaredInput>& inputs) {
  std::vector<std::string> names;
  names.reserve(inputs.size());
  for (const DeclaredInput& input : inputs) names.push_back(input.name);
  for (const auto& [name, fill] : fills) {
    if (std::ranges::find(names, name) == names.end()) {
      return fail(ErrorCode::kUsage, name, "no input of that name is to be filled", listed(names));
    }
  }
  return {};
}

}  // namespace

std::vector<const onnx::ValueInfoProto*> required_inputs(const onnx::GraphProto& graph) {
  std::unordered_set<std::string> initialized;
  for (const auto& tensor : graph.initializer()) initialized.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) initialized.insert(tensor.values().name());
  std::vector<const onnx::ValueInfoProto*> required;
  for (const auto& input : graph.input()) {
    if (!initialized.contains(input.name())) required.push_back(&input);
  }
  return required;
}

Expected<DrawnInputs> draw_inputs(const onnx::GraphProto& graph, const DrawOptions& options) {
  std::vector<DeclaredInput> inputs;
  for (const onnx::ValueInfoProto* required : required_inputs(graph)) {
    ATTN_OPT_TRY(DeclaredInput input, declared(*required));
    inputs.push_back(std::move(input));
  }
  ATTN_OPT_CHECK(check_fills(options.fills, inputs));
  DrawnInputs drawn;
  ATTN_OPT_TRY(drawn.sizes, sizes_for(symbols_of(inputs), options.sizes));

  size_t bytes_left = options.memory_limit;
  for (const DeclaredInput& input : inputs) {
    ATTN_OPT_TRY(const Dims dims, dims_of(input, drawn.sizes));
    const int64_t count = element_count(dims);
    if (count < 0 || static_cast<size_t>(count) > bytes_left / sizeof(double)) {
      return fail(ErrorCode::kLimit, "input " + input.name, "drawing it needs more memory than allowed",
                  "give smaller sizes with --dim");
    }
    bytes_left -= static_cast<size_t>(count) * sizeof(double);
    const auto chosen = options.fills.find(input.name);
    RandomNumbers random(hash_bytes(input.name, hash_bytes(std::to_string(options.seed))));
    auto tensor = filled(input.type, dims, chosen == options.fills.end() ? default_fill(input.type) : chosen->second, random);
    if (!tensor) return fail(tensor.error().code, "input " + input.name, tensor.error().what);
    drawn.feeds.emplace(input.name, *std::move(tensor));
  }
  return drawn;
}

Expected<std::vector<Tensor>> run_on(const Executor& executor, const DrawnInputs& inputs) {
  auto outputs = executor.run(inputs.feeds);
  if (outputs || inputs.sizes.empty() || outputs.error().code != ErrorCode::kInvalidInput) return outputs;
  std::string sizes;
  for (const auto& [symbol, size] : inputs.sizes) sizes += " " + symbol + "=" + std::to_string(size);
  outputs.error().remedy = "inputs were drawn with" + sizes + ": choose sizes that go together";
  return outputs;
}

}  // namespace attn_opt
