#include "tests/metamorphic/drawn_attention.h"

#include <cmath>
#include <set>

#include "tests/metamorphic/graph_text.h"

namespace attn_opt {
namespace {

using Sizes = std::vector<std::string>;
using Kind = DrawnMask::Kind;

bool is_number(const std::string& size) { return std::isdigit(static_cast<unsigned char>(size[0])) != 0; }
std::string str(int64_t number) { return std::to_string(number); }

/// Spells one description.
class Speller {
 public:
  Speller(const Description& d, Random& random) : d_(d), random_(random), graph_(d.type, random) {}

  DrawnModel spell() {
    std::string q = operand("q", d_.q, d_.heads, d_.head_size, d_.queries);
    std::string k = operand("k", d_.k, d_.kv_heads, d_.head_size, d_.keys);
    std::string v = operand("v", d_.v, d_.kv_heads, d_.value_size, d_.keys);
    if (d_.has_past) {
      k = behind_past("key", k, d_.head_size);
      v = behind_past("value", v, d_.value_size);
    }
    k = repeated(k, d_.head_size);
    v = repeated(v, d_.value_size);
    if (d_.merged)
      for (std::string* value : {&q, &k, &v}) *value = merged(*value, value == &v ? d_.value_size : d_.head_size);
    std::string scores = scaled_product(q, k);
    if (d_.softcap > 0) scores = capped(scores);
    for (size_t i = 0; i < d_.masks.size(); ++i) scores = masked(scores, d_.masks[i], "mask" + str(static_cast<int64_t>(i)));
    if (d_.place == ScalePlace::kAfterMasks) scores = graph_.node("Mul", {scores, graph_.number(d_.scale)});
    std::string probabilities = softmax(scores);
    if (d_.guarded) probabilities = guarded(probabilities);
    write_output(graph_.node("MatMul", {probabilities, v}));
    if (d_.shows_probabilities) show(probabilities);
    for (const auto& [symbol, size] : {std::pair<const char*, int64_t>{"batch", 2}, {"query", 3}, {"keys", 5}, {"past", 4}})
      if (symbols_.contains(symbol)) draw_.sizes[symbol] = size;
    return {graph_.text("drawn"), draw_};
  }

 private:
  std::string input(const std::string& name, const Sizes& sizes) {
    note(sizes);
    return graph_.float_input(name, sizes);
  }

  void note(const Sizes& sizes) {
    for (const std::string& size : sizes)
      if (!is_number(size)) symbols_.insert(size);
  }

  /// NAME of the layout as (B, H, rows, D).
  std::string operand(const std::string& name, Layout layout, int64_t heads, int64_t size, const std::string& rows) {
    switch (layout) {
      case Layout::kBnsh: return input(name, {d_.batch, str(heads), rows, str(size)});
      case Layout::kBsnh: return graph_.transpose(input(name, {d_.batch, rows, str(heads), str(size)}), {0, 2, 1, 3});
      case Layout::kBsd: {
        const std::string flat = input(name, {d_.batch, rows, str(heads * size)});
        return graph_.transpose(graph_.reshape(flat, {0, random_.coin() && !is_number(rows) ? -1 : 0, heads, size}),
                                {0, 2, 1, 3});
      }
      case Layout::kSequenceFirst: {
        const std::string flat = input(name, {rows, d_.batch, str(heads * size)});
        return graph_.transpose(graph_.reshape(flat, {0, 0, heads, random_.coin() ? -1 : size}), {1, 2, 0, 3});
      }
      case Layout::kStacked: return stacked(name);
    }
    return {};
  }

  /// One of Q, K and V that lie side by side in one tensor.
  std::string stacked(const std::string& name) {
    const int index = name == "q" ? 0 : name == "k" ? 1 : 2;
    const int64_t width = d_.heads * d_.head_size;
    if (stack_.empty()) {
      stack_ = input("qkv", {d_.batch, d_.queries, str(3 * width)});
      stacking_ = random_.below(3);
      if (stacking_ == 2) stack_ = graph_.transpose(graph_.reshape(stack_, {0, 0, 3, d_.heads, d_.head_size}), {2, 0, 3, 1, 4});
    }
    if (stacking_ == 2) return graph_.node("Gather", {stack_, scalar(index)}, "axis = 0");
    const std::string part = graph_.node("Slice", {stack_, graph_.ints({index * width}), graph_.ints({(index + 1) * width}),
                                                   graph_.ints({stacking_ == 0 ? 2 : -1})});
    return graph_.transpose(graph_.reshape(part, {0, 0, d_.heads, d_.head_size}), {0, 2, 1, 3});
  }

  std::string scalar(int64_t number) { return graph_.node("Squeeze", {graph_.ints({number}), graph_.ints({0})}); }

  std::string behind_past(const std::string& what, const std::string& fresh, int64_t size) {
    const std::string past = input("past_" + what, {d_.batch, str(d_.kv_heads), "past", str(size)});
    const std::string all =
        graph_.node_called("present_" + what, "Concat", {past, fresh}, random_.coin() ? "axis = 2" : "axis = -2");
    if (random_.coin()) graph_.float_output(all, {d_.batch, str(d_.kv_heads), "total", str(size)});
    return all;
  }

  /// K or V with a head for each query head; one head is perhaps left to broadcast.
  std::string repeated(const std::string& value, int64_t size) {
    const int64_t group = d_.heads / d_.kv_heads;
    if (group == 1 || (d_.kv_heads == 1 && random_.coin())) return value;
    const std::string apart = graph_.node("Unsqueeze", {value, graph_.ints({random_.coin() ? 2 : -3})});
    const std::string wide = random_.coin() ? graph_.node("Expand", {apart, graph_.ints({1, 1, group, 1, 1})})
                                            : graph_.node("Tile", {apart, graph_.ints({1, 1, group, 1, 1})});
    const std::string rows = graph_.size_of(value, 2);
    const std::string shape = graph_.node(
        "Concat", {graph_.ints({is_number(d_.batch) ? std::stoll(d_.batch) : 0, d_.heads}), rows, graph_.ints({size})},
        "axis = 0");
    return graph_.node("Reshape", {wide, shape});
  }

  /// (B, H, rows, D) as (B * H, rows, D).
  std::string merged(const std::string& value, int64_t size) {
    const std::string shape =
        graph_.node("Concat", {graph_.ints({-1}), graph_.size_of(value, 2), graph_.ints({size})}, "axis = 0");
    return graph_.node("Reshape", {value, shape});
  }

  std::string times(const std::string& value, double factor) {
    const bool has_reciprocal = d_.type != onnx::TensorProto::FLOAT16;
    return has_reciprocal && random_.coin() ? graph_.node("Div", {value, graph_.number(1 / factor)})
                                            : graph_.commuted("Mul", value, graph_.number(factor));
  }

  std::string scaled_product(std::string q, std::string k) {
    if (d_.place == ScalePlace::kQuery) q = times(q, d_.scale);
    if (d_.place == ScalePlace::kKey) k = times(k, d_.scale);
    std::string columns = d_.merged ? graph_.transpose(k, {0, 2, 1}) : graph_.transpose(k, {0, 1, 3, 2});
    if (d_.place == ScalePlace::kBoth) {
      q = times(q, std::sqrt(d_.scale));
      columns = times(columns, std::sqrt(d_.scale));
    }
    const std::string scores = graph_.node("MatMul", {q, columns});
    if (d_.place == ScalePlace::kScores) return graph_.commuted("Mul", scores, graph_.number(d_.scale));
    if (d_.place == ScalePlace::kDivided) return graph_.node("Div", {scores, graph_.number(1 / d_.scale)});
    return scores;
  }

  std::string capped(const std::string& scores) {
    return times(graph_.node("Tanh", {times(scores, 1 / d_.softcap)}), d_.softcap);
  }

  /// A shape that broadcasts to the scores, AXES choosing one.
  Sizes mask_sizes(int axes) const {
    const std::string keys = d_.has_past ? "past + " + d_.keys : d_.keys;
    const Sizes choices[] = {{d_.batch, "1", "1", keys},
                             {d_.batch, "1", d_.queries, keys},
                             {"1", str(d_.heads), d_.queries, keys},
                             {d_.queries, keys},
                             {d_.batch, str(d_.heads), d_.queries, keys}};
    return choices[axes];
  }

  /// SCORES with a mask; merged ones are taken apart for it and put together again.
  std::string masked(const std::string& scores, const DrawnMask& mask, const std::string& name) {
    if (!d_.merged) return masked_apart(scores, mask, name);
    const std::string shape =
        graph_.node("Concat", {graph_.ints({-1, d_.heads}), graph_.size_of(scores, 1), graph_.size_of(scores, 2)}, "axis = 0");
    const std::string apart = masked_apart(graph_.node("Reshape", {scores, shape}), mask, name);
    const std::string back =
        graph_.node("Concat", {graph_.ints({-1}), graph_.size_of(apart, 2), graph_.size_of(apart, 3)}, "axis = 0");
    return graph_.node("Reshape", {apart, back});
  }

  std::string masked_apart(const std::string& scores, const DrawnMask& mask, const std::string& name) {
    const auto bool_input = [&](const char* fill) {
      draw_.fills[name] = *parse_fill(fill);
      return graph_.input(name, "bool", mask_sizes(mask.axes));
    };
    switch (mask.kind) {
      case Kind::kBias: return graph_.commuted("Add", scores, graph_.float_input(name, mask_sizes(mask.axes)));
      case Kind::kKeepBias: {
        const std::string bias = graph_.node("Where", {bool_input("keep(0.7)"), graph_.number(0), graph_.number(mask.fill)});
        return graph_.commuted("Add", scores, bias);
      }
      case Kind::kKeepWhere: return graph_.node("Where", {bool_input("keep(0.7)"), scores, graph_.number(mask.fill)});
      case Kind::kDropWhere:
        return graph_.node("Where",
                           {bool_input(d_.masks.size() > 1 ? "zeros" : "values(0,0,1)"), graph_.number(mask.fill), scores});
      case Kind::kPadding: return graph_.commuted("Add", scores, padding(mask, name));
      case Kind::kCausal: return causal(scores, mask);
    }
    return scores;
  }

  /// (1 - mask) * fill of (B, S) numbers.
  std::string padding(const DrawnMask& mask, const std::string& name) {
    draw_.fills[name] = *parse_fill("keep(0.7)");
    const Sizes sizes = mask_sizes(0);
    const std::string numbers = graph_.input(name, "int64", {sizes[0], sizes[3]});
    const std::string apart = graph_.node("Unsqueeze", {numbers, graph_.ints({1, 2})});
    const std::string kept = graph_.node("Cast", {apart}, "to = " + str(d_.type));
    const std::string dropped = graph_.node("Sub", {graph_.number(1), kept});
    return graph_.commuted("Mul", dropped, graph_.number(std::isinf(mask.fill) ? -1e4 : mask.fill));
  }

  /// Key j for query i if j <= i + the length of the past.
  std::string causal(const std::string& scores, const DrawnMask& mask) {
    const std::string rows = scalar_size(scores, 2), columns = scalar_size(scores, 3);
    const std::string zero = scalar(0), one = scalar(1);
    std::string queries = graph_.node("Range", {zero, rows, one});
    if (d_.has_past) queries = graph_.commuted("Add", queries, graph_.node("Sub", {columns, rows}));
    const std::string keys = graph_.node("Range", {zero, columns, one});
    const std::string i = graph_.node("Unsqueeze", {queries, graph_.ints({1})}),
                      j = graph_.node("Unsqueeze", {keys, graph_.ints({0})});
    if (random_.coin()) return graph_.node("Where", {graph_.node("LessOrEqual", {j, i}), scores, graph_.number(mask.fill)});
    const std::string bias = graph_.node("Where", {graph_.node("Greater", {j, i}), graph_.number(mask.fill), graph_.number(0)});
    return graph_.commuted("Add", scores, bias);
  }

  std::string scalar_size(const std::string& value, int axis) {
    return graph_.node("Squeeze", {graph_.size_of(value, axis), graph_.ints({0})});
  }

  std::string softmax(const std::string& scores) {
    const std::string last = random_.coin() ? "axis = -1" : d_.merged ? "axis = 2" : "axis = 3";
    switch (d_.softmax) {
      case SoftmaxSpelling::kSoftmax: return graph_.node("Softmax", {scores}, last);
      case SoftmaxSpelling::kExpOfLogSoftmax: return graph_.node("Exp", {graph_.node("LogSoftmax", {scores}, last)});
      case SoftmaxSpelling::kInFloat: {
        const std::string wide = graph_.node("Cast", {scores}, "to = 1");
        return graph_.node("Cast", {graph_.node("Softmax", {wide}, last)}, "to = " + str(d_.type));
      }
      case SoftmaxSpelling::kWrittenOut:
      case SoftmaxSpelling::kReciprocal: break;
    }
    const std::string highest = graph_.node("ReduceMax", {scores}, "axes = [-1], keepdims = 1");
    const std::string exponential = graph_.node("Exp", {graph_.node("Sub", {scores, highest})});
    const std::string sum = graph_.node("ReduceSum", {exponential, graph_.ints({-1})}, "keepdims = 1");
    if (d_.softmax == SoftmaxSpelling::kWrittenOut) return graph_.node("Div", {exponential, sum});
    return graph_.commuted("Mul", exponential, graph_.node("Reciprocal", {sum}));
  }

  std::string guarded(const std::string& probabilities) {
    return graph_.node("Where", {graph_.node("IsNaN", {probabilities}), graph_.number(0), probabilities});
  }

  void write_output(std::string y) {
    if (d_.merged) {
      const std::string shape =
          graph_.node("Concat", {graph_.ints({-1, d_.heads}), graph_.size_of(y, 1), graph_.ints({d_.value_size})}, "axis = 0");
      y = graph_.node("Reshape", {y, shape});
    }
    if (d_.output == OutputLayout::kProduct) {
      graph_.node_called("y", "Identity", {y});
      return graph_.float_output("y", {d_.batch, str(d_.heads), d_.queries, str(d_.value_size)});
    }
    y = graph_.transpose(y, {0, 2, 1, 3});
    if (d_.output == OutputLayout::kBsd) {
      graph_.node_called("y", "Reshape", {y, graph_.ints({0, 0, random_.coin() ? -1 : d_.heads * d_.value_size})});
      return graph_.float_output("y", {d_.batch, d_.queries, str(d_.heads * d_.value_size)});
    }
    graph_.node_called("y", "Identity", {y});
    graph_.float_output("y", {d_.batch, d_.queries, str(d_.heads), str(d_.value_size)});
  }

  void show(const std::string& probabilities) {
    graph_.node_called("p", "Identity", {probabilities});
    graph_.float_output("p", {d_.batch, str(d_.heads), d_.queries, d_.has_past ? "total" : d_.keys});
  }

  const Description& d_;
  Random& random_;
  GraphText graph_;
  DrawOptions draw_;
  std::set<std::string> symbols_;
  std::string stack_;
  size_t stacking_ = 0;
};

}  // namespace

DrawnModel spelled(const Description& description, Random& random) { return Speller(description, random).spell(); }

}  // namespace attn_opt
