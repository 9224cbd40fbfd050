// What a batch's report has of each model.
#pragma once

#include "src/report/report_stream.h"

namespace attn_opt {

/// An element of "models" of docs/schema/batch-1.schema.json.
inline nlohmann::json entry_of(const ModelOutcome& model) {
  using nlohmann::json;
  return {{"input", model.input},     {"output", model.output.empty() ? json() : json(model.output)},
          {"status", model.status},   {"message", model.message.empty() ? json() : json(model.message)},
          {"seconds", model.seconds}, {"report", model.report}};
}

}  // namespace attn_opt
