// Nothing that was typed is lost: a form that was not accepted stays on its page, and if the session has ended it comes
// back after the sign-in. Without this script, and in browsers before 2022, forms are sent by the browser itself.
"use strict";

{
  const person = document.body.dataset.person, prefix = `draft:${person}:`, key = prefix + location.pathname;
  const passed = new WeakSet();
  const drafts = () => Object.keys(sessionStorage).filter((name) => name.startsWith("draft:"));
  const forget = (names) => names.forEach((name) => sessionStorage.removeItem(name));

  const mark = (form, button, isBusy) => {
    for (const each of [form, button ?? form]) {
      isBusy ? each.setAttribute("aria-busy", "true") : each.removeAttribute("aria-busy");
    }
  };
  const hasText = (form) => form.querySelector("input:not([type=hidden]), select, textarea") !== null;
  const say = (form, text, kind = "fault") => {
    const place = form.matches(".sheet") ? form : document.getElementById("content");
    const said = Object.assign(document.createElement("p"), { className: `${kind} said`, textContent: text, role: "alert" });
    place.querySelector(":scope > .said")?.remove();
    place.prepend(said);
    said.scrollIntoView({ block: "nearest" });
  };

  // A draft has what the form showed and what was typed; no password, file, token or key of a customer (console.js).
  const keep = (form) => {
    const typed = [...new FormData(form)].filter(([name, value]) => !["csrf", "once"].includes(name)
      && form.elements[name].type !== "password" && typeof value === "string" && !holdsKey(value));
    sessionStorage.setItem(key, JSON.stringify([form.action, typed]));
  };
  const restore = () => {
    const [action, typed] = JSON.parse(sessionStorage.getItem(key));
    forget([key]);
    const form = [...document.forms].find((each) => each.action === action);
    if (!form) return;
    let first = null;
    for (const field of form.elements) {
      const given = typed.filter(([name]) => name === field.name).map(([, value]) => value);
      if (["checkbox", "radio"].includes(field.type)) field.checked = given.includes(field.value);
      else if (given.length) [field.value] = given;
      if (given.length && !field.matches("[type=hidden], [hidden]")) first ??= field;
    }
    say(form, `You were signed out. ${first ? "Your text is here again; nothing" : "Nothing"} was saved yet.`, "note");
    first?.focus();
  };

  // The page that a form was answered with, at the form's own address: its links are relative to where it came from.
  const show = (page, main, address) => {
    for (const name of ["href", "action", "hx-get"]) {
      for (const each of main.querySelectorAll(`[${name}]`)) each.setAttribute(name, new URL(each.getAttribute(name), address));
    }
    document.title = page.title;
    document.getElementById("content").replaceWith(main);
    htmx.process(main);
    document.dispatchEvent(new Event("shown"));
    (main.querySelector("[aria-invalid], [autofocus]") ?? main).focus();
  };

  const send = async (form, button) => {
    const body = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (typeof value === "string") body.append(name, value.replace(/\r?\n/g, "\r\n"));
    }
    if (button?.name) body.append(button.name, button.value);
    const signal = AbortSignal.timeout(30_000);
    const answer = await fetch(form.action, { method: "POST", body, headers: { "X-By-Script": "1" }, signal });
    const where = answer.headers.get("location");
    if (answer.redirected || where !== null) return location.assign(new URL(where ?? "", answer.url));
    if (answer.status === 204) {  // the browser sends it: the answer is shown once, or there is a file in it
      passed.add(form);
      return form.requestSubmit(button);
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = page.getElementById("content"), refusal = page.querySelector("[data-refusal]");
    if (refusal?.dataset.refusal) {
      keep(form);
      return location.replace(location.pathname + location.search);
    }
    mark(form, button, false);
    if (refusal) say(form, refusal.textContent + (hasText(form) ? " Your text is still here." : ""));
    else if (main) show(page, main, answer.url);
    else throw new Error("not a page of the console");
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target, button = event.submitter;
    if (!person || form.method !== "post" || passed.has(form) || !form.requestSubmit || !AbortSignal.timeout) return;
    if (/\/console\/(me\/)?sign-out/.test(form.action)) return forget(drafts());
    event.preventDefault();
    if (form.hasAttribute("aria-busy")) return;
    mark(form, button, true);
    try {
      await send(form, button);
    } catch {
      mark(form, button, false);
      say(form, `The service could not be reached. ${hasText(form) ? "Your text is still here; try" : "Try"} again.`);
    }
  });

  if (person) {
    forget(drafts().filter((name) => !name.startsWith(prefix)));
    if (sessionStorage.getItem(key)) restore();
  } else if (drafts().length && document.querySelector("main form")) {
    say(document.querySelector("main form"), "You were signed out. Your text comes back when you have signed in again.", "note");
  }
}
