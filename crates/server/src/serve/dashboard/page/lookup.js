// Looks an address up, and purges. Both send the token in a field, if the page has one.
import { at, bytes, count, element, say } from "./words.js";

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

function explained(told) {
  const stored = told.stored;
  const changed = told.changed_fields?.map((field) => (field.value === undefined ? `${field.name}: dropped` : `${field.name}: ${field.value}`));
  const parts = [
    element("p", {}, element("span", { class: `verdict v-${LIKE[told.verdict] ?? told.verdict}` }, told.verdict), told.status ? ` status ${told.status}` : ""),
    element("p", { class: "because" }, told.because),
    pieces([
      ["key", told.key && code(told.key.text)],
      ["stripped from the query", tags(told.key?.stripped_parameters)],
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
