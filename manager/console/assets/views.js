// A picture that is wider than the window begins where the news is.

export function showNews() {
  for (const view of document.querySelectorAll("[data-show]")) {
    const news = view.querySelector(view.dataset.show);
    if (news) view.scrollLeft += middle(news) - middle(view);
  }
}

function middle(element) {
  const { left, width } = element.getBoundingClientRect();
  return left + width / 2;
}
