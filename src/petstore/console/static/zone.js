// The time zone of a person, without this a name to type: the names to choose from, and the browser's own.
"use strict";

const offerZones = () => {
  const field = document.getElementById("time_zone"), hint = document.getElementById("browser-zone");
  if (!field) return;
  for (const name of Intl.supportedValuesOf?.("timeZone") ?? []) document.getElementById("zones").append(new Option("", name));
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (!timeZone || timeZone === hint.dataset.zone) return;
  hint.querySelector("b").textContent = timeZone;
  hint.querySelector("button").addEventListener("click", () => {
    field.value = timeZone;
    field.form.requestSubmit();
  });
  hint.hidden = false;
};
offerZones();
document.addEventListener("shown", offerZones);  // by forms.js, in place of the page that was there
