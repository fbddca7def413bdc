// Where in a JSON text something is.

// The place of a path such as `sink.options.table` or `protocols[0].name`: its last key that there is.
export function locate(text, path) {
  const keys = path.split(/[.[\]]+/).filter((key) => key && !/^\d+$/.test(key));
  let from = 0;
  let found = [0, 0];
  for (const key of keys) {
    const quoted = JSON.stringify(key);
    const at = keyAt(text, quoted, from);
    if (at < 0) break;
    found = [at, at + quoted.length];
    from = at + quoted.length;
  }
  return found;
}

function keyAt(text, quoted, from) {
  for (let at = text.indexOf(quoted, from); at >= 0; at = text.indexOf(quoted, at + 1)) {
    if (/^\s*:/.test(text.slice(at + quoted.length))) return at;
  }
  return -1;
}

// Where the parser gave up, as far as it tells.
export function misplaced(text, message) {
  const place = /position (\d+)/.exec(message);
  const at = place ? Math.min(Number(place[1]), text.length) : text.length;
  return [at, Math.min(at + 1, text.length)];
}
