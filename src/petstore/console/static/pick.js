// <input data-pick="pick/pets">: offers what matches while somebody types, as a combobox of the ARIA patterns.
"use strict";

const listOf = (field) => document.getElementById(field.getAttribute("aria-controls"));
const closePick = (field) => {
  listOf(field).hidden = true;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
};
const activate = (field, option) => {
  for (const each of listOf(field).children) each.setAttribute("aria-selected", String(each === option));
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
};
const choose = (field, option) => {
  field.value = option.dataset.text;
  closePick(field);
  field.dispatchEvent(new Event("change", { bubbles: true }));
};
let waiting;
const offer = async (field) => {
  const typed = field.value;
  if (holdsKey(typed)) return closePick(field);
  const answer = await fetch(`${field.dataset.pick}?q=${encodeURIComponent(typed)}`, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok || answer.status !== 200 || field.value !== typed || document.activeElement !== field) return;
  const list = listOf(field);
  list.innerHTML = await answer.text();
  list.dataset.typed = typed;
  field.removeAttribute("aria-activedescendant");
  for (const each of list.children) each.id = `${list.id}-${each.id}`;
  list.hidden = !list.children.length;
  field.setAttribute("aria-expanded", String(!list.hidden));
  document.getElementById(`${list.id}-count`).textContent = `${list.children.length} to choose from`;
};
document.addEventListener("input", (event) => {
  if (!event.target.dataset.pick) return;
  clearTimeout(waiting);
  waiting = setTimeout(offer, 150, event.target);
});
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (!field.dataset?.pick) return;
  const list = listOf(field), options = [...list.children];
  const active = options.findIndex((each) => each.id === field.getAttribute("aria-activedescendant"));
  if (event.key === "ArrowDown" && list.hidden) offer(field);
  else if (list.hidden || !options.length) return;
  else if (event.key === "Escape") closePick(field);
  else if (list.dataset.typed !== field.value) return;  // of an earlier text: a scanner ends with Enter at once
  else if (event.key === "ArrowDown") activate(field, options[(active + 1) % options.length]);
  else if (event.key === "ArrowUp") activate(field, options[(active || options.length) - 1] || options.at(-1));
  else if (event.key === "Enter" || (event.key === "Tab" && active >= 0)) choose(field, options[Math.max(active, 0)]);
  else return;
  if (event.key !== "Tab") event.preventDefault();
});
// Before the field loses the focus to the list.
document.addEventListener("mousedown", (event) => {
  const option = event.target.closest(".picks [role=option]");
  if (!option) return;
  event.preventDefault();
  choose(document.querySelector(`[aria-controls="${option.parentElement.id}"]`), option);
});
document.addEventListener("focusout", (event) => { if (event.target.dataset?.pick) closePick(event.target); });
