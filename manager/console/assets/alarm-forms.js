// Silences, and the rules of alarms: these only if they are still those that this page has shown.
import { ask } from "./api.js";
import { refresh } from "./live.js";
import { complain, tell } from "./messages.js";

const HOUR_MS = 3_600_000;

export function watchAlarmForms() {
  watchSilence(document.getElementById("silence-form"));
  watchRules(document.getElementById("rules-form"));
}

function watchSilence(form) {
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    silence(form);
  });
}

async function silence(form) {
  const { groups, tasks, rules, hours, reason } = form.elements;
  if (!form.reportValidity()) return;
  const body = {
    groups: groups.value,
    tasks: tasks.value,
    rules: rules.value,
    ends_at_ms: Math.round(Date.now() + hours.valueAsNumber * HOUR_MS),
    reason: reason.value,
    by: form.dataset.by,
  };
  const outcome = await ask("POST", "/v1/alarms/silences", body);
  if (!outcome.ok) return complain(outcome.message, problems(outcome));
  reason.value = "";
  tell("nobody is told of these for now");
  refresh();
}

function watchRules(form) {
  if (!form) return;
  document.body.dataset.still = ""; // by itself the page would take the tag of rules that it has not shown
  const { document: text } = form.elements;
  document.getElementById("again").addEventListener("click", () => location.assign(location.href));
  document.getElementById("rules-check").addEventListener("click", () => send(form, true));
  document.getElementById("rules-example").addEventListener("click", ({ target }) => {
    text.value = target.dataset.example;
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form, false);
  });
}

async function send(form, validateOnly) {
  const { fault, body } = read(form.elements.document.value.trim(), `"validate_only": ${validateOnly}`);
  if (fault) return judge("bad", fault);
  const outcome = await ask("PUT", "/v1/alarms/rules", body, { "If-Match": form.dataset.etag });
  if (outcome.code === "PRECONDITION_FAILED") return inBetween();
  if (!outcome.ok) return judge("bad", outcome.message, problems(outcome));
  if (validateOnly) return judge("good", "Nothing is wrong with them.");
  location.assign("/alarms#rules");
}

// What is typed, with one member more, or what is wrong with it. The text itself is sent: a key that it has
// twice is for the manager to refuse, and here the last one would have taken the place of the other.
function read(text, more) {
  try {
    const wanted = JSON.parse(text);
    if (Array.isArray(wanted)) return { body: `{"rules": ${text}, ${more}}` };
    if (Object(wanted) !== wanted) return { fault: "This is no list of rules." };
    return { body: `{${more}${Object.keys(wanted).length ? ", " : ""}${text.slice(1)}` };
  } catch (error) {
    return { fault: `This is no JSON: ${error.message}` };
  }
}

function judge(state, words, details = []) {
  const verdict = document.getElementById("rules-verdict");
  verdict.dataset.state = state;
  verdict.textContent = words;
  const items = details.map((detail) => Object.assign(document.createElement("li"), { textContent: detail }));
  document.getElementById("rules-problems").replaceChildren(...items);
}

function problems(outcome) {
  return outcome.problems.map(({ path, message }) => `${path}: ${message}`);
}

function inBetween() {
  const conflict = document.getElementById("conflict");
  conflict.hidden = false;
  conflict.focus();
}
