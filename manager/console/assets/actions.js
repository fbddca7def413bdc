// Buttons that steer: `data-call` says what is asked, `data-body` with which document, `data-confirm` what has to be
// confirmed before.
import { ask } from "./api.js";
import { refresh } from "./live.js";
import { complain, tell } from "./messages.js";

const AGAIN_AFTER_MS = [0, 700, 2500];

export function listen() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-call]");
    if (button) act(button);
  });
}

async function act(button) {
  const { call, body, done, confirm, detail, verb, then } = button.dataset;
  const dangerous = button.classList.contains("danger");
  if (confirm && !(await confirmed(confirm, detail, verb, dangerous))) return;
  const [method, url] = call.split(" ");
  button.disabled = true;
  if (then) document.body.dataset.still = ""; // what this page shows is about to be gone
  const outcome = await ask(method, url, method === "POST" ? (body ?? {}) : undefined);
  button.disabled = false;
  if (!outcome.ok) {
    if (then) delete document.body.dataset.still;
    complain(outcome.message, outcome.problems.map(({ path, message }) => `${path}: ${message}`));
    return;
  }
  if (then) {
    location.assign(then);
    return;
  }
  tell(done ?? whatBecame(outcome.answer), outcome.answer?.notes ?? []);
  for (const wait of AGAIN_AFTER_MS) setTimeout(refresh, wait);
}

// Of rows that were played again or discarded, the answer knows how many.
function whatBecame({ replayed, discarded, stayed }) {
  const counts = { "played again": replayed, discarded, stayed };
  const told = Object.entries(counts).flatMap(([what, count]) => (count ? [`${count} ${what}`] : []));
  return told.join(", ") || "there are no such rows";
}

// A dialog of the page's own: it is read out, keeps the focus, and closes with Escape, which means no.
export function confirmed(question, detail, verb, dangerous) {
  const dialog = document.getElementById("confirm");
  const yes = document.getElementById("confirm-yes");
  document.getElementById("confirm-title").textContent = question;
  document.getElementById("confirm-detail").textContent = detail;
  yes.textContent = verb;
  yes.classList.toggle("danger", dangerous);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
