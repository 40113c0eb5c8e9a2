"use strict";
// The page of a run: search and filter, anchors that open what they name, frames on demand.
// Text of others only ever becomes textContent.
{
  const rules = [...document.querySelectorAll(".rule")];
  const texts = new Map(rules.map(rule => [rule, rule.textContent.toLowerCase()]));
  const query = document.getElementById("q");
  const level = document.getElementById("level");
  const buttons = [...document.querySelectorAll("button[data-word]")];

  function apply() {
    const asked = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const words = buttons.filter(each => each.ariaPressed === "true").map(each => each.dataset.word);
    const wanted = rule =>
      (!words.length || words.includes(rule.dataset.verdict)
        || (rule.dataset.unexpected === "1" && words.includes("unexpected")))
      && (!level.value || level.value === rule.dataset.level)
      && asked.every(word => texts.get(rule).includes(word));
    let shown = 0;
    for (const rule of rules) {
      rule.hidden = !wanted(rule);
      shown += rule.hidden ? 0 : 1;
    }
    for (const area of document.querySelectorAll(".area")) {
      area.hidden = !area.querySelector(".rule:not([hidden])");
    }
    document.getElementById("none").hidden = shown > 0;
    document.getElementById("shown").textContent =
      shown === rules.length ? `${shown} rules` : `${shown} of ${rules.length} rules`;
  }

  function clear() {
    query.value = level.value = "";
    for (const button of buttons) button.ariaPressed = "false";
    apply();
  }

  // An address that ends in a rule's id shows that rule, whatever was filtered before.
  function follow() {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!named) return;
    if (named.hidden || named.closest("[hidden]")) clear();
    for (let at = named; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (named.id === "certificate") window.scrollTo(0, 0);
    else named.scrollIntoView();
  }

  // Transcripts are packed (gzip, base64), so that hundreds of them fit into one page.
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), each => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // A transcript has a line for each frame, with the frame's fields indented below it.
  function frame(text) {
    const [head, ...fields] = text.split("\n");
    if (!fields.length) return element("p", head);
    const box = document.createElement("details");
    box.append(element("summary", head), element("pre", fields.join("\n")));
    return box;
  }

  function element(name, text) {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  }

  const frames = JSON.parse(document.getElementById("frames").textContent);
  for (const box of document.querySelectorAll("[data-frames]")) {
    box.addEventListener("toggle", async () => {
      const text = await unpack(frames[box.dataset.frames]);
      const list = box.querySelector(".frame-list");
      list.replaceChildren(...text.trimEnd().split(/\n(?=\S)/).map(frame));
    }, { once: true });
  }

  for (const box of navigator.clipboard ? document.querySelectorAll("pre.copy") : []) {
    const text = box.textContent.trim();
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    });
    box.append(button);
  }

  query.addEventListener("input", apply);
  level.addEventListener("change", apply);
  document.getElementById("clear").addEventListener("click", clear);
  document.getElementById("print").addEventListener("click", () => window.print());
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.ariaPressed = button.ariaPressed === "true" ? "false" : "true";
      apply();
    });
  }
  document.addEventListener("keydown", event => {
    if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
      event.preventDefault();
      query.focus();
    }
  });
  window.addEventListener("hashchange", follow);
  follow();
}
