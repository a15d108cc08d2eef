// The drawings: a ring of shares, an area of rates, and strips of times.
import { VERDICTS, rate, time, duration } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

function shape(name, properties = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

// The share of each verdict, around the eye.
export function drawRing(svg, verdicts, words) {
  const radius = 102;
  const around = 2 * Math.PI * radius;
  if (svg.children.length < 2) {
    svg.append(shape("circle", { class: "track", cx: 120, cy: 120, r: radius }));
    const circle = { cx: 120, cy: 120, r: radius, transform: "rotate(-90 120 120)", "stroke-dasharray": `0 ${around}` };
    svg.append(...VERDICTS.map((verdict) => shape("circle", { class: `v-${verdict}`, ...circle })));
  }
  const all = verdicts.reduce((sum, one) => sum + one, 0);
  const parts = verdicts.filter((one) => one > 0).length;
  const gap = parts > 1 ? 3 : 0;
  let start = 0;
  [...svg.querySelectorAll("circle:not(.track)")].forEach((circle, number) => {
    const length = all > 0 ? (verdicts[number] / all) * around : 0;
    const drawn = length > 0 ? Math.max(length - gap, 1.5) : 0;
    circle.setAttribute("stroke-dasharray", `${drawn} ${around}`);
    circle.setAttribute("stroke-dashoffset", -start);
    circle.style.visibility = drawn > 0 ? "visible" : "hidden";
    start += length;
  });
  svg.querySelector("title").textContent = words;
}

// Counts at a time, between the points before and after it.
function countsAt(points, moment) {
  let high = points.length - 1;
  let low = 0;
  if (moment >= points[high][0]) return points[high][1];
  if (moment <= points[0][0]) return points[0][1];
  while (high - low > 1) {
    const middle = (high + low) >> 1;
    if (points[middle][0] <= moment) low = middle;
    else high = middle;
  }
  const [[before, from], [after, to]] = [points[low], points[high]];
  const part = (moment - before) / (after - before || 1);
  return from.map((count, number) => count + (to[number] - count) * part);
}

// Requests a second by verdict, in as many steps as fit.
export function ratesOf(points, seconds, steps) {
  if (points.length < 2) return [];
  const end = points[points.length - 1][0];
  const step = (seconds * 1000) / steps;
  const rates = [];
  let before = countsAt(points, end - seconds * 1000);
  for (let number = 1; number <= steps; number += 1) {
    const moment = end - (steps - number) * step;
    const counts = countsAt(points, moment);
    rates.push({ ago: (end - moment) / 1000, values: counts.map((count, one) => Math.max(0, ((count - before[one]) * 1000) / step)) });
    before = counts;
  }
  return rates;
}

function niceMost(most) {
  const power = 10 ** Math.floor(Math.log10(most || 1));
  return ([1, 1.6, 2, 3, 4, 6, 8, 10].find((one) => one * power >= most) ?? 10) * power;
}

// A stacked area. `chosen` is the step that the reader points at.
export function drawArea(parent, rates, seconds, chosen) {
  const { width, height } = parent.getBoundingClientRect();
  if (width < 50 || rates.length === 0) return;
  const [left, bottom, top] = [44, 22, 6];
  const sums = rates.map((one) => one.values.reduce((sum, value) => sum + value, 0));
  const most = niceMost(Math.max(...sums, 0.5));
  const x = (number) => left + (number / (rates.length - 1)) * (width - left);
  const y = (value) => top + (1 - value / most) * (height - bottom - top);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (let line = 0; line <= 4; line += 1) {
    const value = (most * line) / 4;
    svg.append(shape("line", { class: "grid", x1: left, x2: width, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, rate(value)));
  }
  const below = rates.map(() => 0);
  VERDICTS.forEach((verdict, number) => {
    if (rates.every((one) => one.values[number] === 0)) return;
    const lower = below.map((value, step) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).reverse();
    rates.forEach((one, step) => (below[step] += one.values[number]));
    const upper = below.map((value, step) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`);
    svg.append(shape("path", { class: `v-${verdict}`, d: `M${upper.join("L")}L${lower.join("L")}Z` }));
  });
  const ticks = width < 460 ? 2 : 4;
  for (let tick = 0; tick <= ticks; tick += 1) {
    const anchor = tick === 0 ? "start" : tick === ticks ? "end" : "middle";
    const words = tick === ticks ? "now" : `-${duration(seconds * (1 - tick / ticks))}`;
    svg.append(shape("text", { x: left + ((width - left) * tick) / ticks, y: height - 4, "text-anchor": anchor }, words));
  }
  if (chosen !== null) svg.append(shape("line", { class: "cross", x1: x(chosen), x2: x(chosen), y1: top, y2: height - bottom }));
  parent.replaceChildren(svg);
}

// The step at a place of the drawing.
export function stepAt(parent, clientX, steps) {
  const { left, width } = parent.getBoundingClientRect();
  return Math.max(0, Math.min(steps - 1, Math.round(((clientX - left - 44) / (width - 44)) * (steps - 1))));
}

// Times from 10 µs to a minute, in steps of ten.
const [SHORTEST, LONGEST] = [1e-5, 60];
const place = (seconds) => {
  const part = Math.log(Math.max(seconds, SHORTEST) / SHORTEST) / Math.log(LONGEST / SHORTEST);
  return `${(Math.min(part, 1) * 100).toFixed(2)}%`;
};

export function strip(quantiles, name) {
  const svg = shape("svg", { class: `v-${name}`, "aria-hidden": "true" });
  svg.append(shape("line", { x1: "0%", x2: "100%", y1: "50%", y2: "50%" }));
  const [half, most, all] = quantiles;
  if (half === undefined) return svg;
  svg.append(shape("line", { class: "span", x1: place(half), x2: place(all), y1: "50%", y2: "50%" }));
  svg.append(shape("circle", { cx: place(half), cy: "50%", r: 6 }), shape("circle", { class: "edge", cx: place(most), cy: "50%", r: 4 }));
  svg.append(shape("circle", { class: "edge", cx: place(all), cy: "50%", r: 3 }));
  return svg;
}

export function stripAxis() {
  const svg = shape("svg", { "aria-hidden": "true" });
  for (const seconds of [1e-4, 1e-3, 1e-2, 1e-1, 1, 10]) {
    svg.append(shape("text", { x: place(seconds), y: 11, "text-anchor": "middle" }, time(seconds)));
  }
  return svg;
}
