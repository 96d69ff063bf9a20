// The time zone of a person, without this a name to type: the names to choose from, and the browser's own.
"use strict";

const field = document.getElementById("time_zone");
for (const name of Intl.supportedValuesOf?.("timeZone") ?? []) document.getElementById("zones").append(new Option("", name));
const hint = document.getElementById("browser-zone");
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if (timeZone && timeZone !== hint.dataset.zone) {
  hint.querySelector("b").textContent = timeZone;
  hint.querySelector("button").addEventListener("click", () => {
    field.value = timeZone;
    field.form.requestSubmit();
  });
  hint.hidden = false;
}
