// Light or dark by the system's wish or the person's choice, set before the first paint.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("theme") ?? "auto";
  const apply = () => {
    const theme = chosen() === "auto" ? (dark.matches ? "dark" : "light") : chosen();
    document.documentElement.dataset.bsTheme = theme;
    document.documentElement.classList.toggle("dark-mode", theme === "dark"); // Swagger UI's name for it
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      const pressed = button.dataset.themeChoice === chosen();
      button.setAttribute("aria-pressed", pressed);
      button.classList.toggle("active", pressed);
    }
    document.dispatchEvent(new Event("theme-changed"));
  };
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", apply);
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-theme-choice]");
    if (!button) return;
    localStorage.setItem("theme", button.dataset.themeChoice);
    apply();
  });
  apply();
})();
