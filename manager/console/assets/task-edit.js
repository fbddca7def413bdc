// Changing a definition: only if it is still the one that this page has shown.
import { confirmed } from "./actions.js";
import { ask } from "./api.js";
import { around, watchDefinition } from "./definition.js";
import { complain, tell } from "./messages.js";
import { offerTryOut } from "./try-out.js";

export function watchEdit() {
  const form = document.getElementById("task-edit");
  if (!form) return;
  const check = watchDefinition(form);
  offerTryOut(form, check, () => form.dataset.group);
  document.getElementById("again").addEventListener("click", () => location.assign(location.href));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save(form, check);
  });
}

async function save(form, check) {
  const { definition } = form.elements;
  const text = await check();
  if (text === undefined) return definition.focus();
  if (text === definition.defaultValue) return tell("Nothing is changed yet.");
  const { put, etag, confirm, detail, then } = form.dataset;
  if (!(await confirmed(confirm, detail, "Change it", false))) return;
  const submit = document.getElementById("task-submit");
  submit.disabled = true;
  const outcome = await ask("PUT", put, around(text), { "If-Match": etag });
  submit.disabled = false;
  if (outcome.ok) return location.assign(then);
  if (outcome.code === "PRECONDITION_FAILED") return inBetween();
  complain(outcome.message, outcome.problems.map(({ path, message }) => `${path}: ${message}`));
}

function inBetween() {
  const conflict = document.getElementById("conflict");
  conflict.hidden = false;
  conflict.focus();
}
