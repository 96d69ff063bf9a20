// What a page can do with a script; without one it has the same text.
"use strict";

// A button that copies a block of code. Of a session in a terminal it copies the commands, not the answers.
function textOf(code) {
  const copy = code.cloneNode(true);
  const isSession = copy.querySelector(".gp") !== null;
  for (const part of copy.querySelectorAll(".gp, .go")) part.remove();
  return isSession ? copy.textContent.replace(/\n{2,}/g, "\n").trim() : copy.textContent.trimEnd();
}

function addCopyButton(block) {
  const frame = document.createElement("div");
  const button = document.createElement("button");
  frame.className = "copied";
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
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
