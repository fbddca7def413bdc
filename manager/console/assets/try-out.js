// Trying a definition on a worker: columns, problems and some rows of what it would write. Nothing is written.
import { ask } from "./api.js";
import { around, lines } from "./definition.js";

// `groupOf` gives the group's name, or undefined if there is none yet.
export function offerTryOut(form, check, groupOf) {
  const button = document.getElementById("try-out");
  button.addEventListener("click", () => tryOut(form, check, groupOf, button));
}

async function tryOut(form, check, groupOf, button) {
  const text = await check();
  if (text === undefined) return form.elements.definition.focus();
  const group = groupOf();
  if (group === undefined) return;
  const begin = document.getElementById("try-out-begin").value;
  button.disabled = true;
  show(form, { words: "A worker looks at it…", state: "unknown" });
  const outcome = await ask("POST", `/v1/groups/${encodeURIComponent(group)}/checks`, around(text, { begin }));
  button.disabled = false;
  show(form, outcome.ok ? found(outcome.answer) : refused(outcome));
}

function refused({ message, problems }) {
  return { words: message, state: "bad", problems };
}

function found({ worker, problems, notes, columns, rows }) {
  const words = problems.length
    ? `${problems.length} ${problems.length === 1 ? "problem" : "problems"}, by ${worker}`
    : `No problems, by ${worker}`;
  return { words, state: problems.length ? "bad" : "good", problems, notes, columns, rows };
}

function show(form, { words, state, problems = [], notes = [], columns = null, rows = [] }) {
  document.getElementById("tried").hidden = false;
  const verdict = document.getElementById("tried-verdict");
  verdict.dataset.state = state;
  verdict.textContent = words;
  document.getElementById("tried-problems").replaceChildren(...lines(form.elements.definition, problems));
  document.getElementById("tried-notes").replaceChildren(...notes.map(note));
  document.getElementById("tried-rows").replaceChildren(...(columns?.length ? [head(columns), body(rows)] : []));
}

function note({ path, message }) {
  return element("li", path ? `${path}: ${message}` : message);
}

function head(columns) {
  const row = document.createElement("tr");
  for (const { name, type } of columns) {
    const cell = element("th", name);
    cell.scope = "col";
    cell.append(document.createElement("br"), element("code", type));
    row.append(cell);
  }
  const made = document.createElement("thead");
  made.append(row);
  return made;
}

function body(rows) {
  const made = document.createElement("tbody");
  for (const values of rows) {
    const row = document.createElement("tr");
    row.append(...values.map((value) => element("td", typeof value === "string" ? value : JSON.stringify(value))));
    made.append(row);
  }
  return made;
}

function element(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}
