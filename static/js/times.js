// The portal reads here in which zone to tell times, unless the person has chosen one.
// Asking for it costs the browser tens of milliseconds, so that it waits until the page can be used.
function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || document.cookie.split("; ").includes(`time_zone=${zone}`)) return;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `time_zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
}
if (document.readyState === "complete") tellZone();
else window.addEventListener("load", () => setTimeout(tellZone));

// Relative times go on without being asked for.
const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
function inWords(seconds) {
  for (const [size, unit, smaller, smallerUnit] of UNITS) {
    if (seconds < size) continue;
    const rest = Math.floor((seconds % size) / smaller);
    return `${Math.floor(seconds / size)} ${unit}` + (rest ? ` ${rest} ${smallerUnit}` : "");
  }
  return `${Math.round(seconds)} s`;
}
function tellTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const passed = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const words = inWords(Math.abs(passed));
    time.textContent = Math.abs(passed) < 5 ? "just now" : passed > 0 ? `${words} ago` : `in ${words}`;
  }
}
setInterval(tellTimes, 5000);

// A time that is pressed tells the exact one beside it until it is pressed again; parts fetched anew as well.
const exactly = new Set();
const momentOf = (button) => button.querySelector("time").dateTime;
function tellExactly() {
  for (const button of document.querySelectorAll("button.moment")) {
    const open = exactly.has(momentOf(button));
    button.setAttribute("aria-expanded", open);
    button.querySelector("span").hidden = !open;
  }
}
document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button.moment");
  if (!button) return;
  if (!exactly.delete(momentOf(button))) exactly.add(momentOf(button));
  tellExactly();
});
document.addEventListener("htmx:afterSettle", tellExactly);

// A time keeps the keyboard's focus while its part of the page is fetched anew.
const moments = () => [...document.querySelectorAll("button.moment")];
let focused = -1;
document.addEventListener("htmx:beforeSwap", () => { focused = moments().indexOf(document.activeElement); });
document.addEventListener("htmx:afterSettle", () => {
  if (focused >= 0 && document.activeElement === document.body) moments()[focused]?.focus({ preventScroll: true });
});
