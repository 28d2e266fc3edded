// Draws every [data-chart] from the figure its address answers with, again every 3 s until it is final,
// and every [data-figure] from the JSON element of that id. Colours may be names of CSS variables.
const AGAIN_MS = 3000;

function style() {
  const css = getComputedStyle(document.body);
  const line = css.getPropertyValue("--bs-border-color");
  return {
    color: css.color,
    font: css.fontFamily,
    axis: { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true },
    lines: [css.getPropertyValue("--chart-1").trim(), css.getPropertyValue("--chart-2").trim()],
  };
}

// "var(--chart-1)" anywhere in a figure becomes the colour it stands for in the present theme.
function coloured(value, css) {
  if (typeof value === "string") {
    const name = /^var\((--[\w-]+)\)$/.exec(value)?.[1];
    return name ? css.getPropertyValue(name).trim() : value;
  }
  if (Array.isArray(value)) return value.map((entry) => coloured(entry, css));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, coloured(entry, css)]));
}

function draw(place, given) {
  const look = style();
  const figure = coloured(given, getComputedStyle(document.body));
  const axis = (given) => ({ ...look.axis, ...given });
  const layout = {
    ...figure.layout,
    template: "none",
    colorway: look.lines,
    font: { color: look.color, family: look.font, size: 12 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 50, r: 10, t: 10, b: 40 },
    height: figure.layout.height ?? 280,
    xaxis: axis(figure.layout.xaxis),
    yaxis: axis(figure.layout.yaxis),
    legend: { orientation: "h", y: 1.15 },
  };
  Plotly.react(place, figure.data, layout, { displaylogo: false, responsive: true, displayModeBar: false });
}

async function follow(place) {
  const response = await fetch(place.dataset.chart, { headers: { Accept: "application/json" } });
  const figure = response.ok ? await response.json() : null;
  if (figure) {
    place.parentElement.querySelector("[data-chart-summary]").textContent = figure.summary;
    draw(place, figure);
  }
  if (!figure?.final) setTimeout(() => follow(place).catch(() => setTimeout(() => follow(place), AGAIN_MS)), AGAIN_MS);
}

for (const place of document.querySelectorAll("[data-chart]")) follow(place);

function drawFigures() {
  for (const place of document.querySelectorAll("[data-figure]")) {
    draw(place, JSON.parse(document.getElementById(place.dataset.figure).textContent));
  }
}
drawFigures();
new MutationObserver(drawFigures).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
