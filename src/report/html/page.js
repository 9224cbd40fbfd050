"use strict";
// The page: of one model, or of a batch with a table of models. A model is {input, output, status, message, seconds, report}.

const kLargestExponent = 20, kMostBars = 10;

function verdictOf(model) {
  const report = model.report, places = report ? [...report.sites, ...rewritesOf(report)] : [];
  const worst = places.some((one) => one.verification && one.verification.verdict === "failed");
  const differs = report && report.model_verification && report.model_verification.outputs.some((output) => !output.agrees);
  if (model.status !== 0 || worst || differs) return "bad";
  return places.some((one) => stateOf(one) !== "fused") ? "warn" : "good";
}

function headline(model) {
  if (!model.report) return "No report";
  const {sites, fused} = model.report.summary, rewritten = rewritesWords(rewritesOf(model.report), model.output);
  if (sites === 0 && rewritten) return rewritten;
  const already = model.report.attention_nodes;
  if (sites === 0 && already) return `No attention to fuse: ${already} ${already === 1 ? "is an attention operator" : "are attention operators"} already`;
  if (sites === 0) return "No attention found";
  return `${fused} of ${plural(sites, "attention")} ${model.output ? "" : "can be "}fused${rewritten && `, ${rewritten}`}`;
}

function header(model) {
  const report = model.report, parts = [];
  if (report) {
    const {before, after} = report.opset;
    parts.push(`attn-opt ${report.tool.version}`, before === after ? `opset ${before}` : `opset ${before} → ${after}`,
      secondsText(report.seconds.total || model.seconds));
  }
  return h("header", {class: `verdict ${verdictOf(model)}`}, h("h1", null, headline(model)),
    h("p", null, h("strong", null, model.input || "model in memory"), model.output ? ` → ${model.output}` : ""),
    h("p", {class: "muted"}, parts.join(" · ")),
    model.status !== 0 ? h("p", {class: "gate", role: "alert"}, `Status ${model.status}: ${model.message}`) : null,
    report && report.not_raised.map((reason) => h("p", {class: "gate"}, `Cannot be raised: ${reason}`)),
    report && report.model_verification && report.model_verification.outputs.filter((one) => !one.agrees)
      .map((one) => h("p", {class: "gate"}, `Output ${one.name} differs: ${one.difference}`)));
}

function tile(name, value, ...more) {
  return h("div", {class: "tile"}, h("h3", null, name), h("div", {class: "value"}, value), ...more);
}

function sizeInput(symbol, sizes, update) {
  const range = h("input", {type: "range", min: 0, max: kLargestExponent, step: .25, "aria-label": `${symbol}, slider`});
  const field = h("input", {type: "number", min: 0, max: 2 ** kLargestExponent, "aria-label": symbol});
  const show = () => {
    field.value = sizes[symbol];
    range.value = Math.log2(Math.max(sizes[symbol], 1));
  };
  range.addEventListener("input", () => {
    sizes[symbol] = Math.round(2 ** Number(range.value));
    field.value = sizes[symbol];
    update();
  });
  field.addEventListener("input", () => {
    sizes[symbol] = Math.max(0, Math.floor(Number(field.value)) || 0);
    range.value = Math.log2(Math.max(sizes[symbol], 1));
    update();
  });
  show();
  return h("div", {class: "size"}, h("span", {title: symbol}, symbol), range, field);
}

function scoresTile(effect) {
  const sizes = {...effect.example_sizes}, value = h("output", {class: "value"});
  const update = () => {
    const bytes = evaluate(effect.score_bytes, sizes);
    value.textContent = Number.isFinite(bytes) ? bytesText(bytes) : "not known";
  };
  update();
  const inputs = Object.keys(sizes).sort().map((symbol) => sizeInput(symbol, sizes, update));
  return h("div", {class: "tile wide"}, h("h3", null, "Scores no longer made, each run"), value, inputs,
    h("p", null, "bytes = ", h("code", null, effect.score_bytes)));
}

function assumptionTile(summary) {
  const ids = Object.entries(summary.assumed);
  const lines = ids.map(([id, sites]) => h("p", null, h("code", null, id), ` on ${plural(sites, "site")}`));
  if (summary.refined) lines.push(h("p", null, `NaN may become a number on ${plural(summary.refined, "site")}`));
  return tile("Assumptions", ids.length || "none", lines);
}

function tiles(report) {
  const {summary, bytes, seconds, effect} = report;
  const rewrites = rewritesOf(report), applied = rewrites.filter(isApplied).length;
  const verified = [...report.sites, ...rewrites].filter((one) => stateOf(one) === "fused").length;
  const file = bytes.input === null ? bytesText(bytes.weights) : bytesText(bytes.input);
  return h("div", {class: "tiles"},
    tile("Nodes", report.nodes.before === report.nodes.after ? report.nodes.before : `${report.nodes.before} → ${report.nodes.after}`),
    rewrites.length ? tile("Rewrites", `${applied} of ${rewrites.length}`) : null,
    tile("Verified", `${verified} of ${summary.fused + applied}`, summary.unverified ? h("p", null, `${summary.unverified} not run`) : null),
    effect.score_bytes === "0" ? null : scoresTile(effect),
    assumptionTile(summary),
    tile("File", bytes.output === null ? file : `${file} → ${bytesText(bytes.output)}`, h("p", null, `weights ${bytesText(bytes.weights)}`)),
    tile("Time", secondsText(seconds.total),
      h("p", null, ["read", "match", "verify", "write"].map((step) => `${step} ${secondsText(seconds[step])}`).join(", "))));
}

function strip(report, model) {
  const squares = report.sites.map((site) => h("li", null, h("a", {class: `square ${stateOf(site)}`, href: `#model-${model}-card-${site.group}`,
    title: `${label(site)}: ${site.summary}`, "aria-label": `${label(site)}: ${stateOf(site)}`})));
  return [h("h2", null, "The model, site by site"), h("ol", {class: "strip"}, squares), legend(report)];
}

function legend(report) {
  const states = report.sites.map(stateOf);
  const entry = (state, words) => {
    const count = states.filter((one) => one === state).length;
    return count ? h("span", null, h("span", {class: `square ${state}`}), `${words} ${count}`) : null;
  };
  return h("p", {class: "legend"}, entry("fused", "fused and verified"), entry("unverified", "fused, not verified"), entry("refused", "refused"),
    entry("missed", "missed"));
}

function bars(operators) {
  if (!operators.length) return null;
  const most = Math.max(...operators.map((one) => Math.max(one.before, one.after)));
  const bar = (kind, count) => h("span", {class: "row"}, h("span", {class: `bar ${kind}`, style: `width: ${80 * count / most}%`}), String(count));
  const sorted = [...operators].sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
  const rows = sorted.map((one) => [h("span", {class: "op"}, one.op),
    h("span", {class: "pair"}, bar("before", one.before), bar("after", one.after))]);
  const more = rows.length - kMostBars;
  return [h("h2", null, "Operators whose number changed"),
    h("p", {class: "legend"}, h("span", null, h("span", {class: "bar before", style: "width: 1rem"}), " before"),
      h("span", null, h("span", {class: "bar after", style: "width: 1rem"}), " after")),
    h("div", {class: "bars"}, rows.slice(0, kMostBars)),
    more > 0 ? h("details", null, h("summary", null, `${more} more`), h("div", {class: "bars"}, rows.slice(kMostBars))) : null];
}

function run(report) {
  return [h("h2", null, "The run"),
    h("dl", {class: "facts"}, fact("Options", h("code", null, report.options || "(defaults)")), fact("Version", `attn-opt ${report.tool.version}`),
      fact("Opset", `${report.opset.before} → ${report.opset.after}`)),
    h("details", {class: "no-print"}, h("summary", null, "The report as JSON"), h("pre", {class: "json"}))];
}

function jsonOnDemand(page, report) {
  const pre = page.querySelector("pre.json");
  if (pre) pre.parentElement.addEventListener("toggle", () => { pre.textContent = pre.textContent || JSON.stringify(report, null, 2); });
}

function modelPage(model, number, isBatch) {
  const report = model.report, back = isBatch ? h("p", {class: "no-print"}, h("a", {href: "#"}, "← all models")) : null;
  if (!report) return h("article", null, back, header(model));
  const page = h("article", null, back, header(model), tiles(report), report.sites.length ? strip(report, number) : null,
    report.groups.length ? h("h2", null, "What became of them") : null, byUrgency(report).map((group) => card(report, number, group)),
    rewritesPart(report), bars(report.operators), run(report));
  jsonOnDemand(page, report);
  return page;
}

function modelRow(model, number) {
  const report = model.report, verdict = verdictOf(model);
  const places = report ? [...report.sites, ...rewritesOf(report)] : [];
  const misses = [...new Set(places.filter((one) => one.miss).map((one) => one.miss.id))];
  const squares = report ? report.sites.map((site) => h("span", {class: `square ${stateOf(site)}`})) : [];
  const words = [headline(model), model.message, ...misses].filter(Boolean);
  return h("tr", {"data-words": [model.input, verdict, ...words].join(" ").toLowerCase()},
    h("td", null, h("a", {href: `#model-${number}`}, model.input)),
    h("td", null, h("span", {class: `badge ${verdict}`}, model.status === 0 ? "done" : `status ${model.status}`), headline(model)),
    h("td", null, h("span", {class: "strip small", "aria-hidden": "true"}, squares)),
    h("td", null, [model.message, ...misses].filter(Boolean).join("; ")),
    h("td", null, secondsText(model.seconds)));
}

function batchPage(models) {
  const rows = models.map(modelRow), count = h("span", {class: "muted", role: "status"}, plural(models.length, "model"));
  const rewritten = rewritesWords(models.flatMap((model) => rewritesOf(model.report)), models.some((model) => model.output));
  const sum = (key) => models.reduce((total, model) => total + (model.report ? model.report.summary[key] : 0), 0);
  const verdicts = models.map(verdictOf), worst = ["bad", "warn", "good"].find((one) => verdicts.includes(one)) || "good";
  const filter = (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.dataset.words.includes(word));
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = shown === rows.length ? plural(shown, "model") : `${shown} of ${plural(rows.length, "model")}`;
  };
  const failed = models.filter((model) => model.status !== 0).length;
  return h("article", null,
    h("header", {class: `verdict ${worst}`}, h("h1", null, `${sum("fused")} of ${plural(sum("sites"), "attention")} ${models.some((model) => model.output) ? "" : "can be "}fused${rewritten && `, ${rewritten}`}`),
      h("p", null, `${plural(models.length, "model")}`, failed ? h("span", {class: "gate"}, `, ${failed} with a status other than 0`) : "")),
    h("div", {class: "filter"}, h("label", {for: "filter"}, "Filter"), h("input", {id: "filter", type: "search", oninput: filter,
      placeholder: "name, verdict (bad, warn, good) or miss"}), count),
    h("table", {class: "models"}, h("thead", null, h("tr", null, ["Model", "Verdict", "Sites", "What stopped it", "Time"].map((name) => h("th", {scope: "col"}, name)))),
      h("tbody", null, rows)));
}

function start() {
  const models = [...document.querySelectorAll('script[type="application/json"].model')].map((script) => JSON.parse(script.textContent));
  const isBatch = document.querySelector("script.batch") !== null, page = document.getElementById("page");
  let shown = null;
  const show = (key, make) => {
    if (shown !== key) page.replaceChildren(make());
    shown = key;
  };
  const route = () => {
    const found = /^#model-(\d+)/.exec(location.hash), number = found ? Number(found[1]) : 0;
    if (isBatch && !(found && models[number])) show("batch", () => batchPage(models));
    else if (models[number]) show(number, () => modelPage(models[number], number, isBatch));
    const target = found && document.getElementById(location.hash.slice(1));
    if (target) { target.scrollIntoView(); target.focus({preventScroll: true}); }
    else if (isBatch) scrollTo(0, 0);
  };
  document.title = isBatch ? `attn-opt: ${plural(models.length, "model")}` : `attn-opt: ${models.length ? models[0].input : ""}`;
  addEventListener("hashchange", route);
  route();
}

start();
