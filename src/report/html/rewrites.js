"use strict";
// Places where a rewrite matched: a card for those that differ in nothing but where they are.

/** Those of REPORT, which may be of an earlier version. */
function rewritesOf(report) {
  return (report && report.rewrites) || [];
}

function isApplied(rewrite) {
  return rewrite.outcome === "rewritten";
}

/** "2 of 3 rewrites applied"; empty where none matched. */
function rewritesWords(rewrites, isWritten) {
  if (!rewrites.length) return "";
  return `${rewrites.filter(isApplied).length} of ${plural(rewrites.length, "rewrite")} ${isWritten ? "" : "can be "}applied`;
}

/** Lists of rewrites that are equal, those that were not applied first. */
function rewriteGroups(rewrites) {
  const groups = new Map(), states = ["refused", "missed", "unverified", "fused"];
  for (const one of rewrites) {
    const key = JSON.stringify([one.pattern, stateOf(one), one.op, one.nodes.length, one.written, one.miss && [one.miss.id, one.miss.found]]);
    groups.set(key, [...(groups.get(key) || []), one]);
  }
  return [...groups.values()].sort((a, b) => states.indexOf(stateOf(a[0])) - states.indexOf(stateOf(b[0])));
}

function codes(names) {
  return names.map((name, i) => [i ? ", " : "", h("code", null, name)]);
}

function rewriteMiss(rewrite, report) {
  const miss = rewrite.miss;
  if (!miss) return stateOf(rewrite) === "unverified" ? manualOf("verification.unverified", report.manual) : null;
  const command = ["attn-opt explain", shellWord(report.input), "--node", shellWord(rewrite.name), report.options].filter(Boolean).join(" ");
  return [h("p", null, h("code", null, miss.id), miss.node ? [" at ", h("code", null, miss.node), ` (${miss.op})`] : "", `: ${miss.found}`),
    manualOf(miss.id, report.manual), h("h3", null, "Next"), h("pre", null, command)];
}

function rewriteCard(group, report) {
  const first = group[0], state = stateOf(first), words = {fused: "rewritten", unverified: "rewritten, unverified"}[state] || state;
  const places = group.length === 1 ? null : h("details", null, h("summary", null, `Stands for ${plural(group.length, "equal place")}`),
    h("ol", {class: "names"}, group.map((one) => h("li", null, h("code", null, qualifiedName(one))))));
  return h("section", {class: `card rewrite ${state}`},
    h("h3", null, h("span", {class: `badge ${state}`}, words), group.length > 1 ? `${group.length} × ` : "", first.pattern, " at ",
      h("code", null, qualifiedName(first)), ` (${first.op})`),
    places, rewriteMiss(first, report),
    h("dl", {class: "facts"}, fact(isApplied(first) ? "Replaced" : "To replace", codes(first.nodes)),
      fact(isApplied(first) ? "Written" : "To write", first.written.length || !first.nodes.length ? codes(first.written) : "no node"),
      fact("Recognised", first.peeled.join(" → ")), fact("Verified", verificationWords(first))));
}

function rewritesPart(report) {
  const rewrites = rewritesOf(report);
  if (!rewrites.length) return null;
  return [h("h2", null, "Rewrites"),
    report.rewrites_left ? h("p", {class: "gate"}, "The rounds were not enough: more may be left.") : null,
    rewriteGroups(rewrites).map((group) => rewriteCard(group, report))];
}
