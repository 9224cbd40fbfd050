// What a report says of one site, in a phrase each.
#pragma once

#include <string>

#include "attn_opt/report.h"

namespace attn_opt {

/// The place's name, with its graph if that is not the main one: whole, as --node takes it.
std::string site_name(const PlaceReport& place);
/// What the user calls the place: "layers.0.attn (model.py:10)", or a part of it; empty where nothing is known or NAME, the
/// site's own, says the module already.
std::string place_phrase(const std::string& name, const std::string& module, const std::string& source_file,
                         int64_t source_line);
/// "layers.0.attn (model.py:10)  NAME", or the name alone.
std::string site_label(const SiteReport& site);
/// "attn-opt explain MODEL --node GRAPH/NAME", without "main/", for a shell.
std::string explain_words(const std::string& model, const std::string& graph, const std::string& name);
/// "2 are attention operators already" of those that are no sites; empty where there are none.
std::string already_phrase(const Report& report);
/// "4d, 32 heads on 8, with past".
std::string form_phrase(const SiteReport& site);
/// "verified (3e-16, 0.4 ulp)", "not verified".
std::string short_verdict(const PlaceReport& place);
/// "verified (algebra 3e-16, 0.4 ulp, 12 draws)", "not verified".
std::string verdict_phrase(const PlaceReport& place);
/// "at NODE (OP): what was found".
std::string miss_phrase(const std::string& node, const std::string& op, const std::string& found);
std::string miss_phrase(const PlaceReport& place);
/// "[PATTERN] ID at NODE (OP): what was found".
std::string miss_phrase(const OtherMiss& miss);
/// Where a miss lies that FOUND nothing but the operator OP: "between Q·Kᵀ and the softmax"; empty for others.
std::string way_of(const std::string& miss_id, const std::string& op, const std::string& found);
/// Why recognition stopped at the node NODE of the site NAME: "Elu between Q·Kᵀ and the softmax [scores.operator]".
std::string reason_phrase(const std::string& name, const std::string& id, const std::string& node, const std::string& op,
                          const std::string& found);
std::string reason_phrase(const SiteReport& site);
/// The miss, or else form and verdict with its reason.
std::string site_phrase(const SiteReport& site);

}  // namespace attn_opt
