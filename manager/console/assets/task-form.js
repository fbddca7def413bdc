// Adding a task.
import { ask } from "./api.js";
import { around, watchDefinition } from "./definition.js";
import { complain } from "./messages.js";
import { offerTryOut } from "./try-out.js";

const NAME = /^[A-Za-z0-9._-]{1,249}$/;
const NAME_RULE = "1 to 249 of A-Z, a-z, 0-9, dot, dash and underscore";

export function watchForm() {
  const form = document.getElementById("task-form");
  if (!form) return;
  const check = watchDefinition(form);
  for (const name of ["group", "task"]) {
    form.elements[name].addEventListener("input", ({ target }) => checkName(target));
  }
  const { group } = form.elements;
  offerTryOut(form, check, () => (checkName(group) ? group.value : void group.focus()));
  form.addEventListener("click", ({ target }) => begin(form, target.closest("[data-example]"), check));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    create(form, check);
  });
}

function begin(form, button, check) {
  if (!button) return;
  form.elements.definition.value = button.dataset.example;
  check();
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

async function create(form, check) {
  const { group, task, target, definition } = form.elements;
  const named = [checkName(group), checkName(task)];
  const text = await check();
  if (!named.every(Boolean)) return (named[0] ? task : group).focus();
  if (text === undefined) return definition.focus();
  const submit = document.getElementById("task-submit");
  submit.disabled = true;
  const body = around(text, { task: task.value, target: target.value });
  const outcome = await ask("POST", `/v1/groups/${encodeURIComponent(group.value)}/tasks`, body);
  submit.disabled = false;
  if (outcome.ok) return location.assign(`/groups/${group.value}/tasks/${task.value}`);
  if (outcome.code === "TASK_EXISTS") {
    point(task, outcome.message);
    return task.focus();
  }
  complain(outcome.message, outcome.problems.map(({ path, message }) => `${path}: ${message}`));
}
