// Search and filter of the report.
const search = document.getElementById("search"), flawed = document.getElementById("flawed"), shown = document.getElementById("shown");
const files = [...document.querySelectorAll(".file")].map((file) => ({
  file, launches: [...file.querySelectorAll(".launch")].map((one) => ({ one, text: one.textContent.toLowerCase() })),
  findings: [...file.querySelectorAll(".finding")].map((one) => ({ one, text: one.textContent.toLowerCase() })),
  name: file.querySelector("h3").textContent.toLowerCase(),
}));
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.includes(word));
  let count = 0;
  for (const { file, launches, findings, name } of files) {
    let visible = 0;
    for (const { one, text } of [...findings, ...launches]) {
      one.hidden = !(has(`${name} ${text}`)) || (flawed.checked && findings.length === 0);
      if (!one.hidden) { visible += 1; if (one.matches(".launch")) count += 1; }
    }
    file.hidden = visible === 0 && (words.length > 0 || flawed.checked) && !has(name);
    if (flawed.checked && findings.length === 0) file.hidden = true;
  }
  shown.textContent = words.length || flawed.checked ? `${count} ${count === 1 ? "launch" : "launches"} shown` : "";
}
search.addEventListener("input", filter);
flawed.addEventListener("change", filter);
document.getElementById("open-all").addEventListener("click", (event) => {
  const opened = event.target.textContent === "Open all";
  for (const one of document.querySelectorAll("details")) one.open = opened;
  event.target.textContent = opened ? "Close all" : "Open all";
});
addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
