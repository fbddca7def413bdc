// A picture that is wider than the window begins at its latest part.

export function scrollToLatest() {
  for (const view of document.querySelectorAll("[data-show]")) {
    const latest = view.querySelector(view.dataset.show);
    if (latest) view.scrollLeft += middle(latest) - middle(view);
  }
}

function middle(element) {
  const { left, width } = element.getBoundingClientRect();
  return left + width / 2;
}
