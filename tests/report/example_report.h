// A report with a fused, a missed and a refused site.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>

#include "attn_opt/report.h"

namespace attn_opt {

/// Softmax(q) V becomes an Attention node; V has no name that markup would not take for its own.
inline void draw(SiteReport& site) {
  using NodeRole = SiteGraph::Node::Role;
  const std::vector<std::string> shape = {"batch", "8", "seq"};
  site.type = "float16";
  site.before.emplace();
  site.before->nodes = {{site.name, "Softmax", NodeRole::kPlain, {{"axis", "-1"}}},
                        {"/layers.0/attn/MatMul", "MatMul", NodeRole::kPlain, {}}};
  site.before->tensors = {{"q", "float16", shape, "Q", {}, -1, {0}},
                          {"half", "float16", {{}}, "", 0.5, -1, {0}},
                          {"p", "float16", shape, "", {}, 0, {1}},
                          {"</script>\"v\"&", "", {}, "", {}, -1, {1}},
                          {"y", "float16", shape, "output", {}, 1, {}}};
  site.after.emplace();
  site.after->nodes = {{"attention", "Attention", NodeRole::kWritten, {}}};
  site.after->tensors = {{"q", "float16", shape, "Q", {}, -1, {0}}, {"y", "float16", shape, "output", {}, 0, {}}};
}

inline SiteReport fused_site() {
  SiteReport site;
  site.name = "/layers.0/attn/Softmax";
  site.op = "Softmax";
  site.graph = "main";
  site.pattern = "softmax_attention";
  site.outcome = SiteReport::Outcome::kFused;
  site.form = "4d";
  site.q_heads = 8;
  site.kv_heads = 2;
  site.past = true;
  site.scale = 0.125;
  site.peeled = {"Cast", "bias", "scale"};
  site.preconditions = {{"scores-finite", false, "nothing bounds Q K^T"}, {"sizes-equal", true, "both are seq"}};
  Verification verification;
  verification.verdict = Verdict::kVerified;
  verification.algebra_difference = 3e-16;
  verification.type_difference_ulp = 0.5;
  verification.draws = 12;
  verification.seconds = 0.25;
  verification.explained_by = {"rows-keep-a-key"};
  site.verification = verification;
  const Dim batch = Dim::symbol("batch"), length = Dim::symbol("seq");
  site.effect = Effect{batch * length * length * 96, batch, 34, 4};
  site.match_seconds = 0.001;
  draw(site);
  return site;
}

inline SiteReport missed_site() {
  SiteReport site;
  site.name = "/layers.1/attn/Softmax";
  site.op = "Softmax";
  site.graph = "main/If:else";
  site.pattern = "softmax_attention";
  site.miss_id = "softmax.axis";
  site.miss_node = "/layers.1/attn/Softmax";
  site.miss_op = "Softmax";
  site.found = "axis -2, the queries";
  site.peeled = {"Cast"};
  return site;
}

inline SiteReport refused_site() {
  SiteReport site = fused_site();
  site.effect.reset();
  site.name = "/layers.2/attn/Softmax";
  site.outcome = SiteReport::Outcome::kRefused;
  site.verification->verdict = Verdict::kFailed;
  site.verification->reason = "draw 3 (all keys masked): 0.3 off";
  site.verification->algebra_difference = std::numeric_limits<double>::infinity();
  return site;
}

inline Report full_report() {
  Report report;
  report.tool_version = "0.1.0";
  report.input = "in.onnx";
  report.output = "out.onnx";
  report.opset_before = 17;
  report.opset_after = 24;
  report.sites = {fused_site(), missed_site(), refused_site()};
  report.nodes_before = 120;
  report.nodes_after = 90;
  report.operators = {{"Attention", 0, 1}, {"Softmax", 3, 2}};
  report.seconds_read = 0.5;
  report.changed = true;
  return report;
}

}  // namespace attn_opt
