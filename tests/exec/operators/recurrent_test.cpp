// RNN, GRU and LSTM, where ONNX's node tests do not look.
#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

Tensor zeros(Dims dims) { return Tensor(onnx::TensorProto::FLOAT, std::move(dims)); }
Tensor reals(Dims dims, const std::vector<float>& values) { return Tensor::of<float>(std::move(dims), values); }

/// Three steps of two sequences.
const Tensor kX = reals({3, 2, 1}, {-0.75, 0.25, 0.5, 1, -0.75, 1});

TEST(Rnn, GivesAlphasToTheActivationsThatTakeThem) {
  // ONNX Runtime's
  for (const int opset : {1, 7, 14, 22}) {
    const auto result = run_text(
        "y, h = RNN<hidden_size = 1, direction = \"bidirectional\", activations = [\"LeakyRelu\", "
        "\"Affine\"], "
        "activation_alpha = [0.5, 2.0], activation_beta = [0.25]>(x, w, r, b, l, s)",
        {kX, reals({2, 1, 1}, {-1, -0.75}), reals({2, 1, 1}, {0.25, 0.75}), reals({2, 2}, {1, 0.5, -1, -0.25}),
         Tensor::of<int32_t>({2}, {3, 1}), reals({2, 2, 1}, {0.75, 0, -0.75, 0.5})},
        opset);
    expect_output<float>(result, 0, {3, 2, 2, 1},
                         {2.4375, 1.25, -10.6875, -1.875, 1.609375, 0, -6.375, 0, 2.652344f, 0, -2.25, 0});
    expect_output<float>(result, 1, {2, 2, 1}, {2.652344f, 1.25, -10.6875, -1.875});
  }
}

TEST(Rnn, TakesTheBatchFirst) {
  // By hand: H = 2x + H / 2. Affine without parameters leaves its input; ONNX Runtime makes it 0.
  const auto result = run_text("y, h = RNN<layout = 1, activations = [\"Affine\"]>(x, w, r, , , s)",
                               {reals({2, 2, 1}, {1, 2, 3, 4}), reals({1, 1, 1}, {2}), reals({1, 1, 1}, {0.5}), Tensor(),
                                Tensor(), reals({2, 1, 1}, {2, 4})});
  expect_output<float>(result, 0, {2, 2, 1, 1}, {3, 5.5, 8, 12});
  expect_output<float>(result, 1, {2, 1, 1}, {5.5, 12});
}

TEST(Rnn, KnowsEachActivation) {
  // By hand, of 2 and -1, with the operators' default parameters.
  const auto run = [](const std::string& name) {
    return run_text("y = RNN<activations = [\"" + name + "\"]>(x, w, r)",
                    {reals({1, 2, 1}, {2, -1}), reals({1, 1, 1}, {1}), zeros({1, 1, 1})});
  };
  const std::vector<std::pair<std::string, std::vector<float>>> expected{
      {"Relu", {2, 0}},           {"Tanh", {0.9640276f, -0.7615942f}}, {"Sigmoid", {0.8807971f, 0.2689414f}},
      {"LeakyRelu", {2, -0.01f}}, {"ThresholdedRelu", {2, 0}},         {"HardSigmoid", {0.9f, 0.3f}},
      {"Elu", {2, -0.6321206f}},  {"Softsign", {0.6666667f, -0.5}},    {"softplus", {2.126928f, 0.3132617f}}};
  for (const auto& [name, values] : expected) expect_output<float>(run(name), 0, {1, 1, 2, 1}, values);
  expect_error(run("Gelu"), ErrorCode::kInvalidInput, "no activation Gelu");
}

TEST(Rnn, KeepsTheInitialStateOfEmptySequences) {
  const auto result = run_text("y, h = RNN(x, w, r, , l, s)", {kX, zeros({1, 1, 1}), zeros({1, 1, 1}), Tensor(),
                                                               Tensor::of<int32_t>({2}, {0, 1}), reals({1, 2, 1}, {5, 6})});
  expect_output<float>(result, 0, {3, 1, 2, 1}, {0, 0, 0, 0, 0, 0});
  expect_output<float>(result, 1, {1, 2, 1}, {5, 0});
  const auto empty = run_text("y, h = RNN(x, w, r)", {zeros({0, 2, 1}), zeros({1, 1, 1}), zeros({1, 1, 1})});
  expect_output<float>(empty, 0, {0, 1, 2, 1}, {});
  expect_output<float>(empty, 1, {1, 2, 1}, {0, 0});
}

TEST(Gru, ReversesSequencesOfTheirOwnLengths) {
  // ONNX Runtime's
  const auto result = run_text(
      "y, h = GRU<hidden_size = 1, direction = \"reverse\", linear_before_reset = 1, clip = 0.5>(x, w, r, b, "
      "l, s)",
      {kX, reals({1, 3, 1}, {-1, 0.5, -1}), reals({1, 3, 1}, {-0.25, -0.5, 1}), reals({1, 6}, {0.5, 0.25, 0, -0.5, 0.75, 1}),
       Tensor::of<int32_t>({2}, {2, 3}), reals({1, 2, 1}, {-0.75, -0.5})});
  expect_output<float>(result, 0, {3, 1, 2, 1}, {-0.1418986f, -0.1748869f, -0.5082527f, -0.4675169f, 0, -0.4764195f});
  expect_output<float>(result, 1, {1, 2, 1}, {-0.1418986f, -0.1748869f});
}

TEST(Lstm, CouplesGatesAndLooksThroughPeepholes) {
  // ONNX Runtime's
  const auto result = run_text(
      "y, h, c = LSTM<hidden_size = 1, direction = \"bidirectional\", input_forget = 1>(x, w, r, b, l, s, t, "
      "p)",
      {kX, reals({2, 4, 1}, {-0.5, 0, -0.5, -0.25, 1, -0.25, 1, 0}),
       reals({2, 4, 1}, {-0.25, 1, -0.25, 0.5, -0.5, 1, 0.5, 0.75}),
       reals({2, 8}, {-1, -1, -1, 0, -0.25, 1, -0.5, -0.75, 0.75, -0.5, 0.5, -0.5, 0, -1, 0.25, 1}),
       Tensor::of<int32_t>({2}, {1, 3}), reals({2, 2, 1}, {0.5, 0.75, 0.75, 0.25}), reals({2, 2, 1}, {1, 0, -0.75, 0.25}),
       reals({2, 3}, {0.25, -0.75, -0.75, 0.25, -0.25, 0})},
      7);
  expect_output<float>(
      result, 0, {3, 2, 2, 1},
      {0.2703937f, -0.049179f, -0.07105953f, 0.07675696f, 0, -0.08991522f, 0, 0.06713133f, 0, -0.1351923f, 0, 0.08067449f});
  expect_output<float>(result, 1, {2, 2, 1}, {0.2703937f, -0.1351923f, -0.07105953f, 0.07675696f});
  expect_output<float>(result, 2, {2, 2, 1}, {0.582063f, -0.2625377f, -0.1922547f, 0.5038412f});
}

TEST(Lstm, ClipsTheInputOfEveryActivation) {
  // By hand: C = 10 / 2, H = tanh(1) / 2. ONNX Runtime does not clip what h is given; the schema has clip
  // applied to the input of activations.
  const auto result =
      run_text("y, h, c = LSTM<clip = 1.0>(x, w, r, , , , t)",
               {zeros({1, 1, 1}), zeros({1, 4, 1}), zeros({1, 4, 1}), Tensor(), Tensor(), Tensor(), reals({1, 1, 1}, {10})});
  expect_output<float>(result, 1, {1, 1, 1}, {0.3807971f});
  expect_output<float>(result, 2, {1, 1, 1}, {5});
}

TEST(Lstm, RunsInHalves) {
  const auto halves = [](const Tensor& tensor) { return *tensor.cast(onnx::TensorProto::BFLOAT16); };
  const auto result = run_text("y, h, c = LSTM(x, w, r)", {halves(kX), halves(zeros({1, 4, 2})), halves(zeros({1, 4, 2}))});
  expect_error(result, ErrorCode::kInvalidInput, "do not fit");
  const auto fitting = run_text("y, h, c = LSTM(x, w, r)", {halves(kX), halves(zeros({1, 8, 1})), halves(zeros({1, 8, 2}))});
  ASSERT_TRUE(fitting) << fitting.error().message();
  for (const Tensor& output : *fitting) EXPECT_EQ(output.type(), onnx::TensorProto::BFLOAT16);
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const Tensor w = zeros({1, 1, 1});
  const auto refuses = [&](const std::string& attributes, const std::vector<Tensor>& rest, const std::string& what) {
    std::vector<Tensor> inputs{kX, w, w};
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    expect_error(run_text("y = RNN<" + attributes + ">(x, w, r, b, l, s)", inputs), ErrorCode::kInvalidInput, what);
  };
  const Tensor none;
  refuses("hidden_size = 2", {none, none, none}, "do not fit");
  refuses("direction = \"bidirectional\"", {none, none, none}, "do not fit");
  refuses("direction = \"sideways\"", {none, none, none}, "direction is sideways");
  refuses("clip = -1.0", {none, none, none}, "clip");
  refuses("layout = 0", {zeros({1, 3}), none, none}, "input 3");
  refuses("layout = 0", {none, Tensor::of<int32_t>({2}, {4, 1}), none}, "sequence_lens");
  refuses("layout = 0", {none, Tensor::of<int32_t>({2}, {-1, 1}), none}, "sequence_lens");
  refuses("layout = 0", {none, Tensor::of<int32_t>({1}, {1}), none}, "sequence_lens");
  refuses("layout = 0", {none, none, zeros({1, 1, 1})}, "input 5");
  expect_error(run_text("y = LSTM<activations = [\"Tanh\"]>(x, w, r)", {kX, zeros({1, 4, 1}), zeros({1, 4, 1})}),
               ErrorCode::kInvalidInput, "fewer");
  expect_error(run_text("y = GRU(x, w, r)", {zeros({3, 1}), w, w}), ErrorCode::kInvalidInput, "batch of sequences");
  expect_error(run_text("y = RNN(x, w, r)", {kX, zeros({1, 0, 1}), Tensor::of<double>({1, 1, 1}, {0})}),
               ErrorCode::kInvalidInput, "types");
}

}  // namespace
}  // namespace attn_opt::testing
