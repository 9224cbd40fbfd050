#include "src/report/batch_totals.h"
#include "src/report/model_entry.h"
#include "src/report/report_streams.h"

namespace attn_opt {
namespace {

using nlohmann::json;

constexpr int kIndent = 2;

class ModelJson : public ReportStream {
 public:
  std::string begin() override { return {}; }
  std::string add(const ModelOutcome& model) override { return model.report.dump(kIndent) + "\n"; }
  std::string end() override { return {}; }
};

/// docs/schema/batch-1.schema.json, a model a line.
class BatchJson : public ReportStream {
 public:
  std::string begin() override { return "{\n\"schema_version\": 1,\n\"tool\": {\"name\": \"attn-opt\"},\n\"models\": ["; }
  std::string add(const ModelOutcome& model) override {
    const std::string separator = totals_.models == 0 ? "\n" : ",\n";
    totals_.add(model);
    return separator + entry_of(model).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  std::string end() override { return "\n],\n\"summary\": " + to_json(totals_).dump() + "\n}\n"; }

 private:
  BatchTotals totals_;
};

}  // namespace

std::unique_ptr<ReportStream> json_stream(ReportScope scope) {
  if (scope == ReportScope::kOne) return std::make_unique<ModelJson>();
  return std::make_unique<BatchJson>();
}

}  // namespace attn_opt
