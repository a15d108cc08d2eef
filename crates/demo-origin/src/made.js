// Tells how long the browser waited for this page, and how old the page is.
const made = document.querySelector(".made");
const at = Number(made.dataset.made);
const life = Number(made.dataset.life);
const verdict = made.querySelector(".verdict");
const left = made.querySelector(".left");
const bar = made.querySelector(".life i");
const [visit] = performance.getEntriesByType("navigation");
const waited = visit ? visit.responseStart - visit.requestStart : 0;
// How old the page was when it came. The origin works for 50 ms, and sends at once.
const age = visit ? performance.timeOrigin + visit.responseStart - at : 0;
const isFromCache = waited < 45 || age > 250;

const wait = `You waited ${waited.toFixed(waited < 10 ? 1 : 0)}\u00a0ms.`;

if (!life) {
  verdict.textContent = `Made for you alone. ${wait}`;
} else if (isFromCache) {
  verdict.textContent = `From Eyewall. ${wait} It was ${Math.max(0, age / 1000).toFixed(1)}\u00a0s old.`;
} else {
  verdict.textContent = `Made for you just now. ${wait} Load it again!`;
}
made.classList.toggle("cached", isFromCache && life > 0);
document.querySelector(".origin").textContent = location.origin;

// How long the cache may still use it.
function drain() {
  const rest = Math.min(life, Math.max(0, life - (Date.now() - at) / 1000));
  bar.style.width = life ? `${(rest / life) * 100}%` : "0";
  left.textContent = !life ? "not stored" : rest ? `fresh for ${Math.ceil(rest)}\u00a0s` : "no longer fresh";
}
drain();
setInterval(drain, 250);
