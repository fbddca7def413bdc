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
  const wanted = read(form.elements.document.value);
  if (typeof wanted === "string") return judge("bad", wanted);
  const body = { ...wanted, validate_only: validateOnly };
  const outcome = await ask("PUT", "/v1/alarms/rules", body, { "If-Match": form.dataset.etag });
  if (outcome.code === "PRECONDITION_FAILED") return inBetween();
  if (!outcome.ok) return judge("bad", outcome.message, problems(outcome));
  if (validateOnly) return judge("good", "Nothing is wrong with them.");
  location.assign("/alarms#rules");
}

// What is typed, or what is wrong with it.
function read(text) {
  try {
    const wanted = JSON.parse(text);
    return Array.isArray(wanted) ? { rules: wanted } : Object(wanted) === wanted ? wanted : "This is no list of rules.";
  } catch (error) {
    return `This is no JSON: ${error.message}`;
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
