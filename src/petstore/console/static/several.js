// Choosing rows of a list: all of them, or with Shift those between two clicks. Without this, one by one.
"use strict";
(() => {
  let last = null;
  document.addEventListener("click", (event) => {
    const box = event.target;
    if (!box.matches(".choose input")) return;
    const boxes = [...document.querySelectorAll(".choose input[name]")];
    const all = document.querySelector("[data-all]");
    if (box === all) {
      for (const each of boxes) each.checked = box.checked;
    } else {
      const between = [boxes.indexOf(last), boxes.indexOf(box)].sort((one, other) => one - other);
      if (event.shiftKey && between[0] >= 0) {
        for (const each of boxes.slice(between[0], between[1])) each.checked = box.checked;
      }
      last = box;
    }
    const count = boxes.filter((each) => each.checked).length;
    all.checked = count === boxes.length;
    all.indeterminate = count > 0 && !all.checked;
    document.querySelector("#several output").textContent = count ? `${count} chosen` : "";
  });
})();
