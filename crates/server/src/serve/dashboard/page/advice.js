// What would make more requests hits. The page asks only while somebody looks at it, and the server makes it seldom.
import { at, bar, bytes, cell, count, duration, element, fill, percent, say } from "./words.js";
import { authorization } from "./lookup.js";

// A small sample soon says something else.
const [EVERY, EVERY_SMALL] = [60_000, 10_000];
const ROWS = 6;
const state = { timer: 0, next: 0, isAsking: false, hasBegun: false };

const spread = (error) => (error > 0 ? ` ± ${(error * 100).toFixed(1)}` : "");

function sizes(report) {
  const rows = report.sample.requests > 0 ? report.sizes : [];
  fill("advice-sizes", rows, () => rows.map((point) => element("tr", {},
    element("th", { scope: "row" }, bytes(point.size_bytes), point.factor === 1 ? element("span", { class: "tag" }, "now") : null),
    element("td", {}, bar(point.hit_ratio)), element("td", { class: "spread" }, spread(point.error)),
    element("td", { class: "number" }, percent(point.byte_hit_ratio)))));
}

const siteWords = (site) => (site === "*" ? "all hosts" : site);

function misses(report) {
  const rows = report.misses.slice(0, ROWS);
  fill("advice-misses", rows, () => rows.length ? rows.map((one) => element("tr", {},
    element("th", { scope: "row" }, one.words, element("small", {}, `${one.reason} · ${siteWords(one.site)} · such as ${one.example}`)),
    cell("of requests", percent(one.request_ratio)), cell("of bytes", percent(one.byte_ratio))))
    : [element("tr", {}, element("td", { class: "empty" }, "No request of the sample has missed."))]);
}

function remedies(report) {
  const rows = report.remedies.slice(0, ROWS);
  const anHour = (gain) => count(Math.max(0, (report.sample.requests_of_all / Math.max(1, report.sample.seconds)) * 3600 * gain));
  fill("advice-remedies", [rows, report.sample.requests_of_all], () => rows.length ? rows.map((one) => element("li", {},
    element("p", {}, element("strong", {}, `${one.is_upper_bound ? "at most " : "+ "}${percent(one.request_gain)}${spread(one.error)}`),
      ` of requests become hits: ${anHour(one.request_gain)} an hour, ${percent(one.byte_gain)} of bytes`),
    element("pre", { tabindex: "0", "aria-label": "lines of the configuration" }, one.configuration.trimEnd()),
    element("p", { class: "note" }, `${one.site ? `for ${siteWords(one.site)}, ` : ""}if ${one.condition}`)))
    : [element("li", { class: "empty" }, "No line of the configuration is known that would help.")]);
}

function show(report) {
  const { requests, paths, rate, seconds, is_small: isSmall } = report.sample;
  at("advice-body").hidden = requests === 0;
  say("advice-sample", requests ? `from ${count(requests)} requests to ${count(paths)} paths, ${percent(rate)} of the paths, in ${duration(seconds)}` : "");
  say("advice-words", requests === 0 ? "There were no requests yet." : isSmall ? "The sample is small: it may say something else in an hour." : "");
  if (requests === 0) return;
  sizes(report);
  misses(report);
  remedies(report);
}

async function ask() {
  clearTimeout(state.timer);
  // An event tells when somebody looks again.
  if (document.visibilityState !== "visible" || state.isAsking) return;
  state.isAsking = true;
  let pause = EVERY;
  try {
    const answer = await fetch("advice", { headers: authorization(), cache: "no-store" });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    show(told);
    if (told.sample.is_small) pause = EVERY_SMALL;
  } catch (error) {
    say("advice-words", `The server gives no advice: ${error.message}`);
    pause = EVERY_SMALL;
  }
  state.isAsking = false;
  state.next = Date.now() + pause;
  state.timer = setTimeout(ask, pause);
}

// Called when the page is live: before that, the server may want a token.
export function begin() {
  if (state.hasBegun) return;
  state.hasBegun = true;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(ask, Math.max(0, state.next - Date.now()));
  });
  ask();
}
