// Puts a sample into the page.
import { VERDICTS, at, bar, bytes, cell, count, duration, element, fill, percent, rate, say, share, time } from "./words.js";
import { drawArea, drawRing, ratesOf, stepAt, strip, stripAxis } from "./charts.js";

const STEPS = 90;
const SPANS = { minute: 120, hour: 3600, start: 3600 };

// What the chart shows, and the step that the reader points at.
const chart = { points: [], window: "minute", rates: [], seconds: 120, chosen: null };

export function choose(window) {
  chart.window = window;
  draw();
}

export function remember(points) {
  chart.points = points;
}

export function add(sample) {
  chart.points.push([sample.time, sample.verdicts]);
  const oldest = sample.time - 3700 * 1000;
  while (chart.points.length > 2 && chart.points[1][0] < oldest) chart.points.shift();
}

function draw() {
  const points = chart.points;
  if (points.length < 2) return;
  const age = (points[points.length - 1][0] - points[0][0]) / 1000;
  chart.seconds = Math.max(20, Math.min(SPANS[chart.window], age));
  chart.rates = ratesOf(points, chart.seconds, STEPS);
  say("chart-span", `a second, in the last ${duration(chart.seconds)}`);
  drawArea(at("chart"), chart.rates, chart.seconds, chart.chosen);
  const step = chart.rates[chart.chosen ?? STEPS - 1];
  const sum = step.values.reduce((all, value) => all + value, 0);
  const parts = VERDICTS.map((verdict, number) => [verdict, step.values[number]]).filter(([, value]) => value > 0);
  const when = chart.chosen === null ? "now" : `${duration(step.ago)} ago`;
  say("chart-words", `${when}: ${rate(sum)} requests a second${parts.length ? `: ${parts.map(([name, value]) => `${name} ${rate(value)}`).join(", ")}` : ""}`);
}

function point(step) {
  chart.chosen = step;
  draw();
}

export function prepare() {
  const area = at("chart");
  area.addEventListener("pointermove", (event) => point(stepAt(area, event.clientX, STEPS)));
  area.addEventListener("pointerleave", () => point(null));
  area.addEventListener("blur", () => point(null));
  area.addEventListener("keydown", (event) => {
    const now = chart.chosen ?? STEPS - 1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: STEPS - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    at("chart-words").setAttribute("aria-live", "polite");
    point(Math.max(0, Math.min(STEPS - 1, to)));
  });
  new ResizeObserver(draw).observe(area);
  at("strip-axis").append(stripAxis());
}

function hero(window) {
  const part = share(window.spared_requests, window.requests);
  const told = VERDICTS.map((verdict, number) => `${verdict} ${count(window.verdicts[number])}`).join(", ");
  say("spared-share", percent(part));
  say("spared-requests", count(window.spared_requests));
  say("spared-requests-of", `of ${count(window.requests)}`);
  say("spared-bytes", bytes(window.spared_bytes));
  say("spared-bytes-of", `of ${bytes(window.bytes)}, ${percent(share(window.spared_bytes, window.bytes))}`);
  drawRing(at("ring"), window.verdicts, `Requests by verdict: ${told}`);
  const all = window.verdicts.reduce((sum, one) => sum + one, 0);
  const rows = VERDICTS.map((verdict, number) => [verdict, count(window.verdicts[number]), percent(share(window.verdicts[number], all))]);
  fill("legend", rows, () => rows.map(([verdict, number, part]) => element("li", { class: `v-${verdict}` }, element("i", { class: "swatch" }), element("b", {}, verdict), element("small", {}, `${number} · ${part}`))));
}

function tiles(sample, before) {
  const window = sample.windows[chart.window];
  const a_second = (number) => (window.seconds > 0 ? number / window.seconds : 0);
  const seconds = before ? (sample.time - before.time) / 1000 : 0;
  const busy = sample.busy_seconds.map((all, number) => (all - (before?.busy_seconds[number] ?? all)) / (seconds || 1));
  const [http1, http2, tunnels] = sample.connections;
  const rows = [
    ["requests / s", rate(a_second(window.verdicts.reduce((sum, one) => sum + one, 0))), ""],
    ["to origins / s", rate(a_second(window.origin_requests)), ""],
    ["sent / s", bytes(a_second(window.bytes)), ""],
    ["errors", count(window.errors), window.errors > 0 ? "bad" : "", "responses with a status from 500 on"],
    ["collapsed", count(window.collapsed), "", "requests that were answered by the response to another one"],
    ["in flight", count(sample.flights), "", "responses of origins that others wait for, or that are being stored"],
    ["connections", count(http1 + http2 + tunnels), "", `HTTP/1.1: ${http1}, HTTP/2: ${http2}, tunnels: ${tunnels}`],
    ["busiest worker", before ? percent(Math.min(1, Math.max(0, ...busy))) : "-", "", "the share of time for which it has work"],
  ];
  fill("tiles", rows, () => rows.map(([name, number, kind, title]) => element("li", { class: kind, title }, element("span", {}, name), element("strong", {}, number))));
}

function latency(window) {
  const rows = [["hits", "hit", window.hits], ["from origins", "miss", window.misses], ["origins", "revalidated", window.origins]];
  fill("latency", rows, () => rows.map(([name, colour, of]) => element("tr", {},
    element("th", { scope: "row" }, name, element("small", {}, count(of.count))),
    ...[0, 1, 2].map((number) => element("td", { class: "number" }, time(of.quantiles[number]))),
    element("td", { class: "strip" }, strip(of.quantiles, colour)))));
}

function volume(sample, before) {
  const now = sample.volume;
  say("volume-path", now ? now.path ?? "in memory" : "");
  say("gauge-words", now ? `${bytes(now.live_bytes)} of ${bytes(now.data_bytes)} in use (${percent(share(now.live_bytes, now.data_bytes))})` : "The volume can't be asked now.");
  if (!now) return fill("volume", null, () => []);
  const full = Math.round((share(now.live_bytes, now.data_bytes) ?? 0) * 100);
  at("gauge").setAttribute("aria-valuenow", full);
  at("gauge").firstElementChild.style.width = `${full}%`;
  const sum = (one) => Object.values(one.evictions).reduce((all, number) => all + number, 0);
  const seconds = before?.volume ? (sample.time - before.time) / 1000 : 0;
  const evictions = Object.entries(now.evictions).filter(([, number]) => number > 0);
  const written = now.written_bytes ? (now.written_bytes + now.copied_bytes) / now.written_bytes : 1;
  const rows = [
    ["entries", count(now.entries)],
    ["evicted / s", seconds ? rate((sum(now) - sum(before.volume)) / seconds) : "-"],
    ["age at eviction", sum(now) ? duration(now.eviction_age_seconds) : "-"],
    ["evicted", count(sum(now)), evictions.map(([reason, number]) => `${count(number)} ${reason}`).join(", ")],
    ["written for each byte", `${written.toFixed(2)}`],
    ["size", bytes(now.size_bytes)],
  ];
  fill("volume", rows, () => rows.map(([name, number, small]) => element("div", {}, element("dt", {}, name), element("dd", {}, number, small ? element("small", {}, small) : null))));
}

function sites(sample, before) {
  const seconds = before ? (sample.time - before.time) / 1000 : 0;
  const rows = sample.sites.filter((site) => site.name !== "-" || site.requests > 0).map((site) => {
    const earlier = before?.sites.find((one) => one.name === site.name);
    return { ...site, now: seconds && earlier ? rate(Math.max(0, (site.requests - earlier.requests) / seconds)) : "-" };
  });
  fill("sites", rows, () => rows.map((site) => element("tr", {},
    element("th", { scope: "row" }, site.name === "-" ? "of no site" : site.name === "*" ? "all hosts" : site.name),
    cell("now", `${site.now}/s`), cell("requests", count(site.requests)),
    cell("spared", site.name === "-" ? "-" : bar(share(site.spared_requests, site.requests)), ""),
    cell("bytes", bytes(site.bytes)), cell("errors", count(site.errors), site.errors ? "number bad" : "number"))));
  say("sites-more", sample.more_sites ? `and ${count(sample.more_sites)} more` : "");
}

function origins(sample) {
  fill("origins", sample.origins, (rows) => rows.length ? rows.map((origin) => {
    const errors = Object.entries(origin.errors);
    const all = errors.reduce((sum, [, number]) => sum + number, 0);
    const [half, most] = origin.times;
    const health = origin.is_up === null ? ["", "no longer used"] : origin.is_up ? ["up", "● up"] : ["down", "▲ left out"];
    return element("tr", {},
      element("th", { scope: "row" }, origin.url.replace(/^http:\/\//, ""), element("small", {}, `${origin.site === "*" ? "all hosts" : origin.site} · `, element("span", { class: health[0] }, health[1]))),
      cell("requests", count(origin.requests)), cell("50 %, 95 %", half === null ? "-" : `${time(half)}, ${time(most)}`),
      cell("connections", `${count(origin.open)} of ${count(origin.connections)}`),
      cell("errors", all ? element("span", { title: errors.map(([reason, number]) => `${number} ${reason}`).join(", ") }, count(all)) : "0", all ? "number bad" : "number"));
  }) : [element("tr", {}, element("td", { class: "empty" }, "No site has origins."))]);
  say("origins-more", sample.more_origins ? `and ${count(sample.more_origins)} more` : "");
}

function keys(sample, look) {
  const line = (key, told, shown = key) => {
    // The variants of a response follow a blank.
    const url = key.split(" ")[0];
    return element("li", {}, element("button", { type: "button", "data-key": key, title: `Explain ${url}`, onclick: () => look(url) }, shown), told);
  };
  const none = (words) => [element("li", { class: "empty" }, words)];
  fill("hottest", sample.hottest, (rows) => rows.length
    ? rows.map((one) => line(one.key, element("span", { title: `hit ${one.frequency} times of 7, ${bytes(one.bytes)}` }, element("span", { class: "heat", "aria-hidden": "true" }, "●".repeat(one.frequency)), ` ${bytes(one.bytes)}`)))
    : none("Nothing has been hit often yet."));
  fill("missed", sample.missed, (rows) => rows.length ? rows.map((one) => line(one.key, element("span", {}, count(one.count)))) : none("No request has missed yet."));
  fill("slowest", sample.slowest ?? [], (rows) => rows.length ? rows.map((one) => line(`http://${one.path}`, element("span", { title: `half begin within ${time(one.quantiles[0])}, of ${count(one.requests)} requests in the sample` }, time(one.quantiles[1])), one.path))
    : none("The sample has no requests yet."));
}

const pair = (name, value, kind = "") => element("li", {}, element("span", {}, name), element("strong", { class: kind }, value));

function rest(sample) {
  const origins = {};
  for (const origin of sample.origins) {
    for (const [reason, number] of Object.entries(origin.errors)) origins[reason] = (origins[reason] ?? 0) + number;
  }
  const errors = [...Object.entries(sample.failures).map(([status, number]) => [`status ${status}`, number, status.startsWith("5")]),
    ...Object.entries(origins).map(([reason, number]) => [`origin ${reason}`, number, true]),
    ...(sample.remembered ? [["answered by a remembered failure", sample.remembered, false]] : [])];
  fill("errors", errors, () => errors.length ? errors.map(([name, number, isBad]) => pair(name, count(number), isBad ? "bad" : "")) : [element("li", { class: "empty" }, "None.")]);
  fill("certificates", sample.certificates, (rows) => rows.length ? rows.map((one) => {
    const left = one.days_left;
    const words = left === null ? "none yet" : left < 0 ? "has ended" : `${count(left)} days left`;
    return pair(one.names.join(", ") || one.file, words, left === null || left < 7 ? "bad" : left >= 14 ? "good" : "");
  }) : [element("li", { class: "empty" }, "No site has certificates.")]);
  const fleet = sample.fleet ?? null;
  fill("fleet", fleet, () => fleet ? [
    pair(`node ${fleet.node} of ${fleet.name}`, fleet.state, fleet.state === "following" ? "good" : "bad"),
    pair("purges that the log doesn't have yet", count(fleet.pending), fleet.pending ? "bad" : ""),
    pair("times at which purges may have been missing", count(fleet.gaps)),
    ...(fleet.trouble ? [pair(fleet.trouble, "", "bad")] : []),
  ] : [element("li", { class: "empty" }, "This server belongs to no fleet.")]);
  at("warnings").hidden = sample.warnings.length === 0;
  fill("warnings", sample.warnings, (rows) => rows.map((words) => element("li", {}, `▲ ${words}`)));
}

export function show(sample, before, look) {
  const window = sample.windows[chart.window];
  at("main").hidden = false;
  say("server", `${sample.version} · process ${sample.process} · up ${duration(sample.uptime_seconds)}`);
  const part = percent(share(window.spared_requests, window.requests));
  document.title = part === "-" ? "Eyewall" : `${part} spared - Eyewall`;
  hero(window);
  draw();
  tiles(sample, before);
  latency(window);
  volume(sample, before);
  sites(sample, before);
  origins(sample);
  keys(sample, look);
  rest(sample);
}

// Purges, the last one first. Those that were there before have no mark.
const purges = [];
export function showPurges(news, isNew) {
  for (const purge of news) {
    if (!purges.some((known) => known.number === purge.number && known.time === purge.time)) purges.unshift({ ...purge, isNew });
  }
  purges.length = Math.min(purges.length, 50);
  fill("purges", purges, () => purges.length ? purges.map((purge) => {
    const what = purge.what === "everything" ? "everything" : `${purge.what === "url" ? "" : `${purge.what.replace("_", " ")} `}${purge.name ?? purge.host ?? ""}`;
    const more = purge.subjects > 1 ? ` and ${count(purge.subjects - 1)} more` : "";
    const effect = purge.entries === undefined ? purge.result : `${count(purge.entries)} entries`;
    const when = new Date(purge.time);
    return element("li", { class: purge.isNew ? "new" : "" }, element("time", { datetime: purge.time }, when.toLocaleTimeString("en-GB")), element("span", {}, `${what}${more}`), element("small", {}, purge.kind === "soft" ? `soft, ${effect}` : effect));
  }) : [element("li", { class: "empty" }, "None yet.")]);
  for (const purge of purges) purge.isNew = false;
}

// Another server begins with other purges.
export function forgetPurges() {
  purges.length = 0;
}
