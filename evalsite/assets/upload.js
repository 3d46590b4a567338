// The drop zone: without this file it is the browser's own file field.
"use strict";
const zone = document.querySelector("[data-drop]");
if (zone) {
  const field = zone.querySelector("input[type=file]");
  const hold = (event, over) => {
    if (!event.dataTransfer || !event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    zone.classList.toggle("over", over);
  };
  zone.addEventListener("dragenter", (event) => hold(event, true));
  zone.addEventListener("dragover", (event) => hold(event, true));
  zone.addEventListener("dragleave", (event) => hold(event, zone.contains(event.relatedTarget)));
  zone.addEventListener("drop", (event) => {
    hold(event, false);
    const one = new DataTransfer();
    if (event.dataTransfer.files.length) one.items.add(event.dataTransfer.files[0]);
    field.files = one.files;
    field.dispatchEvent(new Event("change", { bubbles: true }));
    field.focus();
  });
}
