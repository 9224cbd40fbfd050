// What a run did, site by site, for people and for machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/dim.h"
#include "attn_opt/status.h"
#include "attn_opt/verification.h"

namespace attn_opt {

/// What fusing a site spares each run of the model.
struct Effect {
  Dim score_bytes;  ///< bytes of tensors of B * H * L * S elements that are no longer made
  Dim batch;        ///< B
  int nodes_removed = 0, nodes_added = 0;
  size_t products = 1;  ///< as Sdpa::products: with several, what is written makes the scores as often, and takes longer
};

/// What a further pattern missed at a site.
struct OtherMiss {
  std::string pattern, id, node, op, found;
  std::vector<std::string> peeled;
};

/// A part of a model, to be drawn.
struct SiteGraph {
  /// An operator.
  struct Node {
    enum class Role {
      kPlain,
      kAnchor,   ///< at which the attention was looked for
      kWalked,   ///< between that and where recognition stopped
      kStopped,  ///< where it stopped
      kWritten,  ///< not of the file
    };
    std::string name, op;
    Role role = Role::kPlain;
    std::vector<std::pair<std::string, std::string>> attributes;  ///< short ones, as texts
  };
  /// What flows between nodes, in or out.
  struct Tensor {
    std::string name;
    std::string type;                               ///< "float16"; empty: not known
    std::optional<std::vector<std::string>> shape;  ///< sizes as the model has them; none: rank not known
    std::string role;                               ///< "Q", "mask", "output"; empty: none
    std::optional<double> number;                   ///< the one element that a constant has
    int from = -1;                                  ///< the node that makes it; -1: none of those drawn
    std::vector<int> to;                            ///< nodes that read it, each once
  };
  std::vector<Node> nodes;  ///< each after those it reads
  std::vector<Tensor> tensors;
  bool is_cut = false;  ///< what is further from the output than kMostNodes reach is left out

  static constexpr size_t kMostNodes = 64;
};

/// What became of one place of a model.
struct PlaceReport {
  enum class Outcome { kFused, kMissed, kRefused };  ///< refused: recognised, but verification or --strict said no
  std::string name;                                  ///< label of the node at which a pattern matched or not
  std::string op;                                    ///< operator of that node: "Softmax", "com.microsoft::MultiHeadAttention"
  std::string graph;                                 ///< "main", or the path of bodies: "main/If_3:then_branch"
  std::string pattern;
  Outcome outcome = Outcome::kMissed;
  std::vector<std::string> peeled;
  std::optional<Verification> verification;        ///< none with --verify off
  std::string miss_id, miss_node, miss_op, found;  ///< of those that were refused or missed: the miss that got furthest
  double match_seconds = 0;
};

/// What became of one site of attention.
struct SiteReport : PlaceReport {
  std::string module;                      ///< of the user's program: "model.layers.0.self_attn"; empty: not known
  std::string source_file;                 ///< of the user's program; empty: not known
  int source_line = 0;                     ///< from 1
  std::string type;                        ///< of Q, K and V: "float16"; empty: not known
  std::optional<SiteGraph> before, after;  ///< with OptimizeOptions::draw

  // fused or refused
  std::string form;                   ///< "3d" or "4d"
  int64_t q_heads = 0, kv_heads = 0;  ///< 0: not known
  bool past = false;
  bool is_causal = false;    ///< as written
  std::string mask_reading;  ///< which masks is_causal says, and why not the others
  double scale = 0, softcap = 0;
  std::vector<Precondition> preconditions;
  std::optional<Effect> effect;  ///< of fused sites

  // missed
  std::vector<OtherMiss> other_misses;  ///< of further patterns at the same node
};

/// What became of one place where a rewrite (rewrite.h) matched. kFused: it was applied.
struct RewriteReport : PlaceReport {
  std::vector<std::string> nodes;      ///< labels of those that are replaced
  std::vector<std::string> operators;  ///< those that are written instead
};

/// What became of a model's growing caches, with OptimizeOptions::kv_cache. kFused: they are buffers.
struct KvCacheReport : PlaceReport {
  /// An input or output whose shape is another now.
  struct Tensor {
    std::string name, type;
    std::vector<std::string> before, after;  ///< sizes; before: none of an input that is new
  };
  int sites = 0;             ///< nodes that read and write buffers
  std::string length;        ///< rows of the buffers: a number or a symbol
  std::string length_input;  ///< the new input: how many rows hold keys before the run
  std::vector<Tensor> inputs, outputs;
};

/// How many nodes of an operator the model had and has.
struct OperatorCount {
  std::string op;  ///< "MatMul", "com.microsoft::FusedMatMul"
  int before = 0, after = 0;
};

/// The whole model, run as it was and as it is to be written.
struct ModelVerification {
  /// How one output differs between the two.
  struct Output {
    std::string name;
    bool agrees = false;
    double absolute = 0, relative = 0, ulp = 0;  ///< largest differences
    std::string difference;                      ///< in words
  };
  int runs = 0;
  std::vector<Output> outputs;  ///< the worst of all runs
};

/// What a run did with one model.
struct Report {
  static constexpr int kSchemaVersion = 1;
  std::string tool_version, input, output;
  std::string options;                               ///< those of the command that are not their defaults
  std::optional<int64_t> input_bytes, output_bytes;  ///< of files, without external data
  int64_t weight_bytes = 0;                          ///< of the model's initializers as it was read
  int opset_before = 0, opset_after = 0;
  std::vector<SiteReport> sites;
  std::vector<RewriteReport> rewrites;  ///< by round; of the last alone those that were refused or missed
  bool has_rewrites_left = false;       ///< the rounds were not enough
  std::vector<std::string> not_raised;  ///< misses "opset.raise": what kept the model from being raised
  int nodes_before = 0, nodes_after = 0;
  int attention_nodes = 0;               ///< operators of attention that the model had and that are no sites
  std::vector<OperatorCount> operators;  ///< those whose number changed
  double seconds_read = 0, seconds_match = 0, seconds_verify = 0, seconds_write = 0;
  double seconds_total = 0;  ///< from start to report
  bool changed = false;
  std::optional<ModelVerification> model_verification;
  std::optional<KvCacheReport> kv_cache;  ///< where static caches were asked for

  int fused() const;
  int missed() const;
  int refused() const;
  int rewritten() const;  ///< rewrites that were applied
};

/// The JSON report; docs/report.md describes its schema.
nlohmann::json to_json(const Report& report);
/// The text report: a before/after table, then a line a site.
std::string to_text(const Report& report, bool with_sites);
/// SITE in a few lines: what was peeled, then its form, preconditions and verdict, or where and why recognition stopped.
std::string explain(const SiteReport& site);
/// REWRITE in a few lines: what was recognised, what is replaced by what, the verdict, or what is in the way.
std::string explain(const RewriteReport& rewrite);

}  // namespace attn_opt
