// What a page can do with a script; without one it has the same text.
"use strict";

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

function stored(storage, name) {
  try {
    return window[storage].getItem(name) ?? "";
  } catch {
    return ""; // the browser keeps nothing for this page
  }
}

function store(storage, name, value) {
  try {
    if (value) window[storage].setItem(name, value);
    else window[storage].removeItem(name);
  } catch {
    // Then it lasts until the page is left.
  }
}

// A button that copies a block of code. Of a session in a terminal it copies the commands, not the answers.
function textOf(code) {
  const copy = code.cloneNode(true);
  const isSession = copy.querySelector(".gp") !== null;
  for (const part of copy.querySelectorAll(".gp, .go")) part.remove();
  return isSession ? copy.textContent.replace(/\n{2,}/g, "\n").trim() : copy.textContent.trimEnd();
}

function addCopyButton(block) {
  const frame = element("div", "", { class: "copied" });
  const button = element("button", "Copy", { type: "button", class: "copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(textOf(block.querySelector("code")));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.replaceWith(frame);
  frame.append(block, button);
}

// Browsers give the clipboard to pages on https and localhost only.
if (navigator.clipboard) document.querySelectorAll("pre:has(> code)").forEach(addCopyButton);

// Samples of one place in several languages are tabs: the choice at one is the choice at all, also the next time.
const LANGUAGE = "petstore-language";

function addTabs(group, number) {
  const list = element("div", "", { role: "tablist", "aria-label": "Language" });
  for (const [place, panel] of [...group.children].entries()) {
    const heading = panel.querySelector(".language");
    const id = `tab-${number}-${place}`;
    const named = { role: "tab", type: "button", id, "aria-controls": `${id}-panel` };
    list.append(element("button", heading.textContent, named));
    heading.remove();
    panel.id = `${id}-panel`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", id);
  }
  list.addEventListener("click", ({ target }) => target.matches("[role=tab]") && choose(target));
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.children];
    const at = tabs.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = tabs.at(to % tabs.length);
    tab.focus({ preventScroll: true });
    choose(tab);
  });
  group.prepend(list);
  show(list, list.firstChild);
}

function show(list, chosen) {
  for (const tab of list.children) {
    tab.setAttribute("aria-selected", tab === chosen);
    tab.tabIndex = tab === chosen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
}

// A place without the language stays as it is.
function showAll(language) {
  for (const list of document.querySelectorAll("[role=tablist]")) {
    const chosen = [...list.children].find((tab) => tab.textContent === language);
    if (chosen) show(list, chosen);
  }
}

function choose(tab) {
  const before = tab.getBoundingClientRect().top;
  showAll(tab.textContent);
  scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
  store("localStorage", LANGUAGE, tab.textContent);
}

const groups = document.querySelectorAll(".tabs");
groups.forEach(addTabs);
showAll(stored("localStorage", LANGUAGE));

// The reader's own key, in the samples and forms. It stays in this tab: no other storage, cookie or address has it.
const KEY = "petstore-key";
const PREFIX = document.querySelector(".staging") ? "pets_test_" : "pets_live_";
const PLACEHOLDER = `${PREFIX}YourOwnKeyStandsHere`;
const KEY_FORM = /^pets_(live|test)_[0-9A-Za-z]{38}$/;
const fault = element("div", "", { role: "status", class: "fault", id: "key-fault" });

// Pieces of text, so that no key is read as markup.
function placesOfKey(code) {
  const places = [];
  const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const at = text.data.indexOf(PLACEHOLDER);
    if (at < 0) continue;
    const place = at > 0 ? text.splitText(at) : text;
    if (place.length > PLACEHOLDER.length) place.splitText(PLACEHOLDER.length);
    places.push(place);
    texts.currentNode = place;
  }
  return places;
}

const places = [...document.querySelectorAll("pre code")].flatMap(placesOfKey);

function showKey(key, from) {
  for (const field of document.querySelectorAll("[data-key]")) if (field !== from) field.value = key;
  const own = key.trim();
  const fits = KEY_FORM.test(own);
  for (const place of places) place.data = fits ? own : PLACEHOLDER;
  fault.textContent = fits || !own ? "" : "This is no API key: one is pets_live_ or pets_test_ and 38 letters and digits.";
}

function keepKey(key, from) {
  store("sessionStorage", KEY, key);
  showKey(key, from);
}

function addKeyField(block) {
  const label = element("label", "Your API key ");
  const attributes = { type: "text", class: "secret", "data-key": "", placeholder: `${PREFIX}…`, spellcheck: "false" };
  const field = element("input", "", { ...attributes, autocapitalize: "off", autocomplete: "off", "aria-describedby": fault.id });
  label.append(element("span", "for the samples; stays in this tab"), field);
  const box = element("div", "", { class: "own-key" });
  box.append(label, element("button", "Forget the key", { type: "button", "data-forget": "" }), fault);
  (block.closest(".copied") ?? block).before(box);
}

if (places.length > 0) addKeyField(places[0].parentElement.closest("pre"));
// The place that the address names has moved.
if (groups.length + places.length > 0) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
document.addEventListener("input", ({ target }) => target.matches("[data-key]") && keepKey(target.value, target));
document.addEventListener("click", ({ target }) => target.matches("[data-forget]") && keepKey("", null));
const showStored = () => showKey(stored("sessionStorage", KEY), null);
showStored();
addEventListener("pageshow", ({ persisted }) => persisted && showStored()); // a page as it was left may be out of date
// Results while the reader types, from the page of the search: in that page itself, elsewhere below the field.
const field = document.querySelector(".search input");
const results = document.querySelector("#found") ?? element("div", "", { class: "results" });
const isPageOfResults = results.isConnected;
let typed = 0;

// The status stays the same element, so that it is read aloud.
function showResults([status, ...others]) {
  results.firstElementChild.replaceChildren(...status.childNodes);
  while (results.children.length > 1) results.lastElementChild.remove();
  results.append(...others);
  results.hidden = false;
}

async function search() {
  const asked = field.value;
  if (!asked.trim()) return closeResults();
  const answer = await fetch(`${field.form.action}?q=${encodeURIComponent(asked)}`);
  if (!answer.ok || asked !== field.value) return;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
  for (const link of found.querySelectorAll("a")) link.href = new URL(link.getAttribute("href"), answer.url).href;
  if (asked === field.value) showResults(found.children);
}

function closeResults() {
  results.hidden = !isPageOfResults;
}

if (!isPageOfResults) {
  results.append(element("p", "", { role: "status" }));
  closeResults();
  field.form.append(results);
  field.form.addEventListener("keydown", ({ key }) => key === "Escape" && closeResults());
  field.form.addEventListener("focusout", ({ relatedTarget }) => field.form.contains(relatedTarget) || closeResults());
  results.addEventListener("click", ({ target }) => target.closest("a") && closeResults());
}
field.addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(() => search().catch(() => {}), 150); // out of reach: Enter asks again
});

// The list of contents shows where the reader is.
const links = new Map();
for (const link of document.querySelectorAll(".side .contents a[href^='#']")) {
  const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (heading) links.set(heading, link);
}

function markPlace() {
  const top = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) + 8;
  let here = null;
  for (const heading of links.keys()) if (heading.getBoundingClientRect().top <= top) here = heading;
  for (const [heading, link] of links) {
    if (heading === here) link.setAttribute("aria-current", "location");
    else link.removeAttribute("aria-current");
  }
}

if (links.size > 0) {
  let isPlanned = false;
  const plan = () => {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => {
      isPlanned = false;
      markPlace();
    });
  };
  addEventListener("scroll", plan, { passive: true });
  addEventListener("resize", plan, { passive: true });
  markPlace();
}
