// Small helpers of the console. Every page works without them.
"use strict";

// A button that has been pressed is not pressed twice.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || form.hasAttribute("hx-post")) return;
  for (const button of form.elements) {
    if (button.type === "submit") setTimeout(() => { button.disabled = true; }, 0);
  }
});
// A browser may keep a page in its memory, `no-store` or not, and show it to somebody who has signed out since. So
// nothing of it is seen before it was asked for again.
window.addEventListener("pagehide", () => { document.documentElement.hidden = true; });
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
  for (const button of document.querySelectorAll("button:disabled")) button.disabled = false;
});

// The address of a filtered list has the filters that are set, and no others.
document.addEventListener("formdata", (event) => {
  if (event.target.method !== "get") return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});

// <button data-copy="#id">: copies the text of an element. Without TLS a browser has no clipboard: then the text
// is selected.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Selected: press Ctrl+C";
  }
});

// <button data-print>
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) print();
});

// A search that follows what is typed tells a reader who does not see the list what it shows now.
document.addEventListener("htmx:afterSettle", () => {
  const said = document.getElementById("said"), rows = document.getElementById("rows");
  if (said && rows) said.textContent = rows.dataset.said ?? "";
});

// A page that nobody looks at asks for nothing; where somebody is at a link, nothing moves away below them.
const refreshesItself = (element) => (element.getAttribute("hx-trigger") || "").startsWith("every");
document.addEventListener("htmx:beforeRequest", (event) => {
  const asker = event.detail.elt;
  if (refreshesItself(asker) && (document.hidden || asker.contains(document.activeElement))) event.preventDefault();
});
// Nobody has asked for it: the session may end meanwhile.
document.addEventListener("htmx:configRequest", (event) => {
  if (refreshesItself(event.detail.elt)) event.detail.headers["X-Unattended"] = "1";
});
// <p id="unanswered" hidden>: shown while a page that refreshes itself, or the list of a search, gets no answer. A search
// is busy meanwhile, and asks again by itself.
let again;
const askAgain = (form) => {
  again = setTimeout(() => { document.hidden ? askAgain(form) : htmx.trigger(form, "input"); }, 5_000);
};
for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(name, ({ detail }) => {
    document.getElementById("unanswered").hidden = false;
    if (detail.elt.matches("form")) askAgain(detail.elt);
  });
}
document.addEventListener("htmx:beforeSend", ({ detail }) => {
  clearTimeout(again);
  if (detail.elt.matches("form")) detail.target.setAttribute("aria-busy", "true");
});
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  detail.target.removeAttribute("aria-busy");
  if (detail.successful) document.getElementById("unanswered").hidden = true;
});

// Who has searched writes on where the text ends.
addEventListener("DOMContentLoaded", () => {
  const find = document.activeElement;
  if (find?.id === "find") find.setSelectionRange(find.value.length, find.value.length);
});
// The menu of a phone lies over the page: it closes with Escape, and when the focus goes elsewhere.
const menu = document.querySelector(".menu");
menu?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  menu.open = false;
  menu.firstElementChild.focus();
});
menu?.addEventListener("focusout", ({ relatedTarget }) => {
  if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
});
// "/" goes to the search field, as in other consoles.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  document.getElementById("find")?.select();
});
// The text of a key is in no address: it is not searched for while it is typed, and goes as a form by POST.
const holdsKey = (text) => /pets_(live|test)_/.test(text);
document.addEventListener("htmx:confirm", (event) => {
  if ([...new FormData(event.detail.elt.closest("form") || undefined).values()].some(holdsKey)) event.preventDefault();
});
document.addEventListener("submit", (event) => {
  const find = document.getElementById("find");
  const typed = [...new FormData(event.target).values()].find(holdsKey);
  if (event.target.method !== "get" || !typed || !find) return;
  event.preventDefault();
  find.value = typed;
  find.form.requestSubmit();
}, true);

// <time data-ago>: "3 minutes ago" goes on, by the service's clock. See formats.py.
const units = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
const words = new Intl.RelativeTimeFormat("en");
const aheadMs = document.documentElement.dataset.now - Date.now();
setInterval(() => {
  for (const each of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.parse(each.dateTime) - Date.now() - aheadMs) / 1_000;
    const [unit, length] = units.find((known) => Math.abs(seconds) >= known[1]) ?? ["second", 1];
    if (Math.abs(seconds) < 30 * 86_400) {
      each.textContent = Math.abs(seconds) < 1 ? "now" : words.format(Math.trunc(seconds / length), unit);
    }
  }
}, 30_000);
