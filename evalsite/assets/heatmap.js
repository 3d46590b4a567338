// A cursor on the heatmap, for keyboard and pointer. Without it the picture and its table remain.
"use strict";
const heat = document.getElementById("hm");
if (heat) {
  const svg = heat.querySelector("svg");
  const readout = document.getElementById("hm-readout");
  const spoken = readout.querySelector("output");
  const link = readout.querySelector("a");
  const [left, top, width, height] = ["x", "y", "cell", "row"].map((key) => Number(svg.dataset[key]));
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  cursor.setAttribute("class", "cursor");
  let data = null;
  let at = [0, 0];

  const load = async () => {
    if (!data) data = fetch(heat.dataset.source).then((answer) => answer.json());
    return data;
  };

  const show = async (row, column) => {
    const held = await load();
    at = [
      Math.min(Math.max(row, 0), held.models.length - 1),
      Math.min(Math.max(column, 0), held.tasks.length - 1),
    ];
    const model = held.models[at[0]];
    const task = held.tasks[at[1]];
    const [n, c, fraction] = held.cells[at[0]][at[1]];
    const wide = Math.max(width, 6);
    cursor.setAttribute("x", left + at[1] * width - (wide - width) / 2);
    cursor.setAttribute("y", top + at[0] * height - 1);
    cursor.setAttribute("width", wide);
    cursor.setAttribute("height", height);
    svg.append(cursor);
    const name = document.createElement("strong");
    name.textContent = `${model.model}, ${task.task_id}`;
    const said = n ? ` · ${c} of ${n} samples pass, mean fraction ${fraction.toFixed(2)}` : " · not graded";
    spoken.replaceChildren(name, said);
    link.href = `${heat.dataset.samples.replace("SUBMISSION", model.submission)}?task=${encodeURIComponent(task.slug)}`;
    link.hidden = !n;
    readout.hidden = false;
  };

  const cell = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale - left;
    const y = (event.clientY - box.top) * scale - top;
    return [Math.floor(y / height), Math.floor(x / width)];
  };

  document.getElementById("hm-keys").hidden = false;
  heat.addEventListener("focus", () => show(...at));
  heat.addEventListener("pointermove", (event) => {
    const [row, column] = cell(event);
    if (row >= 0 && column >= 0) show(row, column);
  });
  heat.addEventListener("click", (event) => {
    const [row, column] = cell(event);
    if (row >= 0 && column >= 0) show(row, column).then(() => link.hidden || link.click());
  });
  heat.addEventListener("keydown", (event) => {
    const [row, column] = at;
    const moves = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, Infinity],
    };
    if (event.key in moves) {
      event.preventDefault();
      show(...moves[event.key]);
    } else if (event.key === "Enter" && !link.hidden) {
      link.click();
    }
  });
}
