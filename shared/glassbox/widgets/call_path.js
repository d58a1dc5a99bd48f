// Walks through the frames of a call, station by station. All that it shows came from Python in one piece.

const FEW = 4;

const KINDS = { compiled: "compiled frame", python: "Python frame", evidence: "known from" };

function render({ model, el }) {
  const { stations, paths } = model.get("state");
  const lanes = [{ nr: 0, name: "your code", what: "where the call is made", source: [] }, ...stations];
  const slowest = Math.max(...paths.flatMap((path) => path.costs.map((cost) => cost.us)), 1e-9);
  let chips = [];
  let active = { path: 0, place: 0 };

  const root = make("div", { class: "gb-widget gb-path" });
  keepKeys(root);
  const all = make("button", { type: "button", class: "gb-all" });
  const legend = make("div", { class: "gb-legend" },
    ...Object.entries({ python: "Python", compiled: "compiled", evidence: "known otherwise" }).map(([kind, label]) =>
      make("span", {}, make("span", { class: `gb-key gb-${kind}`, "aria-hidden": "true" }), label)));
  const grid = make("div", { class: "gb-lanes", role: "region", "aria-label": "stations of the call", style: `--gb-columns:${paths.length}` });
  const details = make("div", { class: "gb-details", role: "status", "aria-live": "polite" });
  const help = make("div", { class: "gb-help" },
    "Point at a frame, or press Tab and walk: up and down along the call, left and right to the other framework.");
  const further = make("button", { type: "button" });
  const below = make("div", { class: "gb-below", hidden: true }, further);
  const shelf = make("div", { class: "gb-shelf" }, grid, below);
  root.append(make("div", { class: "gb-bar" }, legend, all), shelf, details, help);
  el.append(root);

  const isOpen = (nr) => model.get("opened").includes(nr);
  const crowded = lanes.filter((_, nr) => paths.some((path) => path.lanes[nr].length > FEW)).map((lane) => lane.nr);
  const allOpen = () => crowded.every(isOpen);

  function open(numbers) {
    model.set("opened", [...numbers].sort((a, b) => a - b));
    model.save_changes();
  }

  function costLine(cost) {
    const where = cost.stations.includes(",") || cost.stations.includes("-") ? `stations ${cost.stations}: ` : "";
    const bar = make("span", { class: "gb-cost-bar", "aria-hidden": "true" },
      make("span", { style: `width:${Math.max(1, (100 * cost.us) / slowest)}%` }));
    return make("div", { class: "gb-cost", title: cost.what }, bar, make("span", { class: "gb-mono" }, `${where}${cost.says}`),
      make("span", { class: "gb-cost-name" }, cost.what.split(":")[0]));
  }

  function chip(p, nr, k) {
    const frame = paths[p].lanes[nr][k];
    const node = make("button", { type: "button", class: `gb-frame gb-${frame.kind}`, tabindex: "-1" },
      make("span", { class: "gb-name gb-mono" }, frame.name));
    if (frame.place) node.append(make("span", { class: "gb-place gb-mono" }, frame.place.split("/").pop()));
    const by = frame.kind === "evidence" ? `${KINDS.evidence} ${frame.by}` : KINDS[frame.kind];
    node.setAttribute("aria-label", `${frame.name}, ${by}, ${nr ? `station ${nr}` : "your code"}, ${paths[p].framework}`);
    const place = chips[p].length;
    node.addEventListener("pointerenter", () => activate(p, place, false));
    node.addEventListener("focus", () => activate(p, place, false));
    node.addEventListener("click", () => node.focus());
    chips[p].push({ node, nr, k, frame });
    return node;
  }

  function drawLane(nr) {
    const lane = lanes[nr];
    if (paths.every((path) => !path.lanes[nr].length && !path.costs.some((cost) => cost.lane === nr))) return;
    const mark = make("span", { class: nr ? "gb-stop" : "gb-stop gb-start", "aria-hidden": "true" }, nr ? String(nr) : "");
    const title = make("div", { class: "gb-station" }, mark,
      make("div", {}, make("div", { class: "gb-title" }, lane.name), make("div", { class: "gb-what" }, lane.what)));
    const row = make("div", { class: "gb-lane", role: "group", "aria-label": nr ? `station ${nr}, ${lane.name}` : lane.name, ...(nr && { "data-nr": String(nr) }) }, title);
    paths.forEach((path, p) => {
      const cell = make("div", { class: "gb-cell", "data-path": p });
      cell.append(make("div", { class: "gb-whose", "aria-hidden": "true" }, path.framework));
      for (const cost of path.costs) if (cost.lane === nr) cell.append(costLine(cost));
      const frames = path.lanes[nr];
      const shown = isOpen(nr) || frames.length <= FEW + 1 ? frames.length : FEW;
      for (let k = 0; k < shown; k++) cell.append(chip(p, nr, k));
      if (shown < frames.length) {
        const more = make("button", { type: "button", class: "gb-more" }, `and ${frames.length - shown} more`);
        more.addEventListener("click", () => open([...model.get("opened"), nr]));
        cell.append(more);
      }
      if (!frames.length) cell.append(make("div", { class: "gb-none" }, "nothing seen here"));
      row.append(cell);
    });
    grid.append(row);
  }

  function draw() {
    const had = root.contains(document.activeElement) && chips[active.path]?.[active.place];
    chips = paths.map(() => []);
    const heads = paths.map((path) => make("div", { class: "gb-head" },
      make("div", { class: "gb-title" }, path.framework),
      make("div", { class: "gb-mono gb-what" }, path.call ? `${path.call}: ${path.op}` : path.op)));
    grid.replaceChildren(make("div", { class: "gb-lane gb-heads" }, make("div"), ...heads));
    lanes.forEach((_, nr) => drawLane(nr));
    all.hidden = !crowded.length;
    all.textContent = allOpen() ? "fewer frames" : "all frames";
    all.setAttribute("aria-pressed", String(allOpen()));
    const kept = had
      ? chips[active.path].findIndex((one) => one.nr === had.nr && one.k === had.k)
      : chips[active.path].findIndex((one) => one.nr > 0);
    active.place = Math.max(0, Math.min(kept, chips[active.path].length - 1));
    activate(active.path, active.place, Boolean(had));
    mark();
  }

  // says which stations lie below the edge of the lanes, for a scroll bar may be invisible until it is used
  function mark() {
    const scrolls = grid.scrollHeight > grid.clientHeight + 2;
    if (scrolls) grid.setAttribute("tabindex", "0");
    else grid.removeAttribute("tabindex");
    const edge = grid.getBoundingClientRect().bottom;
    const numbers = [...grid.querySelectorAll("[data-nr]")]
      .filter((row) => row.getBoundingClientRect().bottom > edge - 30).map((row) => row.dataset.nr);
    // what ends under the fade counts as well; at the very end nothing does
    below.hidden = grid.scrollTop + grid.clientHeight > grid.scrollHeight - 8 || !numbers.length;
    if (below.hidden) return;
    const last = numbers.at(-1);
    further.textContent = numbers.length > 1 ? `↓ stations ${numbers[0]} to ${last}` : `↓ station ${last}`;
  }

  function activate(p, place, focus) {
    const one = chips[p][place];
    if (!one) return;
    for (const { node } of chips.flat()) {
      node.classList.remove("gb-hot");
      node.setAttribute("tabindex", "-1");
    }
    active = { path: p, place };
    one.node.classList.add("gb-hot");
    one.node.setAttribute("tabindex", "0");
    for (const lane of grid.querySelectorAll(".gb-lane")) lane.classList.toggle("gb-here", lane.contains(one.node));
    if (focus) one.node.focus();
    explain(p, one);
  }

  function explain(p, { nr, frame }) {
    const path = paths[p];
    const lane = lanes[nr];
    const line = (label, text, mono) => make("div", { class: "gb-line" }, make("span", { class: "gb-label" }, label),
      make("span", { class: mono ? "gb-mono" : "" }, text));
    const parts = [line(`${path.framework}, ${nr ? `station ${nr}` : "before the stations"}`, frame.name, true)];
    if (frame.full && frame.full !== frame.name) parts.push(line("in full", frame.full, true));
    if (frame.place) parts.push(line("seen at", frame.place, true));
    if (frame.by) parts.push(line("known from", frame.by));
    parts.push(line("what happens", lane.what));
    for (const cost of path.costs) {
      if (cost.lane === nr) parts.push(line("measured", `${cost.says}, ${cost.what}`));
    }
    if (lane.source.length) parts.push(line("in PyTorch's repository", lane.source.join(" · "), true));
    details.replaceChildren(...parts);
  }

  function across(step) {
    const { nr, k } = chips[active.path][active.place];
    const p = active.path + step;
    if (p < 0 || p >= paths.length) return;
    const there = chips[p].map((one, place) => ({ ...one, place }));
    // the same station if it has frames, else the nearest before it
    const best = there.filter((one) => one.nr === nr)[Math.min(k, there.filter((one) => one.nr === nr).length - 1)]
      ?? there.filter((one) => one.nr < nr).pop() ?? there[0];
    if (best) activate(p, best.place, true);
  }

  grid.addEventListener("keydown", (event) => {
    if (!event.target.classList.contains("gb-frame")) return;
    const last = chips[active.path].length - 1;
    const moves = { ArrowDown: active.place + 1, ArrowUp: active.place - 1, Home: 0, End: last };
    if (event.key === "ArrowRight") across(1);
    else if (event.key === "ArrowLeft") across(-1);
    else if (event.key in moves) activate(active.path, Math.max(0, Math.min(last, moves[event.key])), true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  // the part under the fade comes along, and the column heads stay on top of what is shown
  further.addEventListener("click", () => grid.scrollBy({ top: grid.clientHeight - 140 }));
  grid.addEventListener("scroll", mark);
  // it has no size before it is in the page, and another one in a narrower window
  new ResizeObserver(mark).observe(grid);
  all.addEventListener("click", () => open(allOpen() ? [] : crowded));
  model.on("change:opened", draw);
  draw();
  const notes = paths.flatMap((path) => [
    ...(path.observer.length ? [`${path.framework}: ${path.observer.length} functions are on the stack only because somebody looks; they are left out.`] : []),
    ...(path.note ? [path.note] : []),
  ]);
  for (const note of notes) root.append(make("div", { class: "gb-help" }, note));
}

export default { render };
