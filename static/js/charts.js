// Draws every [data-chart] from the figure its address answers with, again every 3 s until it is final.
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

function draw(place, figure) {
  const look = style();
  const axis = (given) => ({ ...look.axis, ...given });
  const layout = {
    ...figure.layout,
    template: "none",
    colorway: look.lines,
    font: { color: look.color, family: look.font, size: 12 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 50, r: 10, t: 10, b: 40 },
    height: 280,
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
