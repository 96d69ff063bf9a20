// The reference with a script: forms that try an operation. pages.js comes first, and keeps the key.
"use strict";

const forms = [...document.querySelectorAll("form.try")];

// Requests go to the service that this page came from; the policy of the page allows no other.
const BASE = new URL("../v1", location.href);
const SECONDS = 30;
const LIMIT_HEADERS = /^(x-ratelimit-|ratelimit|retry-after$)/;

class Refused extends Error {}

function targetOf(form) {
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const field of form.querySelectorAll("[data-in]")) {
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
    if (field.dataset.in !== "query" || !value) continue;
    const values = "list" in field.dataset ? value.split(",") : [value];
    for (const each of values) query.append(field.name, each.trim());
  }
  const target = new URL(BASE.href + path + (`${query}` && `?${query}`));
  if (target.origin !== location.origin || target.pathname !== BASE.pathname + path) {
    throw new Refused("This is not a value for a path. Give the identifier, such as 7.");
  }
  return target;
}

function headersOf(form) {
  const headers = new Headers();
  const set = (name, value) => {
    try {
      headers.set(name, value);
    } catch {
      throw new Refused(`${name}: a header can't have these characters.`);
    }
  };
  const key = form.querySelector("[data-key]").value.trim();
  if (key) set("Authorization", `Bearer ${key}`);
  for (const field of form.querySelectorAll("[data-in=header]")) {
    if (field.value.trim()) set(field.name, field.value.trim());
  }
  if (form.elements.body) set("Content-Type", "application/json");
  return headers;
}

async function send(form, target, headers) {
  const started = performance.now();
  const response = await fetch(target, {
    method: form.dataset.method,
    headers,
    body: form.elements.body?.value,
    signal: AbortSignal.timeout(SECONDS * 1000),
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  });
  const text = await response.text();
  return { response, text, milliseconds: Math.round(performance.now() - started) };
}

// JSON with a line for each member. Numbers keep their digits: a number of JavaScript would round them.
function laidOut(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  let before = "";
  let out = "";
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g)) {
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    const opened = before === "{" || before === "[";
    if ((closes && !opened) || (!closes && opened) || before === ",") out += `\n${"  ".repeat(depth)}`;
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return out;
}

function listed(headers) {
  const list = element("dl");
  for (const [name, value] of headers) list.append(element("dt", name), element("dd", value));
  return list;
}

function helpFor(text) {
  let code = "";
  try {
    code = JSON.parse(text).code;
  } catch {
    return [];
  }
  if (typeof code !== "string" || !/^[a-z_]+$/.test(code)) return [];
  const said = element("p", "What to do: ");
  said.append(element("a", code, { href: `errors#${code}` }));
  return [said];
}

function shownAnswer({ response, text, milliseconds }) {
  const headers = [...response.headers];
  const limits = headers.filter(([name]) => LIMIT_HEADERS.test(name));
  const others = element("details");
  others.append(element("summary", "Other headers"), listed(headers.filter((each) => !limits.includes(each))));
  const status = element("p", `${response.status} ${response.statusText}`, {
    class: response.ok ? "outcome" : "outcome bad",
  });
  status.append(element("span", ` in ${milliseconds} ms`));
  const parts = [status, ...(response.ok ? [] : helpFor(text))];
  if (text) {
    const block = element("pre", "", { tabindex: "0" });
    block.append(element("code", laidOut(text)));
    parts.push(block);
  }
  return [...parts, listed(limits), others];
}

function shownFault(form, error) {
  if (error instanceof Refused) return [element("p", error.message, { class: "outcome bad" })];
  const silent = error.name === "TimeoutError" ? `No answer within ${SECONDS} seconds.` : "No answer: the service can't be reached.";
  const unsure = "Whether the change was made is unknown. Look before you send it again.";
  return [element("p", form.dataset.method === "GET" ? silent : `${silent} ${unsure}`, { class: "outcome bad" })];
}

// One window asks before each change: the documentation stands in the real service.
const question = element("dialog", "", { "aria-labelledby": "question" });
const asked = element("p", "", { id: "question" });
const cancel = element("button", "Cancel", { type: "button" });
const confirm = element("button", "Send", { type: "button", class: "send" });
question.append(asked, cancel, confirm);
document.body.append(question);
cancel.addEventListener("click", () => question.close(""));
confirm.addEventListener("click", () => question.close("send"));

function mayChange(form, target) {
  if (form.dataset.method === "GET") return Promise.resolve(true);
  asked.textContent = `${form.dataset.method} ${target.pathname} changes the store. It is the real one, not a copy. Send it?`;
  question.returnValue = "";
  question.showModal();
  return new Promise((resolve) => {
    question.addEventListener("close", () => resolve(question.returnValue === "send"), { once: true });
  });
}

async function tryOut(form) {
  const result = form.querySelector(".result");
  const button = form.querySelector("[type=submit]");
  try {
    const target = targetOf(form);
    const headers = headersOf(form);
    if (!(await mayChange(form, target))) return;
    button.disabled = true;
    result.replaceChildren(element("p", "Waiting for the answer …"));
    result.replaceChildren(...shownAnswer(await send(form, target, headers)));
  } catch (error) {
    result.replaceChildren(...shownFault(form, error));
  } finally {
    button.disabled = false;
  }
}

for (const form of forms) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tryOut(form);
  });
  form.hidden = false;
}
