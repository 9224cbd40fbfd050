#include "src/exec/families.h"

namespace attn_opt {

const KernelRegistry& kernel_registry() {
  static const KernelRegistry registry = [] {
    KernelRegistry all;
    register_activations(all);
    register_arg_reduce(all);
    register_attention(all);
    register_compare_logic(all);
    register_contrib_rotary(all);
    register_conv(all);
    register_conv_transpose(all);
    register_deform_conv(all);
    register_det(all);
    register_dft(all);
    register_einsum(all);
    register_elementwise_binary(all);
    register_elementwise_unary(all);
    register_gather(all);
    register_generators(all);
    register_grid_sample(all);
    register_group_query_attention(all);
    register_integer_products(all);
    register_layer_normalization(all);
    register_layout(all);
    register_lp_norms(all);
    register_lrn(all);
    register_lstm(all);
    register_matmul(all);
    register_max_roi_pool(all);
    register_max_unpool(all);
    register_non_max_suppression(all);
    register_ml_encoders(all);
    register_ml_features(all);
    register_ml_linear(all);
    register_ml_trees(all);
    register_multi_head_attention(all);
    register_ngrams(all);
    register_normalization(all);
    register_optionals(all);
    register_pad(all);
    register_pool(all);
    register_projected_attention(all);
    register_quantization(all);
    register_random(all);
    register_reduce(all);
    register_resize(all);
    register_reverse_sequence(all);
    register_rnn(all);
    register_roi_align(all);
    register_scatter(all);
    register_selection(all);
    register_sequences(all);
    register_shape_ops(all);
    register_signal(all);
    register_softmax(all);
    register_text(all);
    register_training(all);
    register_where_cast(all);
    return all;
  }();
  return registry;
}

}  // namespace attn_opt
