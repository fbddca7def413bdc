// Keeps a page as the manager has it: at every event, and every few seconds for what is no event.
import { morph } from "./morph.js";

const EVERY_MS = 5000;
const GATHER_MS = 150;
const REST = 10; // so many times as long as a page takes is waited before the next: managers have more to do
const BACK_OFF_MS = [1000, 2000, 5000, 10000];

const WORDS = {
  live: "Live",
  broken: "Connection lost, trying again",
  paused: "Paused while hidden",
  off: "Not live",
  polled: "Updated every few seconds",
  stays: "As of when it was opened",
};

let source = null;
let lastEvent = 0;
let failures = 0;
let tookMs = 0;
let gathering = null;
let retrying = null;
let isFetching = false;
let isStale = false;

export function follow() {
  if (stays()) return say("stays");
  lastEvent = Number(document.body.dataset.lastEvent) || 0;
  if (!document.body.dataset.stream) return pollOnly();
  open();
  setInterval(() => source && !document.hidden && refresh(), EVERY_MS);
  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : resume()));
  addEventListener("pagehide", pause);
}

// Somebody works to make such a page; it is made again when a person asks for it.
function stays() {
  return document.body.dataset.stays !== undefined;
}

// Who may see some groups only has no stream of them all.
function pollOnly() {
  say("polled");
  setInterval(() => !document.hidden && refresh(), EVERY_MS);
}

// Fetch the page again and change what differs. What is typed, chosen, open or focused stays as it is.
export async function refresh() {
  if (stays() || document.body.dataset.still !== undefined) return;
  if (isFetching) {
    isStale = true;
    return;
  }
  isFetching = true;
  await change();
  isFetching = false;
  if (isStale) {
    isStale = false;
    refresh();
  }
}

async function change() {
  try {
    const begun = performance.now();
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.redirected || answer.status === 401) return location.reload(); // the log-in is over
    const text = await answer.text();
    tookMs = performance.now() - begun;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const main = fresh.getElementById("main");
    if (main) morph(document.getElementById("main"), main);
    document.title = fresh.title;
  } catch {
    // The stream tells that the connection is lost, and tries again.
  }
}

// A browser has few connections to one host; a page that nobody sees gives its own back.
function pause() {
  close();
  say("paused");
}

function resume() {
  if (source) return;
  open();
  refresh();
}

function open() {
  close();
  const address = new URL(document.body.dataset.stream, location.href);
  if (lastEvent) address.searchParams.set("after", lastEvent);
  source = new EventSource(address);
  source.onopen = () => {
    if (failures) refresh();
    failures = 0;
    say("live");
  };
  source.onmessage = (message) => {
    lastEvent = Math.max(lastEvent, Number(message.lastEventId) || 0);
    if (!gathering) gathering = setTimeout(gathered, Math.min(Math.max(GATHER_MS, REST * tookMs), EVERY_MS));
  };
  source.onerror = broken;
}

function gathered() {
  gathering = null;
  refresh();
}

// The browser's own way back is not taken: it gives up when the answer is an error.
function broken() {
  close();
  say("broken");
  const wait = BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)];
  failures += 1;
  if (failures > 3) lastEvent = 0; // perhaps of another database, which would refuse it for ever
  retrying = setTimeout(open, wait);
}

function close() {
  clearTimeout(retrying);
  if (source) source.close();
  source = null;
}

function say(state) {
  const live = document.getElementById("live");
  if (live.dataset.state === state) return;
  live.dataset.state = state;
  live.querySelector(".words").textContent = WORDS[state];
}
