// Turns over pictures that were drawn in Python, one per step and lane. Nothing here asks the kernel; `step` is sent to
// it so that Python knows what is shown.

function render({ model, el }) {
  const lanes = model.get("lanes");
  const last = model.get("steps") - 1;
  const code = model.get("code");
  const longest = lanes.reduce((a, b) => (b.labels.length > a.labels.length ? b : a));

  const root = element("div", "gb-widget gb-frames");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", model.get("title"));
  keepKeys(root);

  const bar = element("div", "gb-bar");
  const button = (label, words, to) => {
    const node = element("button", "", label);
    node.type = "button";
    node.title = words;
    node.setAttribute("aria-label", words);
    node.addEventListener("click", () => go(to()));
    bar.append(node);
    return node;
  };
  const first = button("|\u25C0\uFE0E", "first step", () => 0);
  const back = button("\u25C0\uFE0E", "one step back", () => model.get("step") - 1);
  const next = button("\u25B6\uFE0E", "one step on", () => model.get("step") + 1);
  const end = button("\u25B6\uFE0E|", "last step", () => last);
  const slider = element("input");
  Object.assign(slider, { type: "range", min: "0", max: String(last), step: "1" });
  slider.setAttribute("aria-label", "step");
  slider.addEventListener("input", () => go(slider.valueAsNumber));
  const count = element("span", "gb-count");
  bar.append(slider, count);

  const list = element("ol", code ? "gb-steps gb-lines" : "gb-steps");
  const entries = longest.labels.map((label, nr) => {
    const item = element("li");
    const entry = element("button", code ? "gb-mono" : "", label);
    entry.type = "button";
    entry.addEventListener("click", () => go(nr));
    item.append(entry);
    list.append(item);
    return entry;
  });

  const columns = element("div", "gb-lanes");
  const shown = lanes.map((lane) => {
    const column = element("div", "gb-lane");
    const style = element("div");
    style.innerHTML = lane.style;
    style.hidden = true;
    if (lanes.length > 1) column.append(element("div", "gb-name", lane.name));
    const picture = element("div", "gb-picture");
    const says = element("p", "gb-says");
    says.setAttribute("role", "status");
    column.append(style, picture, says);
    columns.append(column);
    return { lane, picture, says, at: -1 };
  });

  const body = element("div", "gb-body");
  body.append(list, columns);
  root.append(bar, body);
  el.append(root);

  function go(to) {
    const step = Math.max(0, Math.min(last, to));
    if (step === model.get("step")) return;
    model.set("step", step);
    model.save_changes();
  }

  function draw() {
    const step = model.get("step");
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", `${step + 1}: ${longest.labels[step]}`);
    count.textContent = `${step + 1} of ${last + 1}`;
    first.disabled = back.disabled = step === 0;
    next.disabled = end.disabled = step === last;
    entries.forEach((entry, nr) => {
      if (nr === step) entry.setAttribute("aria-current", "step");
      else entry.removeAttribute("aria-current");
      entry.classList.toggle("gb-past", nr < step);
    });
    for (const column of shown) {
      const at = Math.min(step, column.lane.pictures.length - 1);
      if (at === column.at) continue;
      column.at = at;
      column.picture.innerHTML = column.lane.pictures[at];
      column.says.textContent = column.lane.says[at];
    }
  }
  model.on("change:step", draw);
  draw();
}

export default { render };
