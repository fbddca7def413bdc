// One request to the manager's API. What it answers comes back as data, an error too.

// `body` is data, or a text that is JSON already.
export async function ask(method, url, body, headers = {}) {
  const request = { method, headers: { Accept: "application/json", ...headers }, credentials: "same-origin" };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(url, request);
  } catch {
    return failed("the manager cannot be reached; try again when it is back");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok) return { ok: true, status: response.status, answer };
  return failed(answer?.message ?? `the manager answered ${response.status}`, answer);
}

function failed(message, answer = null) {
  const problems = answer?.problems ?? [];
  return { ok: false, message, code: answer?.error ?? "", problems };
}
