// A second click on a form that is on its way does nothing; going back makes it usable again.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-submit-once]");
  if (!form || event.defaultPrevented) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// Going back or loading again keeps the form's key, so that sending it again is the same submission.
const key = document.querySelector("form[data-submit-once] input[name=key]");
if (key && history.state?.key) key.value = history.state.key;
else if (key) history.replaceState({ ...history.state, key: key.value }, "");

// The tab that is shown stands within the line of tabs, however narrow the window.
for (const tab of document.querySelectorAll(".nav-underline .active")) {
  const line = tab.parentElement;
  line.scrollLeft = tab.offsetLeft - line.offsetLeft - (line.clientWidth - tab.offsetWidth) / 2;
}

// Polled fragments: an unchanged one is answered with 304 and left alone; hidden tabs do not ask.
const etags = new Map();
const isPoll = (elt) => elt.getAttribute("hx-trigger")?.startsWith("every");
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!isPoll(detail.elt) || !etags.has(detail.elt)) return;
  const { path, etag } = etags.get(detail.elt);
  if (path === detail.path) detail.headers["If-None-Match"] = etag;
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && isPoll(event.detail.elt)) event.preventDefault();
});
document.addEventListener("htmx:afterOnLoad", ({ detail }) => {
  const etag = detail.xhr.getResponseHeader("ETag");
  const target = detail.target.isConnected ? detail.target : document.getElementById(detail.target.id);
  if (etag && target) etags.set(target, { path: detail.requestConfig.path, etag });
});

// Say so when what is shown grows old, and stop saying it with the next answer.
const stale = document.getElementById("stale");
let lastAnswer = new Date();
function outOfDate() {
  stale.querySelector("[data-stale-since]").textContent = lastAnswer.toLocaleTimeString();
  stale.hidden = false;
}
const signedOut = document.getElementById("signed-out");
for (const name of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(name, outOfDate);
document.addEventListener("htmx:responseError", ({ detail }) => {
  if (detail.xhr.status === 401) signedOut.hidden = false;
  else if (!refusedFile(detail)) outOfDate();
});
document.addEventListener("htmx:afterOnLoad", ({ detail }) => {
  if (detail.xhr.status >= 400) return;
  lastAnswer = new Date();
  stale.hidden = signedOut.hidden = true;
});

// Who signed in again in another tab has another token than the forms of this page.
function csrfToken() {
  return /(?:^|; )(?:__Host-)?csrftoken=([^;]+)/.exec(document.cookie)?.[1];
}
document.addEventListener("submit", ({ target }) => {
  const field = target.querySelector("[name=csrfmiddlewaretoken]");
  if (field) field.value = csrfToken() ?? field.value;
});
document.addEventListener("htmx:configRequest", ({ detail: { parameters } }) => {
  const token = csrfToken();
  if (token && parameters.csrfmiddlewaretoken) parameters.csrfmiddlewaretoken = token;
});

// [data-copy="ID"] copies the text of that element; [data-fill] writes its values into the form's fields.
async function copy(button) {
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
}
function fill(values) {
  let last;
  for (const [name, value] of Object.entries(values)) {
    last = document.querySelector(`[name="${name}"]`);
    if (last) last.value = value;
  }
  last?.dispatchEvent(new Event("change", { bubbles: true }));
}
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy], [data-fill]");
  if (button?.dataset.copy) copy(button);
  if (button?.dataset.fill) fill(JSON.parse(button.dataset.fill));
});
document.addEventListener("chart-pick", (event) => fill(event.detail));

// A log stays at its end while nobody has scrolled up in it.
let following = true;
const log = () => document.querySelector("pre[data-log]");
document.addEventListener("htmx:beforeSwap", () => {
  const shown = log();
  if (shown) following = shown.scrollHeight - shown.scrollTop - shown.clientHeight < 40;
});
function showEndOfLog() {
  const shown = log();
  if (shown && following) shown.scrollTop = shown.scrollHeight;
}
document.addEventListener("htmx:afterSettle", showEndOfLog);
showEndOfLog();

// What a person opened or closed stays so when its region is drawn anew.
let opened = new Map();
function eachDetails(act) {
  const seen = {};
  for (const details of document.querySelectorAll("details")) {
    const words = details.querySelector("summary")?.textContent.trim();
    seen[words] = (seen[words] ?? 0) + 1;
    act(`${words} ${seen[words]}`, details);
  }
}
document.addEventListener("htmx:beforeSwap", () => {
  opened = new Map();
  eachDetails((name, details) => opened.set(name, details.open));
});
document.addEventListener("htmx:afterSwap", () => {
  eachDetails((name, details) => { details.open = opened.get(name) ?? details.open; });
});

// What scrolls sideways can be scrolled with the keyboard, too.
function reachScrolled() {
  for (const box of document.querySelectorAll(".table-responsive")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
window.addEventListener("resize", reachScrolled);
document.addEventListener("htmx:afterSettle", reachScrolled);
requestAnimationFrame(reachScrolled); // with the first layout, not before it

// What the portal would refuse for its size is not sent: the answer would come before the file has gone.
document.addEventListener("htmx:beforeRequest", (event) => {
  const input = event.detail.elt;
  if (!input.dataset.maxBytes) return;
  const refused = input.parentElement.querySelector("[data-refused]");
  refused.hidden = true;
  refused.classList.remove("d-block");
  const large = input.files[0]?.size > Number(input.dataset.maxBytes);
  const notice = input.parentElement.querySelector("[data-too-large]");
  notice.hidden = !large;
  notice.classList.toggle("d-block", large);
  if (!large) return;
  event.preventDefault();
  input.value = "";
});

// A file may be refused before it is read: too many at once, or no room left. The error page's words say so here.
function refusedFile({ elt, xhr }) {
  const notice = elt.parentElement?.querySelector("[data-refused]");
  if (!notice || xhr.status >= 500) return false;
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  const words = [...page.querySelectorAll("h1, h1 + p")].map((element) => element.textContent.trim());
  notice.textContent = words.map((text) => (/[.!?]$/.test(text) ? text : `${text}.`)).join(" ");
  notice.hidden = false;
  notice.classList.add("d-block");
  elt.value = "";
  return true;
}

// A file that was chosen before the page was ready, or that the browser kept, is taken up now.
document.addEventListener("htmx:load", () => {
  for (const input of document.querySelectorAll("input[type=file][hx-post]")) {
    if (input.files.length) input.dispatchEvent(new Event("change", { bubbles: true }));
  }
}, { once: true });

// What a goal needs, a deadline or a budget, stands beside it; under "More" while another goal is chosen.
// A limit that is given counts with every goal, so that it is shown there.
function placeNeeds() {
  const goal = document.getElementById("id_goal");
  for (const field of document.querySelectorAll("[data-goal]")) {
    const place = document.getElementById(field.dataset.goal === goal.value ? "goal" : "more-values");
    if (field.parentElement !== place) place.append(field);
    if (place.id === "more-values" && field.querySelector("input").value) place.closest("details").open = true;
  }
}
document.getElementById("id_goal")?.addEventListener("change", placeNeeds);
window.addEventListener("pageshow", placeNeeds);
placeNeeds();

// What the browser kept of a form that it shows again is taken up as if it had just been entered.
window.addEventListener("pageshow", ({ persisted }) => {
  const form = !persisted && document.getElementById("job-form");
  for (const name of form ? ["training_file", "validation_file", "model"] : []) {
    const field = form.elements.namedItem(name);
    const given = field.options ? field.selectedOptions[0]?.defaultSelected : field.value === field.defaultValue;
    if (field.value && !given) field.dispatchEvent(new Event("change", { bubbles: true }));
  }
});

// In one column, people see the prediction before they submit, and its reasons after the button.
const oneColumn = window.matchMedia("(max-width: 991.98px)");
function placeSubmit() {
  const submit = document.getElementById("submit-row");
  if (oneColumn.matches) document.getElementById("recommended")?.after(submit);
  else document.getElementById("job-values")?.append(submit);
}
oneColumn.addEventListener("change", placeSubmit);
placeSubmit();

// Values that the portal cannot use are told at their fields as soon as it knows, in words of its own.
function tellRefused() {
  const refused = JSON.parse(document.getElementById("refused-values")?.textContent ?? "{}");
  for (const field of document.querySelectorAll("[data-refused-now]")) if (!refused[field.id]) accept(field);
  for (const [id, messages] of Object.entries(refused)) refuse(document.getElementById(id), messages.join(" "));
}
function accept(field) {
  delete field.dataset.refusedNow;
  field.removeAttribute("aria-invalid");
  const told = document.getElementById(`${field.id}_error`);
  if (told) told.hidden = true;
}
function refuse(field, message) {
  const told = document.getElementById(`${field.id}_error`) ?? errorOf(field);
  const line = document.createElement("div");
  line.className = "invalid-feedback d-block";
  line.textContent = message;
  told.replaceChildren(line);
  told.hidden = false;
  if (!field.dataset.refusedNow) field.closest("details")?.setAttribute("open", "");
  field.dataset.refusedNow = "yes";
  field.setAttribute("aria-invalid", "true");
}
function errorOf(field) {
  const told = field.parentElement.appendChild(document.createElement("div"));
  told.id = `${field.id}_error`;
  told.setAttribute("role", "alert");
  const described = field.getAttribute("aria-describedby");
  field.setAttribute("aria-describedby", described ? `${described} ${told.id}` : told.id);
  return told;
}
// What is recommended fades as soon as a value is typed that it does not know, until it is asked for again.
const recommended = document.getElementById("recommended");
if (recommended) document.getElementById("job-form").addEventListener("input", ({ target }) => {
  if (target.type === "file") return;
  recommended.dataset.stale = "";
  if (!target.matches("select, [type=checkbox], [type=radio]")) target.form.dispatchEvent(new Event("typed"));
});
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id !== "recommended") return;
  delete target.dataset.stale;
  tellRefused();
});

// The first field that complains gets the focus; it complains until it is changed.
document.querySelector("[aria-invalid=true]")?.focus();
document.addEventListener("input", ({ target }) => {
  if (!target.hasAttribute("aria-invalid")) return;
  target.removeAttribute("aria-invalid");
  document.getElementById(`${target.id}_error`).hidden = true;
});
