// Shows the moments of an engine run. All of them come from the kernel at once; a step is a change of classes and of a
// few texts in one picture, so it asks nobody.

const PHASES = [
  ["forward", "forward: the graph is built"],
  ["count", "backward: counting"],
  ["backward", "backward: running"],
  ["done", "done"],
];

const setState = (node, names, state) => {
  for (const name of names) node.classList.toggle(`is-${name}`, name === state);
};

// what draw/engine_run.py says may change, and nothing else
function paint(svg, frame, edges) {
  frame.nodes.forEach((state, k) => {
    const node = svg.querySelector(`[data-node="n${k}"]`);
    setState(node, ["absent", "made", "waiting", "ready", "running", "done"], state.state);
    node.querySelector(".grad").textContent = state.grad ? `grad ${state.grad}` : "";
    node.querySelector(".waits").textContent = state.waits || "";
    node.querySelector(".badge").classList.toggle("none", !state.waits);
    for (const saved of node.querySelectorAll(".saved")) saved.classList.toggle("gone", state.freed);
  });
  const flows = new Map(frame.flows);
  svg.querySelectorAll("[data-edge]").forEach((link) => {
    const k = Number(link.dataset.edge);
    const absent = frame.nodes[edges[k]].state === "absent";
    setState(link, ["absent", "lit"], absent ? "absent" : flows.has(k) ? "lit" : "");
    link.querySelector(".flow").textContent = flows.get(k) ?? "";
  });
}

function render({ model, el }) {
  const runs = model.get("shown");
  let svg;

  const root = make("div", { class: "gb-widget gb-stepper" });
  keepKeys(root);
  const select = make("select", { "aria-label": "program" });
  model.get("titles").forEach((title, k) => select.append(make("option", { value: String(k) }, title)));
  const button = (name, sign, go) => {
    const node = make("button", { type: "button", "aria-label": name, title: name }, sign);
    node.addEventListener("click", go);
    return node;
  };
  const slider = make("input", { type: "range", min: "0", step: "1", "aria-label": "step" });
  const first = button("first step", "|◀", () => go(0));
  const back = button("step back", "◀", () => go(model.get("step") - 1));
  const on = button("step on", "▶", () => go(model.get("step") + 1));
  const last = button("last step", "▶|", () => go(frames().length - 1));
  const counter = make("span", { class: "gb-counter" });
  const controls = make("div", { class: "gb-controls" });
  if (runs.length > 1) controls.append(make("label", { class: "gb-choice" }, "program", select));
  controls.append(make("div", { class: "gb-buttons", role: "group", "aria-label": "steps" }, first, back, on, last), slider, counter);

  const phases = make("ol", { class: "gb-phases" });
  for (const [key, words] of PHASES) phases.append(make("li", { "data-phase": key }, words));
  const leaves = make("div", { class: "gb-leaves gb-mono" });
  const program = make("ol", { class: "gb-program gb-mono", "aria-label": "program" });
  const queue = make("ol", { class: "gb-queue gb-mono", "aria-label": "ready queue" });
  const empty = make("div", { class: "gb-empty" });
  const side = make("div", { class: "gb-side" },
    make("div", { class: "gb-caption" }, "program"), leaves, program,
    make("div", { class: "gb-caption" }, "ready queue, next one first"), queue, empty);
  const stage = make("div", { class: "gb-stage", tabindex: "0", role: "group", "aria-label": "backward graph: walk with the arrow keys" });
  const says = make("div", { class: "gb-says", role: "status", "aria-live": "polite" });
  const key = (cls, words) => make("span", { class: `gb-key ${cls}` }, make("i", {}), words);
  const legend = make("div", { class: "gb-legend", "aria-hidden": "true" },
    key("leaf", "leaf"), key("node", "node"), key("waits", "gradients it waits for"), key("ready", "ready"),
    key("running", "running"), key("done", "has run"), key("saved", "saved tensor"), key("gone", "freed"));
  const help = make("div", { class: "gb-help" },
    "Arrow keys walk through the steps, Home and End go to the first and the last. An arrow shows where a gradient will go.");
  root.append(controls, phases, says, make("div", { class: "gb-main" }, side, stage), legend, help);
  el.append(root);

  const frames = () => runs[model.get("run")].frames;

  function go(step) {
    const wanted = Math.min(Math.max(step, 0), frames().length - 1);
    if (wanted === model.get("step")) return;
    model.set("step", wanted);
    model.save_changes();
  }

  function drawRun() {
    const run = runs[model.get("run")];
    stage.innerHTML = run.svg;
    svg = stage.querySelector("svg");
    select.value = String(model.get("run"));
    leaves.replaceChildren(...run.leaves.map((leaf) => make("span", {}, leaf)));
    program.replaceChildren(...run.program.map((line) => make("li", {}, line)));
    slider.max = String(run.frames.length - 1);
    drawStep();
  }

  function drawStep() {
    const run = runs[model.get("run")];
    const step = Math.min(model.get("step"), run.frames.length - 1);
    const frame = run.frames[step];
    paint(svg, frame, run.sources);
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", `step ${step + 1} of ${run.frames.length}`);
    counter.textContent = `${step + 1} of ${run.frames.length}`;
    // a button that is disabled loses the focus, and with it the arrow keys
    for (const [node, off] of [[first, step === 0], [back, step === 0], [on, step === run.frames.length - 1], [last, step === run.frames.length - 1]]) {
      node.setAttribute("aria-disabled", String(off));
    }
    for (const item of phases.children) {
      if (item.dataset.phase === frame.phase) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
    [...program.children].forEach((item, k) => {
      if (k === frame.line) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
    });
    queue.replaceChildren(...frame.queue.map((k) => make("li", {}, run.labels[k])));
    const running = ["backward", "done"].includes(frame.phase);
    empty.textContent = frame.queue.length ? "" : running ? "empty" : "not there yet";
    says.textContent = frame.text;
    const told = svg.querySelector("desc");
    told.textContent = frame.text;
  }

  select.addEventListener("change", () => {
    model.set("run", Number(select.value));
    model.set("step", 0);
    model.save_changes();
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  root.addEventListener("keydown", (event) => {
    if (event.target === select || event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = model.get("step");
    const moves = { ArrowRight: step + 1, ArrowDown: step + 1, ArrowLeft: step - 1, ArrowUp: step - 1, Home: 0, End: frames().length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation();
    go(moves[event.key]);
  });
  model.on("change:run", drawRun);
  model.on("change:step", drawStep);
  drawRun();
}

export default { render };
