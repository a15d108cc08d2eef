// Numbers as people read them, and the elements that they stand in.

export const VERDICTS = ["hit", "stale", "revalidated", "miss", "pass", "error", "none"];

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (number) => (number < 1e6 ? whole.format(Math.round(number)) : short.format(number));
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
export const rate = (number) => (number < 1000 ? tenths.format(number) : short.format(number));

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${digits.format(number)} ${units[unit]}`;
}

// 100 % is said only if it is so.
export function percent(share) {
  if (share === null || !Number.isFinite(share)) return "-";
  const rounded = Math.floor(share * 1000) / 10;
  return `${rounded.toFixed(share === 1 ? 0 : 1)} %`;
}

export const share = (part, all) => (all > 0 ? part / all : null);

// A time that is measured.
export function time(seconds) {
  if (seconds === undefined || seconds === null) return "-";
  if (seconds < 1e-3) return `${digits.format(seconds * 1e6)} µs`;
  return seconds < 1 ? `${digits.format(seconds * 1e3)} ms` : `${digits.format(seconds)} s`;
}

// A time that passes.
export function duration(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(0, units.findIndex(([, length]) => seconds >= length));
  if (seconds < 1) return "0 s";
  const [name, length] = units[first];
  const [next, part] = units[first + 1] ?? [];
  const rest = next ? Math.floor((seconds % length) / part) : 0;
  return `${Math.floor(seconds / length)} ${name}${rest ? ` ${rest} ${next}` : ""}`;
}

// An element with properties and children; texts are never read as HTML.
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) made.style.setProperty(key, value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A share as a bar, and in figures.
export function bar(part) {
  if (part === null) return "-";
  return element("div", { class: "bar" }, element("i", { "--share": Math.round(part * 100) }), element("span", {}, percent(part)));
}

export const cell = (head, value, kind = "number") => element("td", { class: kind, "data-head": head }, value);

export const at = (id) => document.getElementById(id);

export function say(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

// Replaces the children if the data is other data. The focus stays where it is.
const shown = new WeakMap();
export function fill(id, data, make) {
  const parent = at(id);
  const told = JSON.stringify(data);
  if (shown.get(parent) === told) return;
  shown.set(parent, told);
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  parent.replaceChildren(...make(data));
  if (focused) [...parent.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus();
}
