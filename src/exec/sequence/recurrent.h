// What RNN, GRU and LSTM share: their inputs, their activation functions, and the walk over directions, steps
// and sequences. An operator brings its cell, which advances hidden states by one step.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "src/exec/reduction/matmul.h"

namespace attn_opt {

/// One of the functions f, g, h of a node, with its parameters; clips what it is given.
struct Activation {
  double (*function)(double x, double alpha, double beta) = nullptr;
  double alpha = 0, beta = 0;
  double clip = std::numeric_limits<double>::infinity();

  double operator()(double x) const { return function(std::clamp(x, -clip, clip), alpha, beta); }
};

/// How an operator's node is made.
struct RecurrentForm {
  int64_t gates = 1;
  std::vector<const char*> activations;  ///< of one direction, where the node names none
};

/// The inputs of a node, checked, in the type that its products are computed in and with time before batch.
struct Recurrence {
  int64_t gates = 1, directions = 1, steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool starts_reversed = false;       ///< the first direction is the reverse one
  bool batch_first = false;           ///< attribute layout
  Tensor x, weights, recurrent;       ///< (steps, batch, inputs), (directions, gates * hidden, inputs or hidden)
  Tensor bias, initial;               ///< (directions, 2 * gates * hidden), (directions, batch, hidden); zeros
  std::vector<int64_t> lengths;       ///< of each sequence
  std::vector<Activation> functions;  ///< all of the first direction, then all of the second

  bool is_reversed(int64_t direction) const { return starts_reversed || direction == 1; }
  const Activation& function(int64_t direction, size_t i) const {
    return functions[static_cast<size_t>(direction) * functions.size() / static_cast<size_t>(directions) + i];
  }
};

Expected<Recurrence> read_recurrence(const KernelContext& context, const RecurrentForm& form);

/// Input I, a state or weights of shape DIMS, in X's type; zeros if omitted. States come with BATCH_FIRST.
Expected<Tensor> read_or_zeros(const KernelContext& context, size_t i, const Recurrence& recurrence, const Dims& dims,
                               bool is_state);

/// A state (directions, batch, hidden) or Y (steps, directions, batch, hidden) as the node's layout has it,
/// in the type of input 0.
Expected<Tensor> in_layout(const KernelContext& context, const Recurrence& recurrence, const Tensor& tensor);

/// A sequence that has a step left, and what the step's input gives to the gates, biases of the weights
/// included.
template <class T>
struct ActiveSequence {
  int64_t index = 0;
  const T* gates = nullptr;
};

/// One direction's products with the hidden states.
template <class T>
class RecurrentProduct {
 public:
  RecurrentProduct(const Recurrence& recurrence, int64_t direction)
      : batch_(recurrence.batch),
        hidden_(recurrence.hidden),
        weights_(recurrent_of(recurrence, direction)),
        bias_(recurrence.bias.data<T>().data() + (2 * direction + 1) * recurrence.gates * recurrence.hidden) {}

  /// TO = STATES * (weights of GATES gates from FIRST on)^T + their bias, for all sequences.
  void compute(const T* states, int64_t first, int64_t gates, T* to) const {
    for (int64_t b = 0; b < batch_; ++b) {
      std::copy_n(bias_ + first * hidden_, gates * hidden_, to + b * gates * hidden_);
    }
    multiply({batch_, gates * hidden_, hidden_, false, true, 1, 1}, states, weights_ + first * hidden_ * hidden_, to);
  }

 private:
  static const T* recurrent_of(const Recurrence& recurrence, int64_t direction) {
    return recurrence.recurrent.data<T>().data() + direction * recurrence.gates * recurrence.hidden * recurrence.hidden;
  }

  int64_t batch_, hidden_;
  const T* weights_;
  const T* bias_;
};

/// What the inputs of all steps give to the gates of DIRECTION: (steps, batch, gates * hidden).
template <class T>
std::vector<T> input_gates(const Recurrence& r, int64_t direction) {
  const int64_t width = r.gates * r.hidden;
  std::vector<T> gates(static_cast<size_t>(r.steps * r.batch * width));
  const T* bias = r.bias.data<T>().data() + 2 * direction * width;
  for (int64_t row = 0; row < r.steps * r.batch; ++row) std::copy_n(bias, width, gates.data() + row * width);
  multiply({r.steps * r.batch, width, r.inputs, false, true, 1, 1}, r.x.data<T>().data(),
           r.weights.data<T>().data() + direction * width * r.inputs, gates.data());
  return gates;
}

/// Runs CELL over the steps of DIRECTION: cell.step(active, states) advances the active sequences' states,
/// which are STATES in the end. Writes (steps, directions, batch, hidden) into Y.
template <class T, class Cell>
void run_direction(const Recurrence& r, int64_t direction, Cell& cell, T* states, T* y) {
  const std::vector<T> gates = input_gates<T>(r, direction);
  const int64_t width = r.gates * r.hidden;
  std::vector<ActiveSequence<T>> active;
  for (int64_t step = 0; step < r.steps; ++step) {
    const auto time = [&](int64_t b) { return r.is_reversed(direction) ? r.lengths[static_cast<size_t>(b)] - 1 - step : step; };
    active.clear();
    for (int64_t b = 0; b < r.batch; ++b) {
      if (step < r.lengths[static_cast<size_t>(b)]) {
        active.push_back({b, gates.data() + (time(b) * r.batch + b) * width});
      }
    }
    if (active.empty()) return;
    cell.step(active, states);
    for (const auto& sequence : active) {
      const int64_t row = (time(sequence.index) * r.directions + direction) * r.batch + sequence.index;
      std::copy_n(states + sequence.index * r.hidden, r.hidden, y + row * r.hidden);
    }
  }
}

/// Y and Y_h of a node whose directions CELL computes: made as Cell(recurrence, direction).
template <class T, class MakeCell>
Outputs run_recurrence(const KernelContext& context, const Recurrence& r, MakeCell&& make_cell) {
  ATTN_OPT_TRY(Tensor y, context.allocate(r.x.type(), {r.steps, r.directions, r.batch, r.hidden}));
  ATTN_OPT_TRY(Tensor states, context.allocate(r.x.type(), r.initial.dims()));
  std::ranges::copy(r.initial.bytes(), states.mutable_bytes().begin());
  for (int64_t direction = 0; direction < r.directions && y.size() > 0; ++direction) {
    auto cell = make_cell(direction);
    run_direction(r, direction, cell, states.mutable_data<T>().data() + direction * r.batch * r.hidden,
                  y.mutable_data<T>().data());
  }
  std::vector<Tensor> outputs(2);
  ATTN_OPT_TRY(outputs[0], in_layout(context, r, y));
  ATTN_OPT_TRY(outputs[1], in_layout(context, r, states));
  return outputs;
}

}  // namespace attn_opt
