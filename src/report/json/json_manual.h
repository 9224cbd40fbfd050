// What the documentation says of the ids that a report names.
#pragma once

#include <nlohmann/json.hpp>

#include "attn_opt/report.h"

namespace attn_opt {

/// {"misses": {ID: {"meaning", "example", "remedy"}}, "preconditions": {ID: meaning}} of the ids in REPORT that the manual has.
nlohmann::json manual_for(const Report& report);

}  // namespace attn_opt
