// Follows the events of the server.
import { at, say } from "./words.js";
import * as advice from "./advice.js";
import * as lookup from "./lookup.js";
import * as panels from "./panels.js";

const [PAUSE_LEAST, PAUSE_MOST, SILENCE] = [1000, 15000, 8000];
const state = { sample: null, before: null, following: null, pause: PAUSE_LEAST };

function tell(name, words) {
  at("state").dataset.state = name;
  say("state", words);
}

function show() {
  if (state.sample) panels.show(state.sample, state.before, lookup.look);
  // For tests.
  document.body.dataset.shown = Number(document.body.dataset.shown ?? 0) + 1;
}

const HANDLERS = {
  history(points) {
    panels.remember(points);
    panels.forgetPurges();
    state.sample = null;
  },
  purges(news) {
    panels.showPurges(news, state.sample !== null);
  },
  sample(sample) {
    if (state.sample?.time === sample.time) return;
    state.before = state.sample?.process === sample.process ? state.sample : null;
    state.sample = sample;
    panels.add(sample);
    tell("live", "live");
    show();
    advice.begin();
  },
};

// An event is lines with a name and data, and an empty line.
function handle(text) {
  const lines = text.split("\n");
  const value = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const handler = HANDLERS[value("event")];
  if (handler) handler(JSON.parse(value("data")));
}

async function follow(ending) {
  const answer = await fetch("dashboard/events", { headers: lookup.authorization(), cache: "no-store", signal: ending.signal });
  if (answer.status === 401) {
    tell("lost", "needs a token");
    lookup.askForToken("This server shows its figures to those with the administration's token. The page keeps it in its memory until you close or reload it.");
    return false;
  }
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `the server answers ${answer.status}`);
  state.pause = PAUSE_LEAST;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let watch = 0;
  try {
    for (;;) {
      clearTimeout(watch);
      watch = setTimeout(() => tell("lost", "silent"), SILENCE);
      const { done, value } = await reader.read();
      if (done) return true;
      text += value;
      const events = text.split("\n\n");
      text = events.pop();
      events.forEach(handle);
    }
  } finally {
    clearTimeout(watch);
  }
}

// Follows until there is another token. An upgrade ends the stream: then the next process has it.
async function connect() {
  state.following?.abort();
  const ending = new AbortController();
  state.following = ending;
  while (!ending.signal.aborted) {
    try {
      if (!(await follow(ending))) return;
      tell("connecting", "connecting");
    } catch (error) {
      if (ending.signal.aborted) return;
      tell("lost", "lost");
      at("state").title = error.message;
    }
    await new Promise((done) => setTimeout(done, state.pause));
    state.pause = Math.min(state.pause * 2, PAUSE_MOST);
  }
}

for (const id of ["state", "window", "token-open"]) at(id).hidden = false;
panels.prepare();
lookup.prepare(connect);
for (const input of document.querySelectorAll("input[name=window]")) {
  if (input.checked) panels.choose(input.value);
  input.addEventListener("change", () => {
    panels.choose(input.value);
    show();
  });
}
connect();
