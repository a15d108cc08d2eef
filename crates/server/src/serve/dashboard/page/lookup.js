// Looks an address up, and purges. Both send the token in a field, if the page has one.
import { at, bytes, count, duration, element, say, time } from "./words.js";

// The page's memory is the only place for it.
let token = null;

export const authorization = () => (token ? { Authorization: `Bearer ${token}` } : {});

// Sends a request. A refusal is an error with the words of the server.
async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", ...authorization() }, body: JSON.stringify(body), cache: "no-store" });
  const told = await answer.json().catch(() => ({ error: `the server answers ${answer.status}` }));
  if (answer.ok) return told;
  if (answer.status === 401) askForToken();
  throw new Error(told.error);
}

export function askForToken(words = null) {
  if (words) say("token-words", words);
  if (!at("token-dialog").open) at("token-dialog").showModal();
}

function pieces(rows) {
  const shown = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return element("dl", { class: "pieces" }, ...shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

const code = (text) => element("span", { class: "code" }, text);
const tags = (list) => (list?.length ? element("span", {}, ...list.map((one) => element("span", { class: "tag" }, one))) : null);

// The colours of verdicts that only explanations have.
const LIKE = { partial: "hit", revalidate: "revalidated", file: "hit", redirect: "none" };

function ruleWords(rule) {
  if (rule.awaits_response) return `${rule.name}: depends on the response`;
  return rule.applies ? `${rule.name}: applies` : `${rule.name}: no, ${rule.unmet}`;
}

// What the key is made of, and what it leaves out. Values of cookies and fields aren't told.
function piecesOf(key) {
  const named = { parameter: "", cookie: "cookie ", header: "field " };
  const shown = (key?.pieces ?? []).filter((one) => one.kind in named && (one.kind !== "parameter" || one.by));
  return shown.length ? element("span", {}, ...shown.map((one) => element("span", { class: one.is_kept ? "tag" : "tag left-out", title: one.is_kept ? "part of the key" : "not part of the key" },
    `${named[one.kind]}${one.text}${one.by ? ` (${one.by})` : ""}`))) : null;
}

const freshness = (seconds) => (seconds > 0 ? `fresh for ${duration(seconds)}` : `stale for ${duration(-seconds)}`);

function clientOf(client) {
  if (!client) return null;
  const proxies = client.believed_proxies?.length ? `, as trusted proxies say: ${client.believed_proxies.join(", ")}` : "";
  return `${client.address} by ${client.scheme}${proxies}${client.is_known ? "" : "; they don't name the client, so it is the last known proxy"}`;
}

function pastOf(past) {
  if (!past) return null;
  const times = (number) => (number === 1 ? "1 time" : `${count(number)} times`);
  const lines = [
    past.is_unstorable && "The last response could not be stored, so requests for it don't wait for one another.",
    typeof past.uses === "number" && `The stored entry was asked for ${times(past.uses)}, of at most 7 that count.`,
    typeof past.remembered_requests === "number" && `The volume remembers that the key was asked for and stored ${times(past.remembered_requests)}.`,
    past.purge && `A ${past.purge.kind} purge covered it at ${past.purge.time}: ${past.purge.of}.`,
    ...(past.requests ?? []).map((one) => `${duration(one.seconds_ago)} ago: ${one.verdict}${one.reason ? ` (${one.reason})` : ""}, after ${time(one.first_byte_us / 1e6)}`),
  ].filter(Boolean);
  return lines.length ? element("ul", { class: "pairs" }, ...lines.map((words) => element("li", {}, element("span", {}, words)))) : null;
}

function variantsOf(variants) {
  const rows = variants.slice(0, 10).map((one) => element("tr", {}, element("th", { scope: "row" }, one.vary.join(", "), one.is_selected ? element("small", {}, "selected by this request") : null),
    element("td", {}, `status ${one.status}, ${bytes(one.bytes)}`), element("td", {}, freshness(one.fresh_for_seconds))));
  return element("div", { class: "scroll" }, element("table", { class: "steps" }, element("tbody", {}, ...rows)));
}

function explained(told) {
  const stored = told.stored;
  const changed = told.changed_fields?.map((field) => (field.value === undefined ? `${field.name}: dropped` : `${field.name}: ${field.value}`));
  const parts = [
    element("p", {}, element("span", { class: `verdict v-${LIKE[told.verdict] ?? told.verdict}` }, told.verdict), told.status ? ` status ${told.status}` : ""),
    element("p", { class: "because" }, told.because),
    pieces([
      ["client", clientOf(told.client)],
      ["redirect", told.redirect && `to ${told.redirect.location}${told.redirect.rule ? ` by the rule ${told.redirect.rule}` : ""}`],
      ["key", told.key && code(told.key.text)],
      ["pieces of the key", piecesOf(told.key)],
      ["stripped from the query", told.key?.pieces?.length ? null : tags(told.key?.stripped_parameters)],
      ["site", told.site && `${told.site.hosts.join(", ")}${told.site.preset ? ` (preset ${told.site.preset})` : ""}`],
      ["rules", tags(told.rules?.map(ruleWords))],
      ["changed fields", tags(changed)],
      ["Cache-Status", told.cache_status && code(told.cache_status)],
      ["stored", stored && `status ${stored.status}, ${bytes(stored.bytes)}`],
      ["tags", tags(stored?.tags)],
      ["varies by", tags(stored?.vary)],
    ]),
  ];
  if (stored?.arithmetic.length) {
    parts.push(element("h3", {}, "Freshness"));
    const rows = stored.arithmetic.map((step) => element("tr", {}, element("th", { scope: "row" }, step.what), element("td", {}, step.words), element("td", {}, step.source)));
    parts.push(element("div", { class: "scroll" }, element("table", { class: "steps" }, element("tbody", {}, ...rows))));
  }
  if (told.variants?.length) parts.push(element("h3", {}, `Variants: ${count(told.variants.length)}`), variantsOf(told.variants));
  const past = pastOf(told.past);
  if (past) parts.push(element("h3", {}, "Before"), past);
  if (told.key) {
    parts.push(element("p", { class: "buttons note" }, element("button", { type: "button", onclick: () => offerPurge("url", told.url) }, "Purge this address"),
      ...(stored?.tags ?? []).slice(0, 4).map((tag) => element("button", { type: "button", onclick: () => offerPurge("tag", tag) }, `Purge tag ${tag}`))));
  }
  return parts;
}

function offerPurge(subject, name) {
  at("subject").value = subject;
  at("name").value = name;
  say("purge-words", "");
  at("name").scrollIntoView({ block: "nearest" });
  at("purge").querySelector("button[value=preview]").focus();
}

function fieldsOf(text) {
  return text.split("\n").filter((line) => line.includes(":")).map((line) => [line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim()]);
}

async function explain() {
  const question = { url: at("url").value.trim(), method: at("method").value, headers: fieldsOf(at("fields").value) };
  const from = at("from").value.trim();
  if (from) question.from = from;
  try {
    at("explanation").replaceChildren(...explained(await post("explain", question)));
  } catch (error) {
    at("explanation").replaceChildren(element("p", { class: "bad" }, error.message));
  }
}

export function look(url) {
  at("url").value = url;
  at("method").value = "GET";
  at("look").scrollIntoView({ block: "nearest" });
  at("url").focus({ preventScroll: true });
  explain();
}

async function purge(isPreview) {
  const body = { [at("subject").value]: at("name").value.trim(), soft: at("soft").checked };
  try {
    const report = await post("purge", isPreview ? { ...body, preview: true } : body);
    const [one] = report.purged;
    const entries = one.entries === undefined ? "an unknown number of entries" : one.entries === 1 ? "1 entry" : `${count(one.entries)} entries`;
    const known = { found: "purged", absent: "nothing was stored for it", accepted: "purged" };
    say("purge-words", isPreview ? `It would purge ${entries}.` : `${one.name ?? one.host}: ${known[one.result] ?? one.result}.`);
  } catch (error) {
    say("purge-words", error.message);
  }
}

// `retry` is called when there is another token.
export function prepare(retry) {
  at("explain").addEventListener("submit", (event) => {
    event.preventDefault();
    explain();
  });
  at("purge").addEventListener("submit", (event) => {
    event.preventDefault();
    purge(event.submitter?.value !== "purge");
  });
  at("token-open").addEventListener("click", () => askForToken());
  const use = (text) => {
    token = text || null;
    at("token").value = "";
    at("token-open").textContent = token ? "Token ✓" : "Token";
    retry();
  };
  at("token-form").addEventListener("submit", () => use(at("token").value.trim()));
  at("token-forget").addEventListener("click", () => {
    at("token-dialog").close();
    use(null);
  });
}
