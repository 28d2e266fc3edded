// Draws [data-chart] from the figure its address answers with, again every 3 s until it is final,
// and [data-chart-from] from the JSON that lies on the page under that id.
const AGAIN_MS = 3000;
const NEAR = "300px"; // a chart is drawn when it is as near as this to what the window shows

// Plotly is large, so it is fetched only when a chart is near; captions and tables do without it.
const PLOTLY = document.currentScript.dataset.plotly;
let loading;
function plotly() {
  loading ??= new Promise((loaded, failed) => {
    const script = document.createElement("script");
    script.src = PLOTLY;
    script.onload = () => loaded(window.Plotly);
    script.onerror = () => { loading = undefined; failed(new Error(`${PLOTLY} cannot be loaded`)); };
    document.head.append(script);
  });
  return loading;
}
const TABLE_ROWS = 60;

const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

// "var(--chart-1)" anywhere in a figure becomes the colour it stands for in the present theme. All other
// texts are plain: Plotly would take what stands in angle brackets, as in the name of a node, for markup.
function coloured(value, css) {
  if (typeof value === "string") {
    const name = /^var\((--[\w-]+)\)$/.exec(value)?.[1];
    return name ? css.getPropertyValue(name).trim() : value.replace(/[&<>]/g, (sign) => ESCAPED[sign]);
  }
  if (Array.isArray(value)) return value.map((entry) => coloured(entry, css));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, coloured(entry, css)]));
}

const heightOf = (figure) => figure.layout.height ?? figure.layout.template.layout.height;

// The looks come with the figure, as its template; the page lends its font.
function draw(place, given) {
  const css = getComputedStyle(document.body);
  const { data, layout } = coloured(given, css);
  layout.font = { color: css.color, family: css.fontFamily };
  layout.height = heightOf(given);
  place.style.height = `${layout.height}px`; // else a turned telephone leaves the plot over the text below it
  Plotly.react(place, data, layout, { displaylogo: false, responsive: true, displayModeBar: false });
}

// The same figure for those who do not see it: one row for each x, evenly taken where there are many.
function tabulate(box, figure) {
  const columns = figure.data.filter((trace) => Array.isArray(trace.x) && Array.isArray(trace.y));
  const xs = [...new Set(columns.flatMap((trace) => trace.x))];
  const every = Math.ceil(xs.length / TABLE_ROWS) || 1;
  const shown = xs.filter((_, n) => n % every === 0 || n === xs.length - 1);
  const values = columns.map((trace) => new Map(trace.x.map((x, n) => [x, trace.y[n]])));
  const tell = (value) => (typeof value === "number" ? +value.toPrecision(5) : value ?? "");
  const row = (cells, tag) => {
    const line = document.createElement("tr");
    for (const cell of cells) {
      const box = line.appendChild(document.createElement(tag));
      box.textContent = cell;
      if (tag === "th") box.scope = "col";
    }
    return line;
  };
  const table = document.createElement("table");
  table.className = "table table-sm mt-2 mb-0";
  const title = figure.layout.xaxis?.title?.text ?? "x";
  table.createTHead().append(row([title, ...columns.map((trace) => trace.name ?? "value")], "th"));
  table.createTBody().append(...shown.map((x) => row([tell(x), ...values.map((column) => tell(column.get(x)))], "td")));
  box.querySelector("table")?.remove();
  box.append(table);
}

const figures = new Map();
function show(place, figure) {
  const frame = place.closest("figure") ?? place.parentElement;
  const summary = frame.querySelector("[data-chart-summary]");
  if (summary) summary.textContent = figure.summary;
  const box = frame.querySelector("[data-chart-table]");
  const empty = !figure.data.some((trace) => trace.x?.length);
  place.hidden = empty;
  if (box) box.hidden = empty;
  if (empty) return; // the summary says so; bare axes would say nothing
  if (box) tabulate(box, figure);
  figures.set(place, figure);
  place.style.height = `${heightOf(figure)}px`; // nothing jumps when it is drawn
  if (place.dataset.near) drawNow(place);
  else near.observe(place);
}

const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    target.dataset.near = "yes";
    drawNow(target);
  }
}, { rootMargin: NEAR });

// The newest figure of the place: another one may have come while Plotly was on its way.
async function drawNow(place) {
  try {
    await plotly();
  } catch {
    setTimeout(() => drawNow(place), AGAIN_MS);
    return;
  }
  if (!place.isConnected || !figures.has(place)) return;
  draw(place, figures.get(place));
  if (!place.dataset.chartFrom || place.dataset.picks) return;
  place.dataset.picks = "yes";
  place.on("plotly_click", ({ points: [point] }) => {
    const pick = point.data.customdata?.[point.pointNumber];
    if (pick) place.dispatchEvent(new CustomEvent("chart-pick", { detail: pick, bubbles: true }));
  });
}

async function follow(place, etag) {
  if (!place.isConnected) return;
  const again = (known) => setTimeout(() => follow(place, known).catch(() => again(known)), AGAIN_MS);
  if (document.hidden && figures.has(place)) return again(etag);
  const headers = { Accept: "application/json", ...(etag && { "If-None-Match": etag }) };
  const response = await fetch(place.dataset.chart, { headers, cache: "no-store" });
  if (response.status === 200) {
    const figure = await response.json();
    show(place, figure);
    if (figure.final) return;
  }
  again(response.headers.get("ETag") ?? etag);
}

// A point with a `pick` can be clicked: portal.js puts its values into the form.
function showFromPage(place) {
  show(place, JSON.parse(document.getElementById(place.dataset.chartFrom).textContent));
}

function start() {
  for (const place of document.querySelectorAll("[data-chart]:not([data-drawn]), [data-chart-from]:not([data-drawn])")) {
    place.dataset.drawn = "yes";
    if (place.dataset.chart) follow(place);
    else showFromPage(place);
  }
  for (const place of figures.keys()) {
    if (place.isConnected) continue;
    near.unobserve(place);
    figures.delete(place);
  }
}
document.addEventListener("htmx:afterSettle", start);
document.addEventListener("theme-changed", () => { for (const place of figures.keys()) if (place.dataset.near) drawNow(place); });
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => setTimeout(start));
else start();
