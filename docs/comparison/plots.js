"use strict";
// The plots of the comparison: uPlot draws what runs.js has, lines mark when something broke for whom.
{
  const NAMES = { share: "share group", group: "consumer group", kmq: "KMQ" };
  const COLOURS = { share: "#d55e00", group: "#0072b2", kmq: "#009e73" };
  const STEP = 0.25;
  const dim = () => getComputedStyle(document.querySelector(".comparison")).color;
  const faint = "#88888844";

  const tables = {
    progress: found => {
      const at = found.progress.map((_, step) => (step + 1) * STEP);
      return [[0, ...at], [0, ...found.progress]];
    },
    // Records of a batch have one time, and a table has one row for each: so they are set apart a little.
    delays: found => [found.delays.map(([at], number) => at + number * 1e-6), found.delays.map(([, delay]) => delay)],
  };
  const words = {
    progress: { caption: "Records done, by time", unit: "" },
    delays: { caption: "How long each record took, by the time it was produced", unit: " s" },
  };

  function fault(at, colour) {
    return plot => {
      const { ctx, bbox } = plot;
      const x = plot.valToPos(at, "x", true);
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.fillStyle = ctx.strokeStyle = colour;
      ctx.textAlign = "left";
      ctx.setLineDash([6, 4]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.fillText("it breaks", x + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
      ctx.restore();
    };
  }

  function draw(box) {
    const { scene, kind } = box.dataset;
    const found = window.comparison[scene];
    const systems = Object.keys(found);
    const scattered = kind === "delays";
    const most = Math.max(...systems.map(one => Math.max(...tables[kind](found[one])[1])));
    const { caption, unit } = words[kind];
    box.replaceChildren(Object.assign(document.createElement("div"), { textContent: caption }));
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${caption}; scenario ${scene}, at most ${most.toFixed(1)}${unit}. The table has the numbers.`);
    const axis = { stroke: dim(), grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 } };
    const breaks = systems.filter(one => found[one].fault_at !== null).map(one => fault(found[one].fault_at, COLOURS[one]));
    new uPlot({
      width: box.clientWidth, height: 240,
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(0.1, high) * 1.03] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map(tick => `${tick} s`) }, { ...axis, size: 60 }],
      series: [{ label: "at", value: (_, value) => value == null ? "" : `${value.toFixed(2)} s` },
        ...systems.map(one => ({
          label: NAMES[one], stroke: COLOURS[one], width: 2, spanGaps: true,
          ...(scattered ? { paths: () => null, points: { show: true, size: 4, fill: COLOURS[one] } } : { points: { show: false } }),
          value: (_, value) => value == null ? "" : `${value}${unit}`,
        }))],
      hooks: { draw: breaks },
    }, uPlot.join(systems.map(one => tables[kind](found[one]))), box);
  }

  const boxes = [...document.querySelectorAll(".comparison")];
  const all = () => boxes.forEach(draw);
  all();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; all(); } });
  // The theme chooses its colours by an attribute, and not before the page has been read.
  new MutationObserver(all).observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
  addEventListener("load", all);
}
