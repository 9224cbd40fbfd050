// Which sites of which models were fused, and how often rewrites were applied: what a gate holds later runs against
// (docs/schema/baseline-1.schema.json).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

/// What becomes of a model that a baseline does not have.
enum class NewModels { kFail, kWarn, kAccept };

class Baseline {
 public:
  /// PATH is a baseline, or the JSON report of a single model. Error: kInvalidInput.
  static Expected<Baseline> read(const std::filesystem::path& path);
  /// As read(); without anything in it if there is no such file.
  static Expected<Baseline> read_or_begin(const std::filesystem::path& path);

  /// Holds REPORT, as to_json() makes it, against what is known of its model; of one that is not known the new models' rule
  /// decides. A site counts as kept when one of another name, and new, is fused instead, and none is new that is not fused:
  /// exporters rename nodes. A rewrite counts as kept when it is applied as often. Error: kRequirement.
  Status check(const nlohmann::json& report) const;
  /// What check() lets pass and a reader should know: new models, and attention that is not fused and that it does not have.
  std::vector<std::string> warnings(const nlohmann::json& report) const;
  /// Is there anything to hold MODEL against?
  bool knows(const std::string& model) const { return !any_model_.is_null() || models_.contains(key_of(model)); }
  void set_new_models(NewModels new_models) { new_models_ = new_models; }
  /// Sets "lost" of each site of REPORT: true if it was fused and is not.
  void mark_lost(nlohmann::json& report) const;
  /// The losses that update() would accept, a sentence each.
  std::vector<std::string> accepted(const nlohmann::json& report) const;
  /// Enters the sites of REPORT in place of what was known of its model.
  void update(const nlohmann::json& report);
  /// The models that it has below one of FOLDERS, and that are none of MODELS: paths, from the working directory.
  std::vector<std::string> vanished(const std::vector<std::string>& folders,
                                    const std::vector<std::filesystem::path>& models) const;
  /// Forgets the models that vanished() gives.
  void forget(const std::vector<std::string>& models);
  /// Error: kOutput.
  Status write() const;

 private:
  explicit Baseline(std::filesystem::path path) : path_(std::move(path)) {}
  std::string key_of(const std::string& model) const;
  const nlohmann::json& known_of(const std::string& model) const;

  std::filesystem::path path_;
  NewModels new_models_ = NewModels::kFail;
  nlohmann::json models_ = nlohmann::json::object();  ///< by path, from the baseline's folder
  nlohmann::json any_model_;                          ///< of a report: whatever the model is called
};

}  // namespace attn_opt
