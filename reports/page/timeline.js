"use strict";
// The timeline of a run: uPlot draws, faults are bands, witnesses are lines, all plots zoom together.
{
  const runs = JSON.parse(document.getElementById("timelines").textContent);
  const SERIES = 6;

  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const last = text => text.split("-").slice(-1)[0];

  // Groups and topics have long names to be unlike all others; people need what tells them apart.
  function short(names) {
    const words = names.map(name => name.split("-"));
    const common = words[0].findIndex((word, at) => words.some(each => each[at] !== word));
    if (common < 0) return names;
    const firsts = words.map(each => each[common] ?? "");
    return new Set(firsts).size === names.length ? firsts : words.map(each => each.slice(common).join("-"));
  }

  const decades = (_, ticks) => ticks.map(tick => Number.isInteger(Math.log10(tick)) ? tick : null);

  // What each plot shows: a caption, columns (label and values) and the times they belong to.
  function plots(drawn, group) {
    const times = Array.from({ length: drawn.bins }, (_, at) => at * drawn.step);
    const own = drawn.groups.find(each => each.group === group);
    const names = short(drawn.groups.map(each => each.group));
    const partitions = drawn.partitions.filter(each => each.group === group);
    const seen = [...new Set(partitions.flatMap(each => each.seen.map(([at]) => at)))].sort((a, b) => a - b);
    const shown = field => partitions.map(each => {
      const found = new Map(each.seen.map(row => [row[0], row[field]]));
      return ["partition " + last(each.partition), seen.map(at => found.get(at) ?? null)];
    });
    return [
      { caption: "Records per second", times, columns: [["produced", drawn.produced], ["acquired", own.acquired],
        ["finished", own.finished], ["acquired again", own.again]] },
      { caption: "Response to an acknowledgement, ms", times, log: true, columns: [["median", drawn.response_ms.median], ["99 %", drawn.response_ms.p99]] },
      { caption: "In flight", times, columns: drawn.groups.map((each, at) => [names[at], each.in_flight]) },
      { caption: "Start offset (SPSO)", times: seen, columns: shown(1) },
      { caption: "Lag", times: seen, columns: shown(2) },
    ].filter(plot => plot.times.length && plot.columns.length);
  }

  // Each name goes into the first line that has room at its fault; the table below has those of all.
  function names(plot, faults) {
    const { ctx, bbox } = plot;
    const gap = 4 * devicePixelRatio;
    const line = 13 * devicePixelRatio;
    const filled = [0, 0, 0, 0, 0];
    ctx.fillStyle = colour("--fg");
    ctx.textAlign = "left";
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    for (const fault of faults) {
      const width = ctx.measureText(fault.kind).width;
      const [since, until] = [fault.since, fault.until].map(at => plot.valToPos(at, "x", true));
      if (until < bbox.left || since > bbox.left + bbox.width) continue;
      const from = Math.min(Math.max(since, bbox.left) + gap, bbox.left + bbox.width - width);
      const free = filled.findIndex(end => end < from);
      if (free < 0) continue;
      filled[free] = from + width + gap;
      ctx.fillText(fault.kind, from, bbox.top + (free + 1) * line);
    }
  }

  // Faults behind the lines, witnesses before them; the first plot names the faults.
  function background(drawn, named) {
    return plot => {
      const { ctx, bbox } = plot;
      const scale = devicePixelRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.globalAlpha = 0.16;
      ctx.fillStyle = colour("--unknown");
      for (const fault of drawn.faults) {
        const from = plot.valToPos(fault.since, "x", true);
        ctx.fillRect(from, bbox.top, Math.max(2, plot.valToPos(fault.until, "x", true) - from), bbox.height);
      }
      ctx.globalAlpha = 1;
      if (named) names(plot, [...drawn.faults].sort((one, other) => one.since - other.since));
      ctx.fillStyle = colour("--fail");
      for (const mark of drawn.marks.filter(each => each.at !== null)) {
        ctx.fillRect(plot.valToPos(mark.at, "x", true) - scale, bbox.top, 2 * scale, bbox.height);
      }
      ctx.restore();
    };
  }

  function draw(box, drawn, group) {
    const made = [];
    let zooming = false;
    function zoom(plot, key) {
      if (key !== "x" || zooming) return;
      zooming = true;
      const { min, max } = plot.scales.x;
      box.dataset.shown = [min, max].map(at => at.toFixed(1)).join(" to ");
      for (const other of made) if (other !== plot) other.setScale("x", { min, max });
      zooming = false;
    }
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const whole = [0, drawn.bins * drawn.step];
    plots(drawn, group).forEach(({ caption, times, columns, log }, at) => {
      const figure = document.createElement("figure");
      figure.append(Object.assign(document.createElement("figcaption"), { textContent: caption }));
      const inside = document.createElement("div");
      inside.setAttribute("role", "img");
      const most = columns.reduce((most, [, values]) => values.reduce((a, b) => Math.max(a, b ?? 0), most), 0);
      inside.setAttribute("aria-label", `${caption} over ${Math.round(whole[1])} seconds, at most ${Math.round(most)}`);
      figure.append(inside);
      box.append(figure);
      const bounds = log ? {} : { range: (_, low, high) => [caption.startsWith("Start") ? low ?? 0 : 0, Math.max(1, high ?? 1) * 1.02] };
      const options = {
        width: inside.clientWidth, height: at === 0 ? 210 : 150,
        cursor: { sync: { key: box.dataset.run }, drag: { x: true, y: false } },
        scales: { x: { time: false }, y: { distr: log ? 3 : 1, ...bounds } },
        axes: [{ ...axis, size: 32, values: (_, ticks) => ticks.map(tick => `${tick} s`) },
          { ...axis, size: 64, ...(log ? { grid: { ...axis.grid, filter: decades }, ticks: { ...axis.ticks, filter: decades } } : {}) }],
        series: [{ label: "at", value: (_, value) => value == null ? "" : `${value.toFixed(1)} s` },
          ...columns.map(([label], number) => ({
            label, stroke: colour(`--s${number % SERIES}`), width: 1.5, spanGaps: true, points: { show: times.length < 80, size: 4 },
          }))],
        hooks: { drawClear: [background(drawn, at === 0)], setScale: [zoom] },
      };
      const data = [times, ...columns.map(([, values]) => log ? values.map(value => value > 0 ? value : null) : values)];
      const plot = new uPlot(options, data, inside);
      made.push(plot);
    });
    const show = (min, max) => made[0]?.setScale("x", { min: Math.max(whole[0], min), max: Math.min(whole[1], max) });
    show(...whole);
    return { show: (min, max) => show(min ?? whole[0], max ?? whole[1]), end: () => {
      for (const plot of made) plot.destroy();
      for (const figure of box.querySelectorAll("figure")) figure.remove();
    } };
  }

  function begin(box) {
    const drawn = runs[Number(box.dataset.run)];
    const choice = box.querySelector("select");
    const groups = drawn.groups.map(each => each.group);
    short(groups).forEach((name, at) => choice.append(new Option(name, groups[at])));
    let shown = draw(box, drawn, choice.value);
    const again = () => { shown.end(); shown = draw(box, drawn, choice.value); };
    choice.addEventListener("change", again);
    box.querySelector(".whole").addEventListener("click", () => shown.show());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    let width = box.clientWidth;
    new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; again(); } }).observe(box);
    for (const button of box.closest(".run").querySelectorAll("button[data-from]")) {
      button.addEventListener("click", () => {
        const [from, to] = [Number(button.dataset.from), Number(button.dataset.to)];
        shown.show(from - 1, to + 1);
        box.scrollIntoView({ block: "nearest" });
      });
    }
  }

  // A page may have dozens of runs: each is drawn when it comes into sight.
  const sight = new IntersectionObserver(entries => {
    for (const entry of entries.filter(each => each.isIntersecting)) {
      sight.unobserve(entry.target);
      begin(entry.target);
    }
  }, { rootMargin: "400px" });
  for (const box of document.querySelectorAll(".plots")) sight.observe(box);
}
