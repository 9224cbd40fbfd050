// All of attn-opt's library.
//
//   auto model = attn_opt::load_model("in.onnx");
//   auto report = attn_opt::optimize(*model, {});
//   auto saved = attn_opt::save_model(*model, "out.onnx");
//
// Everything that can fail returns an Expected (status.h). docs/cpp.md is the manual.
#pragma once

#include "attn_opt/attention_parts.h"
#include "attn_opt/canonical.h"
#include "attn_opt/executor.h"
#include "attn_opt/graph_builder.h"
#include "attn_opt/matcher.h"
#include "attn_opt/model_bytes.h"
#include "attn_opt/model_io.h"
#include "attn_opt/optimizer.h"
#include "attn_opt/pattern.h"
#include "attn_opt/report.h"
#include "attn_opt/rewrite.h"
#include "attn_opt/rules.h"
#include "attn_opt/version.h"
