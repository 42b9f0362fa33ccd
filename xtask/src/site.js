"use strict";
// Search: every section that has all the words, those with them in the heading first.
const field = document.getElementById("search"), found = document.getElementById("found");
const all = document.querySelector("nav details");
if (matchMedia("(max-width: 60rem)").matches) all.open = false;
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(word => word.length > 1);
  found.replaceChildren();
  found.hidden = words.length === 0;
  if (words.length === 0) return;
  const count = (text, word) => text.toLowerCase().split(word).length - 1;
  const ranked = WORDS.map(([link, page, heading, text]) => {
    const counts = words.map(word => 20 * count(heading, word) + 5 * count(page, word) + Math.min(count(text, word), 10));
    return [counts.includes(0) ? 0 : counts.reduce((a, b) => a + b), link, page, heading, text];
  }).filter(row => row[0] > 0).sort((a, b) => b[0] - a[0]).slice(0, 20);
  for (const [, link, page, heading, text] of ranked) {
    const item = document.createElement("li"), to = document.createElement("a"), where = document.createElement("small");
    to.href = link;
    to.textContent = heading;
    const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 30);
    where.textContent = page + ": " + text.slice(at, at + 110);
    item.append(to, where);
    found.append(item);
  }
  if (ranked.length === 0) found.append(Object.assign(document.createElement("li"), { textContent: "Nothing found." }));
});
field.addEventListener("keydown", event => {
  const first = found.querySelector("a");
  if (event.key === "Enter" && first) location.href = first.href;
});
