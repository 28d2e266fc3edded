// Light or dark by the system's wish, set before the first paint.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => { document.documentElement.dataset.bsTheme = dark.matches ? "dark" : "light"; };
  dark.addEventListener("change", apply);
  apply();
})();
