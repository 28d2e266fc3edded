// Say it in a sentence: values go into fields that nobody has typed into, each with a mark that says why.
const jobForm = document.getElementById("job-form");
const inputOf = (name) => jobForm.elements.namedItem(name);
const STANDARD = { goal: "balanced" }; // what an untouched field holds

function isTyped(field, name) {
  if (field.dataset.said !== undefined) return field.value !== field.dataset.said;
  if (field.dataset.typed) return field.value !== "";
  return field.value !== "" && field.value !== STANDARD[name];
}
jobForm.addEventListener("input", ({ target, isTrusted }) => {
  if (!isTrusted) return;
  target.dataset.typed = "yes";
  unmark(target);
});

function mark(field, text) {
  unmark(field);
  const told = document.createElement("div");
  told.className = "form-text";
  told.id = `${field.id}_said`;
  told.textContent = text;
  field.insertAdjacentElement("afterend", told);
  const described = field.getAttribute("aria-describedby");
  field.setAttribute("aria-describedby", described ? `${described} ${told.id}` : told.id);
}
// A closed part of the form stays closed; its heading names what was filled inside.
function noteInside(field, label) {
  const part = field.closest("details");
  if (!part || part.open) return;
  const summary = part.querySelector("summary");
  const note = summary.querySelector("[data-said-inside]") ?? summary.appendChild(document.createElement("span"));
  note.dataset.saidInside = "";
  note.className = "d-block small";
  const named = (field.labels?.[0]?.textContent ?? field.name).trim();
  note.textContent += `${note.textContent ? "; " : "Filled from your sentence: "}${named} ${label}`;
}
function unmark(field) {
  const told = document.getElementById(`${field.id}_said`);
  if (!told) return;
  const others = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id !== told.id);
  if (others.length) field.setAttribute("aria-describedby", others.join(" "));
  else field.removeAttribute("aria-describedby");
  told.remove();
}

// A list may show fewer files than there are; the value that is meant joins it.
function choose(field, value, label) {
  const options = field.options && [...field.options];
  if (options && !options.some((option) => option.value === value)) field.add(new Option(label, value));
  field.value = value;
}
function clearSaid() {
  for (const note of document.querySelectorAll("[data-said-inside]")) note.remove();
  for (const field of jobForm.querySelectorAll("[data-said]")) {
    if (field.value === field.dataset.said) field.value = STANDARD[field.name] ?? "";
    delete field.dataset.said;
    unmark(field);
  }
  for (const told of jobForm.querySelectorAll("[id$=_said]")) unmark(document.getElementById(told.id.slice(0, -5)));
}
// What was read goes along with the form, so that the job keeps where its values come from.
function noteRead(seal, names) {
  inputOf("read_sentence").value = seal;
  inputOf("read_fields").value = names.join(",");
}
function fillSaid(rows, seal) {
  clearSaid();
  const filled = [];
  for (const { name, value, label, mark: why } of rows) {
    const field = inputOf(name);
    if (!field) continue;
    noteInside(field, label);
    if (isTyped(field, name)) {
      if (field.value !== value) mark(field, `Kept as you typed it; the sentence says ${label}.`);
      continue;
    }
    choose(field, value, label);
    field.dataset.said = field.value;
    mark(field, why);
    filled.push(name);
  }
  noteRead(seal, filled);
  changed();
}
function changed() {
  for (const name of ["goal", "training_file", "model"]) {
    inputOf(name).dispatchEvent(new Event("change", { bubbles: true }));
  }
}
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id !== "understood") return;
  const filled = document.getElementById("intent-fill");
  if (filled) fillSaid(JSON.parse(filled.textContent), target.querySelector("[data-read]").dataset.read);
});
document.addEventListener("click", ({ target }) => {
  const answer = target.closest?.("[data-question] [data-fill]");
  if (answer) {
    for (const [name, value] of Object.entries(JSON.parse(answer.dataset.fill))) {
      const field = inputOf(name);
      choose(field, value, answer.dataset.label);
      field.dataset.typed = "yes";
      unmark(field);
      field.focus();
    }
    answer.closest("[data-question]").remove();
    changed();
  }
  const shown = target.closest?.("[data-show-field]");
  if (shown) {
    const field = inputOf(shown.dataset.showField);
    field.closest("details")?.setAttribute("open", "");
    field.focus();
  }
  if (target.closest?.("[data-intent-clear]")) {
    clearSaid();
    document.getElementById("understood").replaceChildren();
    document.getElementById("said").focus();
    changed();
  }
});
