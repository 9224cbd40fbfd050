#include "python/src/options.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "attn_opt/model_bytes.h"
#include "python/src/errors.h"
#include "python/src/patterns.h"

namespace attn_opt::python {
namespace {

class OptionReader {
 public:
  explicit OptionReader(const nb::dict& options) : options_(options) {}

  /// Sets FIELD if there is an option NAME.
  template <class T>
  void operator()(const char* name, T& field) const {
    if (!options_.contains(name)) return;
    const nb::object given(options_[name]);
    if (nb::try_cast(given, field)) return;
    const auto value = nb::cast<std::string>(nb::repr(given)), type = nb::cast<std::string>(given.type().attr("__name__"));
    throw nb::type_error((std::string(name) + "=" + value + ": a " + type + " is no value of it").c_str());
  }

 private:
  const nb::dict& options_;
};

const std::map<std::string, ExternalData> kExternalData = {
    {"auto", ExternalData::kAuto}, {"inline", ExternalData::kInline}, {"external", ExternalData::kExternal}};

}  // namespace

Expected<Model> ModelSource::load() {
  if (!bytes) return load_valid({path, data_folders});
  LoadOptions options;
  options.allowed_data_dirs.assign(data_folders.begin(), data_folders.end());
  auto parsed = parse_model(std::move(*bytes), path, options);
  if (!parsed && parsed.error().remedy.empty() && parsed.error().what.find("external data file") != std::string::npos)
    parsed.error().remedy = "base_dir= is the folder that it lies in";
  if (parsed) {
    ATTN_OPT_CHECK(check_model(*parsed));
  }
  return parsed;
}

ModelSource source_of(nb::handle model) {
  const auto [path, bytes, folders] = nb::cast<std::tuple<std::string, nb::object, std::vector<std::string>>>(model);
  ModelSource source{path, std::nullopt, folders};
  if (!bytes.is_none()) {
    const auto content = nb::cast<nb::bytes>(bytes);
    source.bytes.emplace(content.c_str(), content.size());
  }
  return source;
}

OptimizeJob job_of(const nb::dict& options) {
  const OptionReader read(options);
  OptimizeJob job;
  OptimizeArguments& optimize = job.optimize;
  read("output", job.output);
  read("opset", optimize.opset);
  read("only", optimize.only);
  read("disable", optimize.disable);
  read("also", optimize.also);
  read("priorities", optimize.priorities);
  read("rules", optimize.patterns);
  read("target", optimize.target);
  read("form", optimize.form);
  read("stage", optimize.stage);
  read("kv_cache", optimize.kv_cache);
  read("verify", optimize.verify);
  read("strict", optimize.strict);
  read("exact", optimize.exact);
  read("assume", optimize.assume);
  read("allow_unverified", optimize.allow_unverified);
  read("stop_after", optimize.stop_after);
  read("require_fused", job.requirements.fused);
  read("require_all_fused", job.requirements.all_fused);
  read("allow_none", job.requirements.allow_none);
  read("check", job.requirements.check);
  read("fail_on_mismatch", job.requirements.fail_on_mismatch);
  read("test_data", job.test_data);
  std::string external_data = "auto";
  read("external_data", external_data);
  if (const auto known = kExternalData.find(external_data); known != kExternalData.end())
    job.save.external_data = known->second;
  else
    raise(
        exception_of({ErrorCode::kUsage, "external_data", "there is no '" + external_data + "'", "auto, inline or external"}));
  job.trial = trial_of(options);
  if (options.contains("patterns")) optimize.more_patterns = patterns_of(nb::object(options["patterns"]));
  if (options.contains("rewrites")) optimize.more_rewrites = rewrites_of(nb::object(options["rewrites"]));
  return job;
}

TrialArguments trial_of(const nb::dict& options) {
  const OptionReader read(options);
  TrialArguments trial;
  read("dims", trial.dims);
  read("rtol", trial.rtol);
  read("atol", trial.atol);
  read("compute", trial.compute);
  read("threads", trial.threads);
  read("memory_limit", trial.memory_limit);
  return trial;
}

}  // namespace attn_opt::python
