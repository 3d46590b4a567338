// Keys of the triage pages; everything they do is also a link, a box or a button.
"use strict";
const rows = [...document.querySelectorAll("[data-keys=queue] tbody tr")];
const tabs = [...document.querySelectorAll(".tabs a")];
let current = -1;
function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}
function step(by) {
  if (!rows.length) return follow(by > 0 ? "main a[rel=next]" : "main a[rel=prev]");
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  if (focused >= 0) current = focused;
  current = Math.min(Math.max(current + by, 0), rows.length - 1);
  rows[current].querySelector("th a").focus();
}
function pick() {
  const row = rows.find((one) => one.contains(document.activeElement));
  const box = row && row.querySelector("input[type=checkbox]");
  if (box) box.checked = !box.checked;
}
const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  x: pick,
  d: () => document.getElementById("id_state")?.focus(),
  u: () => follow(".crumbs a"),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea")) return;
  const tab = tabs[Number(event.key) - 1];
  const act = tab ? () => tab.click() : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
for (const help of document.querySelectorAll("[data-keyhelp]")) help.hidden = false;
