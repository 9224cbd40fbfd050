#include "patterns/probabilities/no_product.h"

#include "patterns/products/products.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

tl::unexpected<Miss> nothing_reached(const Readers& readers, Value& value, Value& softmax, const WayTaken& way,
                                     MatchContext& context) {
  for (const Reader& reader : readers.all)
    if (reader.node && quantizes(*reader.node) && is_multiplied_quantized(*reader.node->outputs[0]))
      return missed("probabilities.quantized", reader.node, "'" + value.name + "' is quantized", way.peeled);
  const Node* unread = unread_weights(value, context);
  // Another reader than was followed may change it; what divides behind a product is this softmax, taken for another there.
  if (!unread) unread = unread_weights(softmax, context);
  if (!unread && way.divides_late && !readers.all.empty()) unread = readers.all.back().node;
  if (unread && !context.facts.shape(value))
    return missed("softmax.unknown-rank", unread, "the rank of '" + value.name + "' is not known", way.peeled);
  if (unread) return missed("probabilities.operator", unread, unread->op(), way.peeled);
  return missed(std::string(kNotAttention), nullptr, "", way.peeled);
}

}  // namespace attn_opt
