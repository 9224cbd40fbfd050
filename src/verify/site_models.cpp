#include "src/verify/site_models.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/io/onnx_domain.h"

namespace attn_opt {
namespace {

/// In each import of ONNX: onnx.compose.merge_models lists that of every model it merged.
void set_opset(onnx::ModelProto& model, int version) {
  bool found = false;
  for (auto& import : *model.mutable_opset_import()) {
    if (!is_onnx(import.domain())) continue;
    import.set_version(version);
    found = true;
  }
  if (!found) model.add_opset_import()->set_version(version);
}

/// Takes the scale out of the node called ATTENTION: its queries are multiplied by SCALE in double.
void apply_scale_in_double(onnx::GraphProto& graph, const std::string& attention, double scale) {
  const std::string factor_name = "site/scale", product_name = "site/scaled_queries";
  *graph.add_initializer() = to_proto(Tensor::scalar<double>(scale), factor_name);
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  nodes.Swap(graph.mutable_node());
  for (auto& node : nodes) {
    if (node.name() == attention) {
      auto* product = graph.add_node();
      product->set_op_type("Mul");
      product->add_input(node.input(0));
      product->add_input(factor_name);
      product->add_output(product_name);
      node.set_input(0, product_name);
      for (auto& attribute : *node.mutable_attribute())
        if (attribute.name() == "scale") attribute.set_f(1);
    }
    *graph.add_node() = std::move(node);
  }
}

}  // namespace

SiteModels write_site(const CutSite& site, const Emission& emission, const LocalFunctionGraphs& functions,
                      const ReadNodes& read) {
  const Graph& graph = emission.edit.graph();
  std::vector<Value*> outputs = site.replaced;
  outputs.insert(outputs.end(), site.probes.begin(), site.probes.end());
  SiteModels models;
  models.before = write_model(site.before, outputs, graph, functions);
  read.restore(site.before.nodes, models.before);
  stand_at_own_opsets(site.before.nodes, models.before);
  std::vector<Value*> outputs_after = site.written;
  outputs_after.insert(outputs_after.end(), site.probes_after.begin(), site.probes_after.end());
  std::ranges::copy_if(site.attention_inputs, std::back_inserter(outputs_after),
                       [&](const Value* value) { return value && site.is_made_after(*value); });
  models.after = write_model(site.after, outputs_after, graph, functions);
  // Calls of local functions stand at the model's own opset.
  for (const auto& function : emission.edit.functions()) enter_function(function, models.after);
  if (emission.edit.functions().empty()) set_opset(models.after, graph.model().edit_opset());
  models.after_exact = models.after;
  const Node* attention = emission.attention;
  const auto* scale = attention ? attention->attribute("scale") : nullptr;
  const double exact = std::abs(emission.scale);  // its sign is Q's
  if (scale && scale->f() == static_cast<float>(exact))
    apply_scale_in_double(*models.after_exact.mutable_graph(), attention->proto->name(), exact);
  return models;
}

}  // namespace attn_opt
