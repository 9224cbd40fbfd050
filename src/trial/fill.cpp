#include "src/trial/fill.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "src/trial/infinity.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

using Kind = Fill::Kind;
constexpr double kLowest = std::numeric_limits<double>::lowest();

struct FillName {
  std::string_view name;
  Kind kind;
  size_t required;               ///< arguments that must be given
  std::vector<double> defaults;  ///< of the arguments after those
};

const std::vector<FillName>& fill_names() {
  static const std::vector<FillName> names = {
      {"normal", Kind::kNormal, 0, {}},
      {"uniform", Kind::kUniform, 2, {}},
      {"ones", Kind::kConstant, 0, {1}},
      {"zeros", Kind::kConstant, 0, {0}},
      {"const", Kind::kConstant, 1, {}},
      {"iota", Kind::kIota, 0, {}},
      {"bernoulli", Kind::kBernoulli, 1, {}},
      {"values", Kind::kValues, 1, {}},
      {"keep", Kind::kKeep, 1, {-kInfinity}},
      {"rows-one-empty", Kind::kRowsOneEmpty, 0, {-kInfinity}},
      {"lowest-row", Kind::kRowsOneEmpty, 0, {kLowest}},
      {"causal", Kind::kCausal, 0, {-kInfinity}},
  };
  return names;
}

std::optional<double> parse_number(std::string_view text) {
  if (text == "lowest") return kLowest;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

tl::unexpected<Error> not_a_fill(std::string_view text) {
  std::string known;
  for (const FillName& one : fill_names()) known += (known.empty() ? "" : ", ") + std::string(one.name);
  return fail(ErrorCode::kUsage, "", "'" + std::string(text) + "' is no way to fill an input", "there are " + known);
}

/// The numbers between brackets in TEXT, none if there are no brackets.
std::optional<std::vector<double>> parse_arguments(std::string_view text) {
  std::vector<double> arguments;
  if (text.empty()) return arguments;
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (true) {
    const size_t comma = text.find(',');
    const auto number = parse_number(text.substr(0, comma));
    if (!number) return std::nullopt;
    arguments.push_back(*number);
    if (comma == std::string_view::npos) return arguments;
    text.remove_prefix(comma + 1);
  }
}

/// Fills row by row: the last axis is a row, as the keys are in a mask.
class Filler {
 public:
  Filler(DataType type, const Dims& dims, const Fill& fill, RandomNumbers& random)
      : type_(type),
        dims_(dims),
        fill_(fill),
        random_(random),
        columns_(dims.empty() ? 1 : dims.back()),
        rows_(dims.size() < 2 ? 1 : dims[dims.size() - 2]) {}

  double at(int64_t index) {
    switch (fill_.kind) {
      case Kind::kNormal: return random_.normal();
      case Kind::kUniform: return uniform();
      case Kind::kConstant: return argument(0);
      case Kind::kIota: return static_cast<double>(index);
      case Kind::kBernoulli: return random_.uniform() < argument(0) ? 1 : 0;
      case Kind::kValues: return argument(static_cast<size_t>(index) % fill_.arguments.size());
      case Kind::kKeep: return mask(column(index) == 0 || random_.uniform() < argument(0), argument(1));
      case Kind::kRowsOneEmpty: return mask(index >= columns_ && (column(index) == 0 || random_.uniform() < 0.6), argument(0));
      case Kind::kCausal: return mask(column(index) <= row(index) + columns_ - rows_, argument(0));
    }
    return 0;
  }

 private:
  double argument(size_t i) const { return fill_.arguments[i]; }
  int64_t column(int64_t index) const { return index % columns_; }
  int64_t row(int64_t index) const { return index / columns_ % rows_; }
  double uniform() {
    const double low = argument(0), high = argument(1);
    if (is_floating(type_)) return low + (high - low) * random_.uniform();
    return low + std::floor((high - low + 1) * random_.uniform());
  }
  double mask(bool kept, double fill) const { return !is_floating(type_) ? kept : kept ? 0 : fill; }

  DataType type_;
  const Dims& dims_;
  const Fill& fill_;
  RandomNumbers& random_;
  int64_t columns_, rows_;
};

}  // namespace

Expected<Fill> parse_fill(std::string_view text) {
  const size_t bracket = std::min(text.find('('), text.size());
  for (const FillName& known : fill_names()) {
    if (known.name != text.substr(0, bracket)) continue;
    auto arguments = parse_arguments(text.substr(bracket));
    if (!arguments || arguments->size() < known.required) break;
    const size_t defaulted = arguments->size() - known.required;
    if (defaulted < known.defaults.size()) {
      arguments->insert(arguments->end(), known.defaults.begin() + static_cast<std::ptrdiff_t>(defaulted),
                        known.defaults.end());
    } else if (defaulted > known.defaults.size() && known.kind != Kind::kValues) {
      break;
    }
    return Fill{known.kind, *std::move(arguments)};
  }
  return not_a_fill(text);
}

Fill default_fill(DataType type) {
  if (is_floating(type)) return {Kind::kNormal, {}};
  return {Kind::kKeep, {0.5, 0}};
}

Expected<Tensor> filled(DataType type, const Dims& dims, const Fill& fill, RandomNumbers& random) {
  if (element_size(type) == 0) {
    return fail(ErrorCode::kUnsupported, "", "inputs of type " + type_name(type) + " cannot be drawn");
  }
  Tensor values(onnx::TensorProto::DOUBLE, dims);
  Filler filler(type, dims, fill, random);
  const double largest = largest_finite(type);
  int64_t index = 0;
  for (double& value : values.mutable_data<double>()) {
    value = filler.at(index++);
    if (std::isfinite(value)) value = std::clamp(value, -largest, largest);
  }
  return values.cast(type);
}

}  // namespace attn_opt
