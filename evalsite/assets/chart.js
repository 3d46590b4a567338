// A cursor on charts, for keyboard, pointer and touch: it reads out the mark it is on. Without it
// the picture, the browser's own tips and the tables remain.
//
// A chart is an element with data-chart. Its marks stand in rows: one row in a picture, one per
// table row where it is a table, and the cells of data-source where it is a grid.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  // Marks that are elements. Their text is their title or label.
  class Drawn {
    constructor(chart) {
      const marks = [...chart.querySelectorAll("[data-mark]")];
      const lines = [...new Set(marks.map((mark) => mark.closest("tr")))];
      this.rows = lines.map((line) => marks.filter((mark) => mark.closest("tr") === line));
      this.marks = marks;
      this.table = Boolean(lines[0]);
    }

    async size() {
      return this.rows.map((row) => row.length);
    }

    async read(row, column) {
      const mark = this.rows[row][column];
      const title = mark.querySelector(":scope > title");
      const line = mark.closest("tr");
      const head = line?.querySelector("th a") ?? line?.querySelector("th");
      const name = head?.textContent.trim() ?? "";
      const said = title ? title.textContent : mark.getAttribute("aria-label") || mark.dataset.mark;
      return { name, said, url: mark.dataset.href ?? "" };
    }

    async frame(row, column) {
      const mark = this.rows[row][column];
      if (mark.localName === "svg") return [mark, 0, 0, "100%", "100%"];
      const box = mark.getBBox();
      return [mark.ownerSVGElement, box.x - 2, box.y - 2, box.width + 4, box.height + 4];
    }

    // In a table only the mark under the pointer, else the nearest.
    find(event) {
      const mark = this.table ? event.target.closest("[data-mark]") : this.nearest(event);
      const row = this.rows.findIndex((one) => one.includes(mark));
      return row < 0 ? null : [row, this.rows[row].indexOf(mark)];
    }

    nearest({ clientX, clientY }) {
      const away = (mark) => {
        const box = mark.getBoundingClientRect();
        const x = Math.max(box.left - clientX, 0, clientX - box.right);
        const y = Math.max(box.top - clientY, 0, clientY - box.bottom);
        // What is above or below the pointer is meant rather than what is beside it.
        return Math.hypot(x, y / 4);
      };
      const found = this.marks.map((mark) => [away(mark), mark]);
      return found.reduce((best, one) => (one[0] < best[0] ? one : best))[1];
    }
  }

  // Cells of a heatmap, which are drawn together; their figures are fetched once they are wanted.
  class Grid {
    constructor(chart) {
      this.chart = chart;
      this.svg = chart.querySelector("svg");
      const names = ["x", "y", "cell", "row"];
      [this.left, this.top, this.width, this.height] = names.map((name) => Number(this.svg.dataset[name]));
    }

    load() {
      this.held ??= fetch(this.chart.dataset.source).then((answer) => answer.json());
      return this.held;
    }

    async size() {
      const { models, tasks } = await this.load();
      return models.map(() => tasks.length);
    }

    async read(row, column) {
      const { models, tasks, cells } = await this.load();
      const [n, c, fraction] = cells[row][column];
      const samples = this.chart.dataset.samples.replace("SUBMISSION", models[row].submission);
      return {
        name: `${models[row].model}, ${tasks[column].task_id}`,
        said: n ? `${c} of ${n} samples pass, mean fraction ${fraction.toFixed(2)}` : "not graded",
        url: n ? `${samples}?task=${encodeURIComponent(tasks[column].slug)}` : "",
      };
    }

    async frame(row, column) {
      const wide = Math.max(this.width, 6);
      const x = this.left + column * this.width - (wide - this.width) / 2;
      return [this.svg, x, this.top + row * this.height - 1, wide, this.height];
    }

    find(event) {
      const box = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / box.width;
      const column = Math.floor(((event.clientX - box.left) * scale - this.left) / this.width);
      const row = Math.floor(((event.clientY - box.top) * scale - this.top) / this.height);
      return row >= 0 && column >= 0 ? [row, column] : null;
    }
  }

  function element(name, css, text = "") {
    const made = document.createElement(name);
    made.className = css;
    made.textContent = text;
    return made;
  }

  function readoutOf(chart) {
    const line = element("div", "readout");
    const [spoken, link] = [element("output", ""), element("a", "", "Open")];
    line.hidden = link.hidden = true;
    line.append(spoken, link);
    if (chart.id) line.id = `${chart.id}-readout`;
    chart.after(line);
    return { line, spoken, link };
  }

  // Focus has to be possible, and to say where it is.
  function prepare(chart) {
    if (!chart.hasAttribute("tabindex")) chart.tabIndex = 0;
    if (chart.hasAttribute("role")) return;
    const title = chart.querySelector("svg > title")?.textContent;
    chart.setAttribute("role", "group");
    chart.setAttribute("aria-label", `${title ?? "Chart"}: arrow keys read it mark by mark`);
  }

  function start(chart) {
    const source = chart.dataset.source ? new Grid(chart) : new Drawn(chart);
    if (source.rows && !source.rows.length) return;
    const { line, spoken, link } = readoutOf(chart);
    const cursor = document.createElementNS(SVG, "rect");
    cursor.setAttribute("class", "cursor");
    prepare(chart);
    let at = [0, 0];
    let touched = false;

    async function show(row, column) {
      const sizes = await source.size();
      const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
      at = [within(row, sizes.length), 0];
      at[1] = within(column, sizes[at[0]]);
      const [svg, ...box] = await source.frame(...at);
      ["x", "y", "width", "height"].forEach((name, i) => cursor.setAttribute(name, box[i]));
      svg.append(cursor);
      const { name, said, url } = await source.read(...at);
      const strong = element("strong", "", name);
      spoken.replaceChildren(...(name ? [strong, ` · ${said}`] : [said]));
      link.hidden = !url;
      link.href = url;
      line.hidden = false;
    }

    // Left and right within a row, up and down between rows; in a single row both step along it.
    async function moved(key) {
      const [row, column] = at;
      const single = (await source.size()).length === 1;
      return {
        ArrowLeft: [row, column - 1],
        ArrowRight: [row, column + 1],
        ArrowUp: single ? [row, column + 1] : [row - 1, column],
        ArrowDown: single ? [row, column - 1] : [row + 1, column],
        Home: [row, 0],
        End: [row, Infinity],
      }[key];
    }

    function point(event) {
      const found = source.find(event);
      return found ? show(...found) : Promise.resolve();
    }

    chart.addEventListener("focus", () => touched || show(...at));
    chart.addEventListener("pointerdown", (event) => { touched = event.pointerType !== "mouse"; });
    chart.addEventListener("pointermove", (event) => event.pointerType === "mouse" && point(event));
    chart.addEventListener("click", async (event) => {
      if (event.target.closest("a, button, input, select")) return;
      await point(event);
      // A finger has read nothing yet: it opens by the link.
      if (!touched && source.find(event) && !link.hidden) link.click();
    });
    chart.addEventListener("keydown", async (event) => {
      if (event.target !== chart || event.ctrlKey || event.altKey || event.metaKey) return;
      touched = false;
      if (event.key === "Enter" && !link.hidden) return link.click();
      if (!/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(event.key)) return;
      event.preventDefault();
      show(...(await moved(event.key)));
    });
  }

  document.querySelectorAll("[data-chart]").forEach(start);
  for (const help of document.querySelectorAll("[data-charthelp]")) help.hidden = false;
})();
