// Adding a task: the manager looks at the definition while one types, and says what is wrong where.
import { ask } from "./api.js";
import { complain } from "./news.js";
import { locate, misplaced } from "./places.js";

const WAIT_MS = 300;
const NAME = /^[A-Za-z0-9._-]{1,249}$/;
const NAME_RULE = "1 to 249 of A-Z, a-z, 0-9, dot, dash and underscore";

let asked = 0;

export function watchForm() {
  const form = document.getElementById("task-form");
  if (!form) return;
  document.body.dataset.still = ""; // nothing on this page is to change by itself
  const check = later(() => validate(form), WAIT_MS);
  form.elements.definition.addEventListener("input", check);
  for (const name of ["group", "task"]) {
    form.elements[name].addEventListener("input", ({ target }) => checkName(target));
  }
  form.addEventListener("click", ({ target }) => begin(form, target.closest("[data-beginning]")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    create(form);
  });
  validate(form);
}

function later(work, wait) {
  let waiting = null;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(work, wait);
  };
}

function begin(form, button) {
  if (!button) return;
  form.elements.definition.value = button.dataset.beginning;
  validate(form);
}

function checkName(field) {
  const fine = NAME.test(field.value) && field.value !== "." && field.value !== "..";
  return point(field, fine ? "" : field.value ? `not a name: ${NAME_RULE}` : "give it a name");
}

function point(field, problem) {
  field.setAttribute("aria-invalid", String(problem !== ""));
  document.getElementById(`${field.id}-problem`).textContent = problem;
  return problem === "";
}

// Returns the definition, or undefined if it has a problem; an answer that comes too late is passed over.
async function validate(form) {
  const field = form.elements.definition;
  const number = ++asked;
  const { value, problem } = parse(field.value);
  if (problem) return show(field, [problem]);
  const outcome = await ask("POST", "/v1/tasks/validate", { definition: value });
  if (number !== asked) return undefined;
  if (!outcome.ok) return show(field, [{ path: "", message: outcome.message }]);
  show(field, outcome.answer.problems);
  return outcome.answer.problems.length ? undefined : value;
}

function parse(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: { path: "", message: `not JSON: ${error.message}`, at: misplaced(text, error.message) } };
  }
}

function show(field, problems) {
  field.setAttribute("aria-invalid", String(problems.length > 0));
  const verdict = document.getElementById("verdict");
  verdict.dataset.state = problems.length ? "bad" : "good";
  verdict.textContent = problems.length
    ? `${problems.length} ${problems.length === 1 ? "problem" : "problems"}`
    : "The definition is fine.";
  document.getElementById("problems").replaceChildren(...problems.map((problem) => line(field, problem)));
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

async function create(form) {
  const { group, task, target, definition } = form.elements;
  const named = [checkName(group), checkName(task)];
  const document_ = await validate(form);
  if (!named.every(Boolean)) return (named[0] ? task : group).focus();
  if (document_ === undefined) return definition.focus();
  const submit = document.getElementById("task-submit");
  submit.disabled = true;
  const body = { task: task.value, definition: document_, target: target.value };
  const outcome = await ask("POST", `/v1/groups/${encodeURIComponent(group.value)}/tasks`, body);
  submit.disabled = false;
  if (outcome.ok) return location.assign(`/groups/${group.value}/tasks/${task.value}`);
  if (outcome.code === "TASK_EXISTS") {
    point(task, outcome.message);
    return task.focus();
  }
  complain(outcome.message, outcome.problems.map(({ path, message }) => `${path}: ${message}`));
}
