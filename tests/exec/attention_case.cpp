#include "tests/exec/attention_case.h"

#include <limits>

namespace attn_opt::testing {
namespace {

using P = onnx::TensorProto;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Draw {
 public:
  Draw(std::mt19937& random, DataType type, bool hostile) : random_(random), type_(type), hostile_(hostile) {}

  AttentionCase attention() {
    result_.opset = of({23, 24, 25});
    result_.node.set_op_type("Attention");
    result_.coarsest = type_;
    draw_sizes();
    draw_rows();
    draw_past();
    draw_nonpad();
    draw_mask();
    draw_numbers();
    draw_outputs();
    while (!result_.inputs.back().has_value()) result_.inputs.pop_back();
    for (size_t i = 0; i < result_.inputs.size(); ++i) {
      result_.node.add_input(result_.inputs[i].has_value() ? "i" + std::to_string(i) : "");
    }
    return std::move(result_);
  }

 private:
  template <class T = int64_t>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[random_() % choices.size()];
  }
  bool one_in(unsigned n) { return random_() % n == 0; }
  float normal() { return normal_(random_); }

  void set(const char* name, std::integral auto value) {
    auto* attribute = result_.node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(int64_t{value});
  }
  void set(const char* name, float value) {
    auto* attribute = result_.node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(value);
  }

  Tensor rows(Dims dims) {
    Tensor tensor(P::FLOAT, std::move(dims));
    for (float& x : tensor.mutable_data<float>()) x = normal();
    if (hostile_ && one_in(3) && tensor.size() > 0) {
      tensor.mutable_data<float>()[random_() % static_cast<size_t>(tensor.size())] =
          of<float>({kInfinity, -kInfinity, std::nanf("")});
    }
    return *tensor.cast(type_);
  }

  Tensor heads_of(int64_t heads, int64_t length, int64_t width) {
    return is_flat_ ? rows({batch_, length, heads * width}) : rows({batch_, heads, length, width});
  }

  void draw_sizes() {
    is_flat_ = one_in(2);
    batch_ = of({1, 1, 2});
    kv_heads_ = of({1, 1, 2, 3});
    heads_ = kv_heads_ * of({1, 1, 2, 3, 5});
    queries_ = of({1, 1, 2, 7, 33, 70});
    new_keys_ = one_in(3) ? queries_ : of({1, 3, 16, 40, 300, 1100});
    size_ = of({1, 3, 8, 16, 33});
    v_size_ = of({1, 4, 6, 7, 16, 19});
  }

  void draw_rows() {
    result_.inputs.assign(7, Tensor());
    result_.inputs[0] = heads_of(heads_, queries_, size_);
    result_.inputs[1] = heads_of(kv_heads_, new_keys_, size_);
    result_.inputs[2] = heads_of(kv_heads_, new_keys_, v_size_);
    if (!is_flat_) return;
    set("q_num_heads", heads_);
    set("kv_num_heads", kv_heads_);
  }

  void draw_past() {
    keys_ = new_keys_;
    if (!one_in(3)) return;
    const int64_t past = of({0, 1, 5, 260});
    result_.inputs[4] = rows({batch_, kv_heads_, past, size_});
    result_.inputs[5] = rows({batch_, kv_heads_, past, v_size_});
    keys_ += past;
  }

  void draw_nonpad() {
    if (result_.opset < 24 || result_.inputs[4].has_value() || !one_in(3)) return;
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < batch_; ++b) lengths.push_back(static_cast<int64_t>(random_() % static_cast<size_t>(keys_ + 1)));
    result_.inputs[6] = Tensor::of<int64_t>({batch_}, lengths);
  }

  void draw_mask() {
    if (one_in(3)) return;
    Dims dims{one_in(2) ? batch_ : 1, one_in(2) ? heads_ : 1, one_in(2) ? queries_ : 1, keys_};
    if (result_.opset == 23 && one_in(4)) dims[3] = 1;
    if (result_.opset > 23 && !result_.inputs[6].has_value() && one_in(3))
      dims[3] = 1 + static_cast<int64_t>(random_() % static_cast<size_t>(keys_));
    while (dims.size() > 1 && dims[0] == 1 && one_in(2)) dims.erase(dims.begin());
    const DataType type = one_in(3)   ? P::BOOL
                          : one_in(2) ? type_
                                      : of<DataType>({P::FLOAT, P::FLOAT16, P::BFLOAT16, P::DOUBLE, P::INT8, P::INT16, P::INT32,
                                                      P::INT64, P::UINT8, P::UINT16, P::UINT32, P::UINT64});
    Tensor mask(P::FLOAT, std::move(dims));
    const unsigned kind = static_cast<unsigned>(random_() % 6);
    const size_t row = static_cast<size_t>(mask.dims().back());
    auto values = mask.mutable_data<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = mask_value(kind, i % row, row);
    if (one_in(3)) {  // a row that allows nothing
      const size_t first = random_() % (values.size() / row) * row;
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(first), row, type == P::BOOL ? 0.0f : -kInfinity);
    }
    if (!is_floating(type)) {
      for (float& x : values) x = std::isfinite(x) ? std::clamp(x, -100.0f, 100.0f) : 0.0f;
    }
    if (type == P::BOOL) {
      for (float& x : values) x = x >= 0 ? 1.0f : 0.0f;
    } else if (type >= P::UINT8 && (type == P::UINT8 || type == P::UINT16 || type == P::UINT32 || type == P::UINT64)) {
      for (float& x : values) x = std::abs(x);
    }
    result_.inputs[3] = *mask.cast(type);
  }

  /// Of element I of a row of COUNT.
  float mask_value(unsigned kind, size_t i, size_t count) {
    switch (kind) {
      case 0: return 0;
      case 1: return normal();
      case 2: return one_in(2) ? 0.0f : -kInfinity;
      case 3: return i < count / 2 ? 0.0f : -kInfinity;
      case 4: return one_in(2) ? 0.0f : of<float>({-1e4f, -1e9f, std::numeric_limits<float>::lowest()});
      default:
        if (hostile_ && one_in(50)) return of<float>({kInfinity, std::nanf("")});
        return type_ == P::FLOAT16 ? -65504.0f : std::numeric_limits<float>::lowest();
    }
  }

  void draw_numbers() {
    if (one_in(2)) set("is_causal", 1);
    if (one_in(3)) set("softcap", of<float>({0.5f, 3.0f, 50.0f, -2.0f}));
    if (one_in(4)) {
      const auto precision = of<DataType>({P::FLOAT, P::FLOAT16, P::DOUBLE, P::BFLOAT16});
      set("softmax_precision", static_cast<int64_t>(precision));
      if (is_coarser(precision, result_.coarsest)) result_.coarsest = precision;
    }
    // Large scores in half types differ with every rounding.
    const float large = is_coarser(result_.coarsest, P::FLOAT) ? 0.1f : 2.0f;
    if (one_in(3)) set("scale", of<float>({0.0f, 0.3f, large}));
    if (result_.opset < 25 || !one_in(2)) return;
    set("left_window_size", of({-1, 0, 2, 30}));
    set("right_window_size", of({-1, 0, 1, 20}));
  }

  static bool is_coarser(DataType a, DataType b) {
    const auto rank = [](DataType type) { return type == P::DOUBLE ? 0 : type == P::FLOAT ? 1 : type == P::FLOAT16 ? 2 : 3; };
    return rank(a) > rank(b);
  }

  void draw_outputs() {
    const bool may_be_present = result_.opset < 25 || !result_.inputs[6].has_value();
    const bool is_present = one_in(2) && may_be_present;
    result_.node.add_output("y");
    result_.node.add_output(is_present ? "key" : "");
    result_.node.add_output(is_present ? "value" : "");
    if (!one_in(3)) return;
    result_.node.add_output("scores");
    set("qk_matmul_output_mode", of({0, 1, 2, 3}));
  }

  std::mt19937& random_;
  DataType type_;
  bool hostile_;
  std::normal_distribution<float> normal_;
  AttentionCase result_;
  bool is_flat_ = false;
  int64_t batch_ = 1, kv_heads_ = 1, heads_ = 1, queries_ = 1, new_keys_ = 1, keys_ = 1, size_ = 1, v_size_ = 1;
};

}  // namespace

AttentionCase draw_attention(std::mt19937& random, DataType type, bool hostile) {
  return Draw(random, type, hostile).attention();
}

std::string describe(const AttentionCase& drawn) {
  std::string text = "opset " + std::to_string(drawn.opset) + " " + drawn.node.ShortDebugString();
  for (const Tensor& input : drawn.inputs) {
    text += " (";
    if (input.has_value()) text += type_name(input.type());
    for (const int64_t dim : input.dims()) text += " " + std::to_string(dim);
    text += ")";
  }
  return text;
}

}  // namespace attn_opt::testing
