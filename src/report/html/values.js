"use strict";
// Numbers, texts and elements. What comes from a model becomes text nodes and nothing else.

/** An element with attributes and children: elements, texts, or lists of them; null and false are none. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== false && child !== undefined) element.append(child);
  return element;
}

/** TEXT with what stands between backticks as code. */
function prose(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", null, part) : part));
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

function bytesText(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.length; ++unit) bytes /= 1000;
  return `${bytes.toLocaleString("en", {maximumSignificantDigits: 3})} ${units[unit]}`;
}

function secondsText(seconds) {
  if (typeof seconds !== "number") return String(seconds);
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toPrecision(3)} s`;
}

function short(number) {
  return typeof number === "number" ? String(Number(number.toPrecision(2))) : String(number);
}

/** WORD as a shell takes it. */
function shellWord(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The value of FORMULA, a Dim as the report writes it, where SIZES says what each symbol is; NaN if it cannot be read. */
function evaluate(formula, sizes) {
  const symbols = Object.keys(sizes).sort((a, b) => b.length - a.length);
  let rest = formula;
  const take = (token) => {
    const text = rest.trimStart();
    if (!text.startsWith(token)) return false;
    rest = text.slice(token.length);
    return true;
  };
  const call = (name, combine) => {
    if (!take(`${name}(`)) return null;
    const values = [sum()];
    while (take(",") || take("/")) values.push(sum());
    return take(")") ? combine(...values) : NaN;
  };
  const factor = () => {
    if (take("-")) return -factor();
    const special = call("floor", (a, b) => Math.floor(a / b)) ?? call("min", Math.min) ?? call("max", Math.max) ?? call("", (a) => a);
    if (special !== null) return special;
    const symbol = symbols.find((one) => take(one));
    if (symbol !== undefined) return sizes[symbol];
    const digits = /^\s*\d+/.exec(rest);
    if (digits) take(digits[0].trim());
    return digits ? Number(digits[0]) : NaN;
  };
  const product = () => {
    let value = factor();
    while (take("*")) value *= factor();
    return value;
  };
  const sum = () => {
    let value = product();
    for (;;) {
      if (take("+")) value += product();
      else if (take("-")) value -= product();
      else return value;
    }
  };
  const value = sum();
  return rest.trim() === "" ? value : NaN;
}
