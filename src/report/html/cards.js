"use strict";
// A card for each group of equal sites.

const kLeastScale = .75;
const kStates = {proven: "proven", refined: "NaN may become a number", assumed: "assumed"};

function qualifiedName(site) {
  return site.graph === "main" || site.graph === "" ? site.name : `${site.graph}: ${site.name}`;
}

/** "layers.1 (own.py:19)", or the part of it that is known and that the name does not say. */
function placeOf(site) {
  const line = site.source_file ? `(${site.source_file.split(/[/\\]/).pop()}:${site.source_line})` : "";
  const module = site.module && !site.name.startsWith("/") ? site.module : "";
  return [module, line].filter(Boolean).join(" ");
}

/** The place, then the name. */
function label(site) {
  return [placeOf(site), qualifiedName(site)].filter(Boolean).join(" ");
}

/** fused (a rewrite: applied), refused, missed, or unverified for what is fused without having been run. */
function stateOf(site) {
  if (site.outcome !== "fused" && site.outcome !== "rewritten") return site.outcome;
  return site.verification && site.verification.verdict === "verified" ? "fused" : "unverified";
}

function fact(name, ...value) {
  return value.flat().some((part) => part !== null && part !== "") ? [h("dt", null, name), h("dd", null, ...value)] : [];
}

function verificationWords(site) {
  const result = site.verification;
  if (!result) return site.outcome === "missed" ? null : "not run (--verify off, or refused before)";
  const badge = h("span", {class: `badge ${result.verdict}`}, result.verdict);
  if (result.verdict === "unverified") return [badge, result.reason || ""];
  const words = `Both sides ran on ${plural(result.draws, "set")} of random inputs. In double precision they differ by at most ` +
    `${short(result.algebra_difference)} (relative); in ${site.type || "the model's own type"} by at most ${short(result.type_difference_ulp)} ulp ` +
    `of what a row may round by.`;
  return [badge, words, result.shared ? " The verdict is that of an equal site." : "", result.reason ? ` ${result.reason}` : ""];
}

function headsWords(site) {
  if (!site.q_heads) return null;
  const heads = plural(site.q_heads, "head");
  return site.kv_heads && site.kv_heads !== site.q_heads ? `${heads} of Q on ${site.kv_heads} of K and V` : heads;
}

function tensorNames(site, role) {
  return (site.tensors[role] || []).map((name, i) => [i ? ", " : "", h("code", null, name)]);
}

function siteFacts(site) {
  const form = [site.form && `${site.form} operands`, headsWords(site), site.type, site.past && "with a cache", site.is_causal && "causal"];
  const scale = site.scale === null ? null : `scores are multiplied by ${Number(site.scale.toPrecision ? site.scale.toPrecision(7) : site.scale)}`;
  return h("dl", {class: "facts"},
    fact("Written as", site.outcome === "missed" ? null : form.filter(Boolean).join(", ")),
    fact("Scale", scale, site.softcap ? `, softcap ${site.softcap}` : null),
    fact("Mask", site.outcome === "missed" ? null : site.mask || "none"),
    ["Q", "K", "V", "mask", "bias", "past_key", "past_value", "output", "present_key", "present_value"].map((role) => fact(role, tensorNames(site, role))),
    fact("Recognised", site.peeled.join(" → ")),
    fact("Nodes", site.effect ? `${plural(site.effect.nodes_removed, "node")} removed, ${site.effect.nodes_added} written; those that compute shapes and constants are not drawn` : null),
    fact("Verified", verificationWords(site)));
}

function assumptionItem(condition, manual) {
  const state = condition.proven ? "proven" : condition.refinement ? "refined" : "assumed";
  return h("li", {class: state}, h("span", {class: `badge ${state}`}, kStates[state]), h("code", null, condition.id),
    condition.detail ? ` ${condition.detail}` : "",
    manual.preconditions[condition.id] ? h("p", {class: "muted"}, prose(manual.preconditions[condition.id])) : null);
}

function assumptions(site, manual) {
  if (!site.preconditions.length) return null;
  return [h("h3", null, "What must hold for this to be exact"),
    h("ul", {class: "assumptions"}, site.preconditions.map((one) => assumptionItem(one, manual)))];
}

/** TEMPLATE's drawing, which shrinks to where it is, but not until it cannot be read. */
function scrolled(template, caption) {
  const svg = template.content.firstElementChild.cloneNode(true), width = Number(svg.getAttribute("width"));
  svg.style.maxWidth = `${width}px`;
  svg.style.minWidth = `${Math.round(width * kLeastScale)}px`;
  const hint = h("p", {class: "muted no-print", hidden: true}, "Wider than the page: scroll sideways.");
  const region = h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, svg);
  new ResizeObserver(() => {  // the widest rank, and so the way of the tensors, is about the middle
    const hidden = region.scrollWidth - region.clientWidth;
    hint.hidden = hidden <= 1;
    region.scrollLeft = hidden / 2;
  }).observe(region);
  return [hint, region];
}

function drawing(key, caption, graph) {
  if (!graph || !graph.nodes.length) return null;
  const template = document.querySelector(`template[data-drawing="${key}"]`);
  const picture = template ? scrolled(template, caption)
    : h("p", {class: "muted"}, "Not drawn: this attn-opt was built without Graphviz.");
  const nodes = graph.nodes.map((node) => h("li", {class: node.role}, `${node.op} `, h("code", null, node.name),
    Object.entries(node.attributes).map(([name, value]) => ` ${name}=${value}`)));
  const width = template ? Number(template.content.firstElementChild.getAttribute("width")) : 300;
  return h("figure", {style: `flex: ${width} 1 ${Math.round(width * kLeastScale) + 20}px`}, h("figcaption", null, caption), picture,
    graph.is_cut ? h("p", {class: "muted"}, "What is further away is left out.") : null,
    h("details", {open: !template}, h("summary", null, `${plural(nodes.length, "node")} drawn`), h("ol", {class: "names"}, nodes)));
}

function drawings(model, number, group) {
  const missed = !group.after;
  return h("div", {class: "drawings"},
    drawing(`${model}-${number}-before`, missed ? "What was found" : "Before", group.before),
    drawing(`${model}-${number}-after`, "After", group.after));
}

function manualOf(id, manual) {
  const known = manual.misses[id];
  if (!known) return null;
  return h("div", {class: "manual"}, h("p", null, prose(known.meaning)),
    known.example ? h("p", null, h("strong", null, "Example: "), prose(known.example)) : null,
    known.remedy ? h("p", null, h("strong", null, "Remedy: "), prose(known.remedy)) : null);
}

function missPart(site, report) {
  const verdict = site.verification && site.verification.verdict !== "verified" ? `verification.${site.verification.verdict}` : null;
  if (!site.miss) return verdict ? manualOf(verdict, report.manual) : null;
  const miss = site.miss, command = `attn-opt explain ${shellWord(report.input)} --node ${shellWord(site.name)}`;
  return [
    h("p", null, h("code", null, miss.id), miss.node ? [" at ", h("code", null, miss.node), ` (${miss.op})`] : " at an input", `: ${miss.found}`),
    manualOf(miss.id, report.manual),
    site.other_misses.map((other) => h("p", {class: "muted"}, `${other.pattern}: `, h("code", null, other.id), ` ${other.found}`)),
    h("h3", null, "Next"), h("pre", null, `${command}\n${command} --case-out case.onnxtxt`)];
}

/** Groups by what a reader looks for: those that are not fused, each kind in the model's order. */
function byUrgency(report) {
  const states = ["refused", "missed", "unverified", "fused"];
  const rank = (number) => states.indexOf(stateOf(report.sites[report.groups[number].sites[0]]));
  return [...report.groups.keys()].sort((a, b) => rank(a) - rank(b) || a - b);
}

function standsFor(group, sites) {
  if (group.sites.length === 1) return null;
  return h("details", null, h("summary", null, `Stands for ${plural(group.sites.length, "equal site")}`),
    h("ol", {class: "names"}, group.sites.map((i) => h("li", null, placeOf(sites[i]), " ", h("code", null, qualifiedName(sites[i]))))));
}

/** The card of group NUMBER of REPORT, model number MODEL of the page. */
function card(report, model, number) {
  const group = report.groups[number], site = report.sites[group.sites[0]], state = stateOf(site);
  const heading = group.sites.length > 1 ? `${group.sites.length} × ` : "";
  const names = h("h3", null, h("span", {class: `badge ${state}`}, state === "unverified" ? "fused, unverified" : state), heading, placeOf(site) ? [placeOf(site), " ", h("code", null, qualifiedName(site))] : qualifiedName(site));
  return h("section", {class: `card ${state}`, id: `model-${model}-card-${number}`, tabindex: "-1"}, names, standsFor(group, report.sites),
    missPart(site, report), drawings(model, number, group), siteFacts(site), assumptions(site, report.manual));
}
