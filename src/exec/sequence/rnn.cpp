// RNN and GRU: the hidden state is all that a step hands on.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/sequence/recurrent.h"

namespace attn_opt {
namespace {

using RecurrentTypes = TypeList<float, double>;

/// H = f(X * W + H * R + biases)
template <class T>
class RnnCell {
 public:
  RnnCell(const Recurrence& r, int64_t direction)
      : product_(r, direction),
        f_(r.function(direction, 0)),
        hidden_(r.hidden),
        from_state_(static_cast<size_t>(r.batch * r.hidden)) {}

  void step(std::span<const ActiveSequence<T>> active, T* states) {
    product_.compute(states, 0, 1, from_state_.data());
    for (const auto& [b, gates] : active) {
      for (int64_t i = 0; i < hidden_; ++i) {
        const auto at = static_cast<size_t>(b * hidden_ + i);
        states[at] = static_cast<T>(f_(static_cast<double>(gates[i]) + static_cast<double>(from_state_[at])));
      }
    }
  }

 private:
  RecurrentProduct<T> product_;
  const Activation& f_;
  int64_t hidden_;
  std::vector<T> from_state_;
};

/// Gates z, r and h: H = (1 - z) * h + z * H.
template <class T>
class GruCell {
 public:
  GruCell(const Recurrence& r, int64_t direction, bool linear_before_reset)
      : product_(r, direction),
        f_(r.function(direction, 0)),
        g_(r.function(direction, 1)),
        hidden_(r.hidden),
        linear_before_reset_(linear_before_reset),
        updates_(static_cast<size_t>(r.batch * r.hidden)),
        resets_(updates_.size()),
        reset_states_(updates_.size()),
        from_state_(2 * updates_.size()),
        candidates_(updates_.size()) {}

  void step(std::span<const ActiveSequence<T>> active, T* states) {
    product_.compute(states, 0, 2, from_state_.data());
    for (const auto& [b, gates] : active) {
      for (int64_t i = 0; i < hidden_; ++i) {
        const auto at = static_cast<size_t>(b * hidden_ + i);
        const T* own = from_state_.data() + 2 * b * hidden_ + i;
        updates_[at] = f_(static_cast<double>(gates[i]) + static_cast<double>(own[0]));
        resets_[at] = f_(static_cast<double>(gates[hidden_ + i]) + static_cast<double>(own[hidden_]));
        reset_states_[at] = static_cast<T>(resets_[at] * static_cast<double>(states[at]));
      }
    }
    product_.compute(linear_before_reset_ ? states : reset_states_.data(), 2, 1, candidates_.data());
    for (const auto& [b, gates] : active) {
      for (int64_t i = 0; i < hidden_; ++i) {
        const auto at = static_cast<size_t>(b * hidden_ + i);
        const double linear = static_cast<double>(candidates_[at]) * (linear_before_reset_ ? resets_[at] : 1);
        const double candidate = g_(static_cast<double>(gates[2 * hidden_ + i]) + linear);
        states[at] = static_cast<T>((1 - updates_[at]) * candidate + updates_[at] * static_cast<double>(states[at]));
      }
    }
  }

 private:
  RecurrentProduct<T> product_;
  const Activation &f_, &g_;
  int64_t hidden_;
  bool linear_before_reset_;
  std::vector<double> updates_, resets_;  ///< z and r
  std::vector<T> reset_states_, from_state_, candidates_;
};

Outputs rnn(const KernelContext& context) {
  ATTN_OPT_TRY(const Recurrence r, read_recurrence(context, {1, {"tanh"}}));
  return dispatch(context, r.x.type(), RecurrentTypes{}, [&]<class T>() -> Outputs {
    return run_recurrence<T>(context, r, [&](int64_t direction) { return RnnCell<T>(r, direction); });
  });
}

Outputs gru(const KernelContext& context) {
  ATTN_OPT_TRY(const Recurrence r, read_recurrence(context, {3, {"sigmoid", "tanh"}}));
  const bool linear_before_reset = context.attribute_int("linear_before_reset", 0) != 0;
  return dispatch(context, r.x.type(), RecurrentTypes{}, [&]<class T>() -> Outputs {
    return run_recurrence<T>(context, r, [&](int64_t direction) { return GruCell<T>(r, direction, linear_before_reset); });
  });
}

}  // namespace

void register_rnn(KernelRegistry& registry) {
  registry.add("RNN", 1, 22, rnn);
  registry.add("GRU", 1, 22, gru);
}

}  // namespace attn_opt
