// Makes one tree of elements like another with the fewest changes, so that focus and selection stay.

const KEPT = new Set(["open"]); // whether details are open is the reader's business

export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (typed(old)) return;
  attributes(old, fresh);
  children(old, fresh);
}

// A field that somebody is at is not changed under the hands.
function typed(node) {
  return node === document.activeElement && /^(INPUT|TEXTAREA|SELECT)$/.test(node.nodeName);
}

function attributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!KEPT.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}

function children(old, fresh) {
  const byId = new Map();
  for (const child of old.children) if (child.id) byId.set(child.id, child);
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const kept = wanted.id ? byId.get(wanted.id) : undefined;
    if (kept && kept.nodeName === wanted.nodeName) {
      if (kept !== place) old.insertBefore(kept, place);
      else place = place.nextSibling;
      morph(kept, wanted);
    } else if (place && alike(place, wanted)) {
      const next = place.nextSibling;
      change(place, wanted);
      place = next;
    } else {
      old.insertBefore(document.importNode(wanted, true), place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function alike(old, wanted) {
  return old.nodeName === wanted.nodeName && !old.id && !wanted.id;
}

function change(old, wanted) {
  if (old.nodeType === Node.ELEMENT_NODE) morph(old, wanted);
  else if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
}
