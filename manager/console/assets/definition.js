// The field of a definition: the manager looks at it while one types, and says what is wrong where.
import { ask } from "./api.js";
import { locate, misplaced } from "./json-places.js";

const WAIT_MS = 300;

// Watches the form's field; returns a check that gives the definition's text, or undefined if it has a problem.
export function watchDefinition(form) {
  const field = form.elements.definition;
  const state = { asked: 0, waiting: null, latest: null };
  const check = () => {
    clearTimeout(state.waiting);
    state.latest = validate(field, state);
    return state.latest;
  };
  document.body.dataset.still = ""; // nothing on this page is to change by itself
  field.addEventListener("input", () => {
    clearTimeout(state.waiting);
    state.waiting = setTimeout(check, WAIT_MS);
  });
  check();
  return check;
}

// A request around the text as it was typed: numbers that a script cannot hold stay as they are.
export function around(text, rest = {}) {
  const others = Object.entries(rest).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}, `);
  return `{${others.join("")}"definition": ${text}}`;
}

// An answer that comes too late is passed over for that to the latest question.
async function validate(field, state) {
  const number = ++state.asked;
  const text = field.value;
  const broken = parse(text);
  if (broken) return show(field, [broken]);
  const outcome = await ask("POST", "/v1/tasks/validate", around(text));
  if (number !== state.asked) return state.latest;
  if (!outcome.ok) return show(field, [{ path: "", message: outcome.message }]);
  show(field, outcome.answer.problems);
  return outcome.answer.problems.length ? undefined : text;
}

function parse(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return { path: "", message: `not JSON: ${error.message}`, at: misplaced(text, error.message) };
  }
}

function show(field, problems) {
  field.setAttribute("aria-invalid", String(problems.length > 0));
  const verdict = document.getElementById("verdict");
  verdict.dataset.state = problems.length ? "bad" : "good";
  verdict.textContent = problems.length
    ? `${problems.length} ${problems.length === 1 ? "problem" : "problems"}`
    : "The definition is fine.";
  document.getElementById("problems").replaceChildren(...lines(field, problems));
}

// A line for each problem.
export function lines(field, problems) {
  return problems.map((problem) => line(field, problem));
}

// A problem leads to its place in the text.
function line(field, { path, message, at }) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const place = document.createElement("code");
  place.textContent = path;
  button.append(place, path ? `: ${message}` : message);
  button.addEventListener("click", () => {
    const [from, to] = at ?? locate(field.value, path);
    field.focus();
    field.setSelectionRange(from, to);
  });
  item.append(button);
  return item;
}
