// LSTM: gates i, o, f and c, a hidden state and a cell state.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/sequence/recurrent.h"

namespace attn_opt {
namespace {

template <class T>
class LstmCell {
 public:
  /// CELLS: the cell states of DIRECTION, which steps advance. PEEPHOLES: of all directions.
  LstmCell(const Recurrence& r, int64_t direction, const Tensor& peepholes, bool couples_forget, T* cells)
      : product_(r, direction),
        f_(r.function(direction, 0)),
        g_(r.function(direction, 1)),
        h_(r.function(direction, 2)),
        hidden_(r.hidden),
        couples_forget_(couples_forget),
        peepholes_(peepholes.data<T>().data() + 3 * direction * r.hidden),
        cells_(cells),
        from_state_(static_cast<size_t>(4 * r.batch * r.hidden)) {}

  void step(std::span<const ActiveSequence<T>> active, T* states) {
    product_.compute(states, 0, 4, from_state_.data());
    for (const auto& [b, gates] : active) {
      const T* own = from_state_.data() + 4 * b * hidden_;
      for (int64_t i = 0; i < hidden_; ++i) {
        const auto gate = [&, given = gates](int64_t which) {  // Clang 14 captures no structured binding by reference
          const int64_t at = which * hidden_ + i;
          return static_cast<double>(given[at]) + static_cast<double>(own[at]);
        };
        const auto peephole = [&](int64_t which) { return static_cast<double>(peepholes_[which * hidden_ + i]); };
        T& cell = cells_[b * hidden_ + i];
        const auto before = static_cast<double>(cell);
        const double input = f_(gate(0) + peephole(0) * before);
        const double forget = couples_forget_ ? 1 - input : f_(gate(2) + peephole(2) * before);
        const double now = forget * before + input * g_(gate(3));
        const double output = f_(gate(1) + peephole(1) * now);
        cell = static_cast<T>(now);
        states[b * hidden_ + i] = static_cast<T>(output * h_(now));
      }
    }
  }

 private:
  RecurrentProduct<T> product_;
  const Activation &f_, &g_, &h_;
  int64_t hidden_;
  bool couples_forget_;
  const T* peepholes_;
  T* cells_;
  std::vector<T> from_state_;
};

Outputs lstm(const KernelContext& context) {
  ATTN_OPT_TRY(const Recurrence r, read_recurrence(context, {4, {"sigmoid", "tanh", "tanh"}}));
  ATTN_OPT_TRY(const Tensor initial, read_or_zeros(context, 6, r, r.initial.dims(), true));
  ATTN_OPT_TRY(const Tensor peepholes, read_or_zeros(context, 7, r, {r.directions, 3 * r.hidden}, false));
  ATTN_OPT_TRY(Tensor cells, context.allocate(r.x.type(), r.initial.dims()));
  std::ranges::copy(initial.bytes(), cells.mutable_bytes().begin());
  const bool couples_forget = context.attribute_int("input_forget", 0) != 0;
  return dispatch(context, r.x.type(), TypeList<float, double>{}, [&]<class T>() -> Outputs {
    ATTN_OPT_TRY(auto outputs, run_recurrence<T>(context, r, [&](int64_t direction) {
                   return LstmCell<T>(r, direction, peepholes, couples_forget,
                                      cells.mutable_data<T>().data() + direction * r.batch * r.hidden);
                 }));
    ATTN_OPT_TRY(Tensor last, in_layout(context, r, cells));
    outputs.push_back(std::move(last));
    return outputs;
  });
}

}  // namespace

void register_lstm(KernelRegistry& registry) { registry.add("LSTM", 1, 22, lstm); }

}  // namespace attn_opt
