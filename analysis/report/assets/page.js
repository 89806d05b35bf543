// What the page does beyond being read: sorts and filters tables, copies commands, draws the threads over time.
// Names of the traced program become text nodes, never HTML.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Sections.
  for (const heading of document.querySelectorAll("main h2")) {
    byId("nav").append(
      made("a", { href: `#${heading.parentElement.id}`, textContent: heading.textContent }),
    );
  }

  // Tables.
  const valueOf = (cell) => {
    const holder = cell.matches("[data-value]") ? cell : cell.querySelector("[data-value]");
    return holder ? Number(holder.dataset.value) : undefined;
  };
  function sort(table, column, header) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const isNumeric = rows.some((row) => valueOf(row.cells[column]) !== undefined);
    const before = header.getAttribute("aria-sort");
    const descends = before ? before === "ascending" : isNumeric;
    const keys = new Map(
      rows.map((row) => [
        row,
        isNumeric ? (valueOf(row.cells[column]) ?? -1) : row.cells[column].textContent,
      ]),
    );
    const order = (a, b) =>
      isNumeric ? keys.get(a) - keys.get(b) : keys.get(a).localeCompare(keys.get(b));
    rows.sort((a, b) => (descends ? order(b, a) : order(a, b)));
    body.append(...rows);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descends ? "descending" : "ascending");
  }
  for (const table of document.querySelectorAll("table.sorts")) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const first = table.tBodies[0].rows[0]?.cells[column];
      if (first?.querySelector(".bar")) return;
      const button = made("button", { type: "button", textContent: header.textContent });
      button.addEventListener("click", () => sort(table, column, header));
      header.replaceChildren(button);
    });
    if (table.tBodies[0].rows.length > 12) {
      const input = made("input", { type: "search" });
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase();
        for (const row of table.tBodies[0].rows) {
          row.hidden = !row.textContent.toLowerCase().includes(wanted);
        }
      });
      table.parentElement.before(made("label", { className: "filter" }, "filter ", input));
    }
  }

  // Commands.
  for (const command of document.querySelectorAll("code.copy")) {
    const button = made("button", { type: "button", className: "copy-button", textContent: "copy" });
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(command);
        button.textContent = "selected";
      }
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
    command.after(button);
  }

  // Printing shows all.
  const redraws = [];
  const redraw = (width) => redraws.forEach((draw) => draw(width));
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
    redraw(680);
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());

  function time(ns) {
    const units = [
      [1e9, "s"],
      [1e6, "ms"],
      [1e3, "µs"],
    ];
    const [unit, name] = units.find(([unit]) => Math.abs(ns) >= unit) ?? [1, "ns"];
    return `${Number((ns / unit).toPrecision(4))} ${name}`;
  }

  const axis = (more) => ({
    stroke: () => colour("--soft"),
    grid: { stroke: () => colour("--line"), width: 1 },
    ticks: { stroke: () => colour("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
    ...more,
  });

  // Scaling.
  const scaling = data.scaling?.filter((column) => column.speed_up !== null);
  if (scaling?.length > 1) {
    const holder = byId("scaling-chart");
    const threads = scaling.map((column) => column.threads);
    const line = (label, stroke, dash) => ({ label, stroke, width: 2, dash, points: { size: 8 } });
    const chart = new uPlot(
      {
        width: holder.clientWidth,
        height: 260,
        scales: { x: { time: false } },
        axes: [axis({ label: "threads" }), axis({ label: "speed-up" })],
        series: [
          { label: "threads" },
          line("speed-up", "#0072b2"),
          line("ideal", "#7f7f7f", [5, 5]),
        ],
      },
      [threads, scaling.map((column) => column.speed_up), threads.map((n) => n / threads[0])],
      holder,
    );
    redraws.push((width) => chart.setSize({ width: width ?? holder.clientWidth, height: 260 }));
  }

  // Time steps: the words of a column, where the pointer is on it or the slider is moved to it.
  const chart = byId("steps-chart");
  if (chart) {
    const columns = [...chart.querySelectorAll("rect")];
    const slider = byId("step-choice").querySelector("input");
    const choose = (column) => {
      for (const other of columns) other.classList.toggle("chosen", other === column);
      const words = column.textContent;
      slider.value = columns.indexOf(column);
      slider.setAttribute("aria-valuetext", words);
      byId("step").textContent = words;
    };
    byId("step-choice").hidden = false;
    slider.addEventListener("input", () => choose(columns[slider.value]));
    chart.addEventListener("pointerover", (event) => event.target.matches("rect") && choose(event.target));
  }

  // Functions: a tree of frames, each at its place. Without this script it is there, but does not move.
  const flame = byId("flame");
  if (flame) {
    const frames = [...flame.children];
    const levelOf = (frame) => Number(frame.getAttribute("aria-level"));
    const spanOf = (frame) => {
      const from = Number(frame.dataset.from);
      return [from, from + Number(frame.dataset.ns)];
    };
    const isInside = ([from, to], [outerFrom, outerTo]) => from >= outerFrom && to <= outerTo;
    let current = frames[0];
    const say = (frame) => (byId("frame").textContent = frame.getAttribute("aria-label"));
    const show = (frame) => {
      const outer = spanOf(frame);
      const whole = outer[1] - outer[0] || 1;
      for (const other of frames) {
        const span = spanOf(other);
        const isAround = levelOf(other) <= levelOf(frame) && isInside(outer, span);
        other.hidden = !isAround && (!isInside(span, outer) || levelOf(other) < levelOf(frame));
        const [from, to] = isAround ? outer : span;
        other.style.left = `${((from - outer[0]) / whole) * 100}%`;
        other.style.width = `${((to - from) / whole) * 100}%`;
      }
      byId("flame-controls").hidden = frame === frames[0];
      narrow();
    };
    // What has no room for a letter has no text.
    const narrow = () => {
      const widths = frames.map((frame) => frame.offsetWidth);
      frames.forEach((frame, index) => frame.classList.toggle("narrow", widths[index] < 18));
    };
    const goTo = (frame) => {
      if (!frame) return;
      current.tabIndex = -1;
      current = frame;
      current.tabIndex = 0;
      current.focus();
    };
    const drawn = () => frames.filter((frame) => !frame.hidden);
    // Frames come in the order of a walk: callers before what they call.
    const near = (step, isWanted, isEnd) => {
      const all = drawn();
      for (let at = all.indexOf(current) + step; all[at]; at += step) {
        if (isEnd(levelOf(all[at]))) return isWanted(levelOf(all[at])) ? all[at] : undefined;
      }
      return undefined;
    };
    const sibling = (step) => {
      const level = levelOf(current);
      return near(step, (other) => other === level, (other) => other <= level);
    };
    const moves = {
      ArrowUp: () => goTo(near(-1, () => true, (other) => other < levelOf(current))),
      ArrowDown: () => goTo(near(1, (other) => other > levelOf(current), () => true)),
      ArrowLeft: () => goTo(sibling(-1)),
      ArrowRight: () => goTo(sibling(1)),
      Home: () => goTo(frames[0]),
      Enter: () => show(current),
      " ": () => show(current),
      Escape: () => show(frames[0]),
      0: () => show(frames[0]),
    };
    flame.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
    flame.addEventListener("focusin", (event) => say(event.target));
    flame.addEventListener("pointerover", (event) => event.target !== flame && say(event.target));
    flame.addEventListener("click", (event) => {
      if (event.target === flame) return;
      goTo(event.target);
      show(event.target);
    });
    byId("flame-controls").addEventListener("click", () => {
      show(frames[0]);
      goTo(frames[0]);
    });
    redraws.push(narrow);
    addEventListener("resize", narrow);
    narrow();
  }

  // Threads over time.
  const picture = data.picture;
  const groups = picture.groups;
  const planeCount = groups.length + 1;
  const bins = picture.bins;

  async function inflated(text) {
    const letters = atob(text);
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function timeline() {
    if (!picture.planes || picture.rows.length === 0 || bins === 0) {
      byId("moment").textContent = "There is nothing to draw.";
      return;
    }
    const planes = await inflated(picture.planes);
    const share = (row, group, bin) => planes[(row * planeCount + group) * bins + bin];
    const placeOf = (row, bin) => planes[(row * planeCount + groups.length) * bins + bin];
    const rows = picture.rows;
    // Devices and counters, below the threads.
    const levels = picture.levels;
    const levelOf = (level, bin) =>
      planes[(rows.length * planeCount + level) * bins + bin] / 255;
    const laneCount = rows.length + levels.length;
    const lanes = byId("lanes");
    const load = byId("load");
    const canvas = made("canvas");
    canvas.setAttribute("aria-hidden", "true");
    const mark = made("div", { className: "select" });
    mark.hidden = true;
    lanes.append(canvas, mark);
    lanes.hidden = false;
    byId("controls").hidden = false;

    // Times are in nanoseconds from the first process's begin.
    const whole = picture.end - picture.begin;
    const start = picture.first - picture.begin;
    const least = Math.min(whole, picture.width * 8);
    let view = [0, whole];
    let at = { row: 0, bin: 0 };
    let printed;
    const width = () => printed ?? lanes.clientWidth;
    const labels = () => (width() < 600 ? 96 : 150);
    const rowHeight = rows.length <= 16 ? 22 : rows.length <= 64 ? 14 : rows.length <= 160 ? 8 : 4;
    const LEVEL_HEIGHT = 26;
    const topOf = (lane) =>
      Math.min(lane, rows.length) * rowHeight + Math.max(0, lane - rows.length) * LEVEL_HEIGHT;
    const laneAt = (y) => {
      const below = y - topOf(rows.length);
      const lane = below < 0 ? y / rowHeight : rows.length + below / LEVEL_HEIGHT;
      return Math.min(laneCount - 1, Math.max(0, Math.floor(lane)));
    };
    const binOf = (t) => Math.min(bins - 1, Math.max(0, Math.floor((t - start) / picture.width)));
    const timeOf = (x) => view[0] + ((x - labels()) / (width() - labels())) * (view[1] - view[0]);

    const titleOf = (level) => `${level.unit} ${level.name}`;
    const amount = (value, unit) => {
      const rounded = (number) => Number(number.toPrecision(3)).toLocaleString("en");
      if (unit !== "bytes") return `${rounded(value)} ${unit}`;
      const units = [
        [1e9, "GB"],
        [1e6, "MB"],
        [1e3, "kB"],
      ];
      const [size, name] = units.find(([size]) => value >= size) ?? [1, "bytes"];
      return `${rounded(value / size)} ${name}`;
    };

    function draw() {
      const scale = devicePixelRatio || 1;
      const [wide, high] = [Math.round(width() * scale), Math.round(topOf(laneCount) * scale)];
      canvas.width = wide;
      canvas.height = high;
      canvas.style.width = "100%";
      canvas.style.height = `${topOf(laneCount)}px`;
      const context = canvas.getContext("2d");
      context.fillStyle = colour("--ground");
      context.fillRect(0, 0, wide, high);
      const left = Math.round(labels() * scale);
      const columns = wide - left;
      if (columns <= 0) return;
      const wordOf = ({ colour: hex }) => {
        const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
        return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
      };
      const words = new Uint32Array(groups.map(wordOf));
      const image = context.createImageData(columns, high);
      const pixels = new Uint32Array(image.data.buffer);
      const sums = new Float64Array(groups.length);
      for (let row = 0; row < rows.length; row++) {
        const top = Math.round(row * rowHeight * scale);
        const bottom = Math.round((row + 1) * rowHeight * scale) - Math.max(1, Math.round(scale));
        for (let x = 0; x < columns; x++) {
          const t = view[0] + (x / columns) * (view[1] - view[0]);
          const until = view[0] + ((x + 1) / columns) * (view[1] - view[0]);
          const first = binOf(t);
          const last = Math.max(first, binOf(until) - 1);
          sums.fill(0);
          let total = 0;
          for (let bin = first; bin <= last; bin++) {
            for (let group = 0; group < groups.length; group++) {
              const part = share(row, group, bin);
              sums[group] += part;
              total += part;
            }
          }
          if (total === 0) continue;
          // Useful work lies at the bottom.
          let y = bottom;
          let sum = 0;
          for (let group = 0; group < groups.length; group++) {
            sum += sums[group];
            const to = Math.round(bottom - ((bottom - top) * sum) / total);
            for (; y > to; y--) pixels[(y - 1) * columns + x] = words[group];
          }
        }
      }
      const word = wordOf(groups.find(({ key }) => key === "runtime"));
      for (let level = 0; level < levels.length; level++) {
        const top = Math.round((topOf(rows.length + level) + 4) * scale);
        const bottom = Math.round(topOf(rows.length + level + 1) * scale) - 1;
        for (let x = 0; x < columns; x++) {
          const first = binOf(view[0] + (x / columns) * (view[1] - view[0]));
          const until = binOf(view[0] + ((x + 1) / columns) * (view[1] - view[0]));
          let most = 0;
          for (let bin = first; bin <= Math.max(first, until - 1); bin++) {
            most = Math.max(most, levelOf(level, bin));
          }
          const to = Math.round(bottom - (bottom - top) * most);
          for (let y = bottom; y > to; y--) pixels[(y - 1) * columns + x] = word;
        }
      }
      context.putImageData(image, left, 0);
      context.fillStyle = colour("--text");
      context.font = `${Math.min(12, Math.max(9, rowHeight - 2)) * scale}px system-ui, sans-serif`;
      context.textBaseline = "middle";
      const label = (text, y) => {
        // Names differ at their ends, so long ones lose their middle.
        let shown = text;
        for (let kept = text.length - 1; kept > 1 && context.measureText(shown).width > left - 8 * scale; kept--) {
          shown = `${text.slice(0, kept >> 1)}\u2026${text.slice(text.length - ((kept + 1) >> 1))}`;
        }
        context.fillText(shown, 4 * scale, y);
      };
      const every = Math.ceil(11 / rowHeight);
      for (let row = 0; row < rows.length; row += every) {
        const y = (row + every / 2) * rowHeight * scale;
        const previous = row >= every ? rows[row - every].process : undefined;
        const several = rows.some((other) => other.process !== rows[0].process);
        const name =
          several && rows[row].process !== previous ? rows[row].process : rows[row].name;
        label(name, y);
      }
      context.font = `${11 * scale}px system-ui, sans-serif`;
      for (let level = 0; level < levels.length; level++) {
        label(titleOf(levels[level]), (topOf(rows.length + level) + LEVEL_HEIGHT / 2) * scale);
      }
    }

    // How many threads did what, above the threads.
    const times = Array.from({ length: bins }, (_, bin) => (start + bin * picture.width) / 1e9);
    const stacked = [];
    const upto = new Float64Array(bins);
    for (let group = 0; group < groups.length; group++) {
      for (let bin = 0; bin < bins; bin++) {
        for (let row = 0; row < rows.length; row++) {
          upto[bin] += (share(row, group, bin) / 255) * rows[row].threads;
        }
      }
      stacked.unshift({ group: groups[group], values: Array.from(upto) });
    }
    const present = stacked.filter(
      ({ values }, index) =>
        index === stacked.length - 1 ||
        values.some((value, bin) => value - stacked[index + 1].values[bin] > 1e-9),
    );
    // Words that would not fit at the right end are left out.
    const words = (plot, ticks) => {
      const end = view[1] - (view[1] - view[0]) * (30 / Math.max(60, width() - labels()));
      return ticks.map((tick) => (tick * 1e9 > end ? "" : time(tick * 1e9)));
    };
    const LABEL = 18;
    const chart = new uPlot(
      {
        width: width(),
        height: 170,
        legend: { show: false },
        padding: [8, 0, 0, 0],
        cursor: { y: false, drag: { x: true, y: false } },
        scales: { x: { time: false, range: () => view.map((t) => t / 1e9) }, y: { range: [0, null] } },
        axes: [
          axis({ values: words, space: 70 }),
          axis({ size: () => labels() - LABEL, label: "threads", labelSize: LABEL }),
        ],
        series: [
          {},
          ...present.map(({ group }) => ({
            label: group.label,
            fill: group.colour,
            width: 0,
            points: { show: false },
            paths: uPlot.paths.stepped({ align: 1 }),
          })),
        ],
        hooks: {
          setSelect: [
            (plot) => {
              const { left, width: wide } = plot.select;
              if (wide < 3) return;
              const from = plot.posToVal(left, "x") * 1e9;
              const to = plot.posToVal(left + wide, "x") * 1e9;
              plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              show(from, to);
            },
          ],
          setCursor: [
            (plot) => {
              if (plot.cursor.left >= 0 && plot.cursor.left !== null) {
                describeAll(binOf(plot.posToVal(plot.cursor.left, "x") * 1e9));
              }
            },
          ],
        },
      },
      [times, ...present.map(({ values }) => values)],
      load,
    );
    load.addEventListener("dblclick", () => show(0, whole));

    function show(from, to) {
      const length = Math.min(whole, Math.max(least, to - from));
      const begin = Math.min(Math.max(0, (from + to - length) / 2), whole - length);
      view = [begin, begin + length];
      chart.setData(chart.data, true);
      draw();
      const isPart = length < whole;
      byId("window").hidden = !isPart;
      const edge = (t) => Math.max(0, Math.round(picture.begin + t));
      byId("window-command").textContent =
        `${data.view} --window ${edge(view[0])}ns..${edge(view[1])}ns`;
      lanes.dataset.from = String(Math.round(view[0]));
      lanes.dataset.to = String(Math.round(view[1]));
    }

    const zoom = (factor, middle = (view[0] + view[1]) / 2) => {
      const [from, to] = view;
      show(middle - (middle - from) * factor, middle + (to - middle) * factor);
    };
    const pan = (part) => {
      const step = (view[1] - view[0]) * part;
      const inside = Math.min(Math.max(step, -view[0]), whole - view[1]);
      show(view[0] + inside, view[1] + inside);
    };
    const actions = {
      in: () => zoom(0.5),
      out: () => zoom(2),
      left: () => pan(-0.25),
      right: () => pan(0.25),
      all: () => show(0, whole),
    };
    byId("controls").addEventListener("click", (event) => actions[event.target.dataset.do]?.());

    function says(title, bin, words) {
      const from = Math.max(0, start + bin * picture.width);
      const to = Math.min(whole, start + (bin + 1) * picture.width);
      byId("moment").replaceChildren(
        made("b", { textContent: title }),
        ` from ${time(from)} to ${time(to)}: ${words}`,
      );
    }
    function saysParts(title, bin, parts, place) {
      const listed = parts
        .filter(([part]) => part >= 0.005)
        .sort((a, b) => b[0] - a[0])
        .map(([part, label]) => `${Math.round(part * 100)} % ${label}`);
      const words = listed.length > 0 ? listed.join(", ") : "its process did not run";
      says(title, bin, `${words}${place ? `; mostly in ${place}` : ""}`);
    }
    function describe({ row, bin }) {
      at = { row, bin };
      if (row >= rows.length) {
        describeLevel(row - rows.length, bin);
        return;
      }
      const of = rows[row];
      const several = rows.some((other) => other.process !== rows[0].process);
      const parts = groups.map((group, index) => [share(row, index, bin) / 255, group.label]);
      const place = picture.names[placeOf(row, bin) - 1];
      saysParts(several ? `${of.process}, ${of.name}` : of.name, bin, parts, place);
    }
    function describeLevel(index, bin) {
      const level = levels[index];
      const value = levelOf(index, bin) * level.most;
      const process = rows.some((row) => row.process !== level.process) ? `${level.process}, ` : "";
      const [mean, most] = [value, level.most].map((number) => amount(number, level.unit));
      says(`${process}${titleOf(level)}`, bin, `${mean} on average; at most ${most}`);
    }
    function describeAll(bin) {
      const threads = rows.reduce((sum, row) => sum + row.threads, 0);
      const parts = groups.map((group, index) => {
        const sum = rows.reduce((sum, { threads }, row) => sum + share(row, index, bin) * threads, 0);
        return [sum / 255 / threads, group.label];
      });
      saysParts("all threads", bin, parts);
    }

    const pointed = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, row: laneAt(event.clientY - box.top) };
    };
    let dragged;
    canvas.addEventListener("pointerdown", (event) => {
      const { x } = pointed(event);
      if (event.button !== 0 || x < labels()) return;
      dragged = { x, isPan: event.shiftKey, view: [...view] };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const { x, row } = pointed(event);
      if (dragged?.isPan) {
        const moved = ((dragged.x - x) / (width() - labels())) * (dragged.view[1] - dragged.view[0]);
        const inside = Math.min(Math.max(moved, -dragged.view[0]), whole - dragged.view[1]);
        show(dragged.view[0] + inside, dragged.view[1] + inside);
      } else if (dragged) {
        const from = Math.max(labels(), Math.min(dragged.x, x));
        mark.hidden = false;
        mark.style.left = `${from}px`;
        mark.style.width = `${Math.max(dragged.x, x) - from}px`;
        mark.style.height = canvas.style.height;
      }
      if (x >= labels()) describe({ row, bin: binOf(timeOf(x)) });
    });
    canvas.addEventListener("pointerup", (event) => {
      const { x } = pointed(event);
      const from = dragged;
      dragged = undefined;
      mark.hidden = true;
      if (from && !from.isPan && Math.abs(x - from.x) > 4) {
        const ends = [from.x, Math.max(labels(), x)].map(timeOf);
        show(Math.min(...ends), Math.max(...ends));
      }
    });
    canvas.addEventListener("pointercancel", () => {
      dragged = undefined;
      mark.hidden = true;
    });
    canvas.addEventListener("dblclick", () => show(0, whole));
    // The wheel alone scrolls the page.
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(event.deltaY > 0 ? 1.25 : 0.8, timeOf(pointed(event).x));
      },
      { passive: false },
    );
    lanes.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = Math.max(1, Math.round((view[1] - view[0]) / picture.width / 50));
      const move = (rowsDown, binsOn) => {
        const bin = Math.min(bins - 1, Math.max(0, at.bin + binsOn));
        describe({ row: Math.min(laneCount - 1, Math.max(0, at.row + rowsDown)), bin });
        const t = start + bin * picture.width;
        if (t < view[0]) pan((t - view[0]) / (view[1] - view[0]) - 0.1);
        if (t >= view[1]) pan((t - view[1]) / (view[1] - view[0]) + 0.1);
      };
      const keys = {
        ArrowLeft: () => (event.shiftKey ? actions.left() : move(0, -step)),
        ArrowRight: () => (event.shiftKey ? actions.right() : move(0, step)),
        ArrowUp: () => move(-1, 0),
        ArrowDown: () => move(1, 0),
        Home: () => move(0, -bins),
        End: () => move(0, bins),
        "+": () => zoom(0.5, Math.max(view[0], Math.min(view[1], start + at.bin * picture.width))),
        "=": () => zoom(0.5),
        "-": actions.out,
        0: actions.all,
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });

    const resize = (wide) => {
      printed = wide;
      chart.setSize({ width: width(), height: 170 });
      draw();
    };
    redraws.push(resize);
    let known = lanes.clientWidth;
    new ResizeObserver(() => {
      if (lanes.clientWidth === known) return;
      known = lanes.clientWidth;
      resize(printed);
    }).observe(lanes);
    show(0, whole);
    document.documentElement.dataset.ready = "yes";
  }

  timeline().catch((error) => {
    byId("moment").textContent = `The timeline cannot be drawn by this browser: ${error.message}`;
  });
})();
