// What became of an action, told where it is seen and where it is heard.

const LONGEST = 5;

export function tell(words, details = []) {
  show("good", "status", words, details);
}

export function complain(words, details = []) {
  show("bad", "alert", words, details);
}

function show(kind, role, words, details) {
  const news = document.getElementById("news");
  const entry = document.createElement("div");
  entry.className = `entry ${kind}`;
  entry.setAttribute("role", role);
  const text = document.createElement("p");
  text.textContent = words;
  entry.append(text, ...list(details), closer(entry));
  news.append(entry);
  while (news.children.length > LONGEST) news.firstElementChild.remove();
  if (kind === "good") setTimeout(() => entry.remove(), 8000);
}

function list(details) {
  if (!details.length) return [];
  const items = document.createElement("ul");
  for (const detail of details) {
    const item = document.createElement("li");
    item.textContent = detail;
    items.append(item);
  }
  return [items];
}

function closer(entry) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "close";
  button.setAttribute("aria-label", "Dismiss");
  button.textContent = "×";
  button.addEventListener("click", () => entry.remove());
  return button;
}
