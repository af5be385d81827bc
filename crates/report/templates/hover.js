// Shows the values of a plot under the pointer. They are read from the drawing, whose axes the attributes of its element describe;
// without this script the page says the same in its tables and titles.
"use strict";
(() => {
  const [left, right, top, bottom] = [40, 280, 34, 192];
  const box = document.createElement("output");
  box.className = "hover";
  box.hidden = true;
  document.body.append(box);
  const svgName = "http://www.w3.org/2000/svg";
  const cursor = document.createElementNS(svgName, "path");
  cursor.setAttribute("class", "cursor");
  const place = { time: (at) => `${at.toFixed(1)} s`, numbers: (at) => at.toFixed(0), nines: (at) => `${+(100 - 100 / 10 ** at).toFixed(4)}%` };
  const points = (line) => [...line.getAttribute("d").matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map((it) => [+it[1], +it[2]]);
  const hide = () => { box.hidden = true; cursor.remove(); };
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest("svg[data-across]")) hide(); });
  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest("svg[data-across]");
    if (!plot) return hide();
    const { low, high, length, across, unit } = plot.dataset;
    const size = plot.getBoundingClientRect();
    const x = ((event.clientX - size.left) / size.width) * 368;
    if (x < left - 6 || x > right + 6) return hide();
    const digits = Math.max(0, 2 - Math.floor(Math.log10(high - low || 1)));
    let nearest = null;
    const lines = [...plot.querySelectorAll(".course")].map((line) => {
      const found = points(line).reduce((best, it) => (!best || Math.abs(it[0] - x) < Math.abs(best[0] - x) ? it : best), null);
      if (found && (nearest === null || Math.abs(found[0] - x) < Math.abs(nearest - x))) nearest = found[0];
      return [line.parentNode.querySelector("title").textContent, found];
    });
    if (nearest === null) return hide();
    const at = ((nearest - left) / (right - left)) * length;
    const rows = lines.filter(([, it]) => it && Math.abs(it[0] - nearest) < 3).map(([name, it]) => {
      const value = +low + ((bottom - it[1]) / (bottom - top)) * (high - low);
      const above = plot.querySelector(".peak") && it[1] <= top + 0.05 ? "above " : "";
      return `${name}: ${above}${+value.toFixed(digits)} ${unit}`;
    });
    box.textContent = [place[across](at), ...rows].join("\n");
    box.hidden = false;
    box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
    box.style.top = `${Math.max(8, event.clientY - box.offsetHeight - 8)}px`;
    cursor.setAttribute("d", `M${nearest} ${top}V${bottom}`);
    plot.append(cursor);
  });
})();
