// Filters act as one types; without this they have a button.
import { refresh } from "./live.js";

const WAIT_MS = 200;

export function watchFilters() {
  let waiting = null;
  const later = (form) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => filter(form), WAIT_MS);
  };
  document.addEventListener("input", ({ target }) => target.form?.matches("[data-filter]") && later(target.form));
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-filter]")) return;
    event.preventDefault();
    filter(event.target);
  });
}

// The address says what is shown, so that it can be kept and sent to somebody.
function filter(form) {
  const address = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value) address.searchParams.set(name, value);
  address.hash = "";
  history.replaceState(null, "", address);
  refresh();
}
