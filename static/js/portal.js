// A second click on a form that is on its way does nothing; going back makes it usable again.
for (const form of document.querySelectorAll("form[data-submit-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// What people opened or scrolled stays so when a fragment is replaced by its successor.
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const log = event.target.querySelector?.("#log");
  if (log) window.foretuneLog = { open: log.open };
});
function showEndOfLog() {
  const log = document.getElementById("log");
  if (log && window.foretuneLog) log.open = window.foretuneLog.open;
  const text = log?.querySelector("pre");
  if (text) text.scrollTop = text.scrollHeight;
}
document.body.addEventListener("htmx:afterSettle", showEndOfLog);
showEndOfLog();
