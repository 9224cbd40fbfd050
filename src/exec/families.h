// The operator families; each registers its kernels, one line an operator.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

void register_activations(KernelRegistry& registry);
void register_arg_reduce(KernelRegistry& registry);
void register_attention(KernelRegistry& registry);
void register_compare_logic(KernelRegistry& registry);
void register_contrib_rotary(KernelRegistry& registry);
void register_conv(KernelRegistry& registry);
void register_conv_transpose(KernelRegistry& registry);
void register_deform_conv(KernelRegistry& registry);
void register_det(KernelRegistry& registry);
void register_dft(KernelRegistry& registry);
void register_einsum(KernelRegistry& registry);
void register_elementwise_binary(KernelRegistry& registry);
void register_elementwise_unary(KernelRegistry& registry);
void register_gather(KernelRegistry& registry);
void register_generators(KernelRegistry& registry);
void register_grid_sample(KernelRegistry& registry);
void register_group_query_attention(KernelRegistry& registry);
void register_integer_products(KernelRegistry& registry);
void register_layer_normalization(KernelRegistry& registry);
void register_layout(KernelRegistry& registry);
void register_lp_norms(KernelRegistry& registry);
void register_lrn(KernelRegistry& registry);
void register_lstm(KernelRegistry& registry);
void register_matmul(KernelRegistry& registry);
void register_max_roi_pool(KernelRegistry& registry);
void register_max_unpool(KernelRegistry& registry);
void register_non_max_suppression(KernelRegistry& registry);
void register_ml_encoders(KernelRegistry& registry);
void register_ml_features(KernelRegistry& registry);
void register_ml_linear(KernelRegistry& registry);
void register_ml_trees(KernelRegistry& registry);
void register_multi_head_attention(KernelRegistry& registry);
void register_ngrams(KernelRegistry& registry);
void register_normalization(KernelRegistry& registry);
void register_optionals(KernelRegistry& registry);
void register_pad(KernelRegistry& registry);
void register_pool(KernelRegistry& registry);
void register_projected_attention(KernelRegistry& registry);
void register_quantization(KernelRegistry& registry);
void register_random(KernelRegistry& registry);
void register_reduce(KernelRegistry& registry);
void register_resize(KernelRegistry& registry);
void register_reverse_sequence(KernelRegistry& registry);
void register_rnn(KernelRegistry& registry);
void register_roi_align(KernelRegistry& registry);
void register_scatter(KernelRegistry& registry);
void register_selection(KernelRegistry& registry);
void register_sequences(KernelRegistry& registry);
void register_shape_ops(KernelRegistry& registry);
void register_signal(KernelRegistry& registry);
void register_softmax(KernelRegistry& registry);
void register_text(KernelRegistry& registry);
void register_training(KernelRegistry& registry);
void register_where_cast(KernelRegistry& registry);

}  // namespace attn_opt
