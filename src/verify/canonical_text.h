// A text that two sites share exactly when their verification would run the same: names left out, sizes as chosen.
#pragma once

#include "src/verify/sizes.h"

namespace attn_opt {

struct SiteText {
  const CutSite& site;
  const Emission& emission;
  const Sdpa& sdpa;
  const std::vector<SizeAssignment>& assignments;
  const ReadNodes& read;
};

std::string canonical_text(const SiteText& text);

}  // namespace attn_opt
