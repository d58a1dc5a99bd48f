// Turns the pages of a timeline: which program, how many elements, which moment. Every page came from Python.

const STEP_MS = 700;
const SVG = "http://www.w3.org/2000/svg";

function slider(label, max) {
  return make("input", { type: "range", min: "0", max: String(max), step: "1", "aria-label": label });
}

function render({ model, el }) {
  const state = model.get("state");
  const { sizes, programs } = state;
  let moment = 0;
  let timer = null;

  const root = make("div", { class: "gb-widget gb-player" });
  keepKeys(root);

  const choice = make("div", { class: "gb-programs", role: "group", "aria-label": "program" });
  const buttons = programs.map((program, p) => {
    const button = make("button", { type: "button" }, program.name);
    button.addEventListener("click", () => { model.set("program", p); model.save_changes(); });
    choice.append(button);
    return button;
  });
  const size = slider("elements", sizes.length - 1);
  const count = make("span", { class: "gb-count gb-mono" });
  const time = slider("moment", 0);
  const play = make("button", { type: "button", class: "gb-play" }, "play");
  const back = make("button", { type: "button", "aria-label": "one moment back" }, "\u2039");
  const on = make("button", { type: "button", "aria-label": "one moment on" }, "\u203a");
  const says = make("div", { class: "gb-now gb-mono", role: "status", "aria-live": "polite" });
  const picture = make("div", { class: "gb-picture" });
  const verdict = make("div", { class: "gb-verdict", role: "status", "aria-live": "polite" });
  const sweep = make("div", { class: "gb-sweep" });
  root.append(
    choice,
    make("div", { class: "gb-row" }, make("label", { class: "gb-slide" }, make("span", {}, "elements"), size), count),
    picture,
    make("div", { class: "gb-row" }, play, back, on, make("label", { class: "gb-slide" }, make("span", {}, "moment"), time)),
    says,
    make("div", { class: "gb-below" }, sweep, verdict),
    make("div", { class: "gb-help" }, "Move the upper slider to find where launching stops to matter; step through a program with the lower one."),
  );
  el.append(root);

  const program = () => programs[model.get("program")];
  const run = () => program().runs[model.get("size")];

  function drawMoment() {
    const { moments, top, bottom } = run();
    moment = Math.max(0, Math.min(moment, moments.length - 1));
    time.value = String(moment);
    time.setAttribute("aria-valuetext", moments[moment].text);
    says.textContent = moments[moment].text;
    back.disabled = moment === 0;
    on.disabled = moment === moments.length - 1;
    let head = picture.querySelector(".gb-head");
    if (!head) {
      head = document.createElementNS(SVG, "path");
      head.setAttribute("class", "gb-head");
      picture.querySelector("svg").append(head);
    }
    head.setAttribute("d", `M${moments[moment].x} ${top - 8}V${bottom + 4}`);
  }

  function drawPage() {
    const page = run();
    picture.innerHTML = state.template.replace(state.body, () => page.figure);
    const svg = picture.querySelector("svg");
    const box = svg.viewBox.baseVal;
    svg.setAttribute("viewBox", `0 0 ${box.width} ${page.height}`);
    svg.setAttribute("height", page.height);
    svg.querySelector("title").textContent = page.title;
    svg.querySelector("desc").textContent = page.desc;
    const n = sizes[model.get("size")];
    size.value = String(model.get("size"));
    count.textContent = `${n.toLocaleString("en")} element${n === 1 ? "" : "s"}`;
    size.setAttribute("aria-valuetext", count.textContent);
    time.max = String(page.moments.length - 1);
    drawMoment();
  }

  function drawSweep() {
    const { sweep: figure, says: words } = program();
    if (sweep.dataset.of !== String(model.get("program"))) {
      sweep.innerHTML = figure;
      sweep.dataset.of = String(model.get("program"));
    }
    const mark = sweep.querySelector(".now");
    const x = program().marks[model.get("size")];
    mark.setAttribute("d", mark.getAttribute("d").replace(/^M[\d.]+/, `M${x}`));
    if (verdict.textContent !== words) verdict.textContent = words;
  }

  function draw() {
    buttons.forEach((button, p) => button.setAttribute("aria-pressed", String(p === model.get("program"))));
    drawPage();
    drawSweep();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "play";
  }

  function go(to) {
    moment = to;
    drawMoment();
  }

  play.addEventListener("click", () => {
    if (timer) { stop(); return; }
    if (moment === run().moments.length - 1) go(0);
    play.textContent = "pause";
    timer = setInterval(() => {
      go(moment + 1);
      if (moment === run().moments.length - 1) stop();
    }, STEP_MS);
  });
  back.addEventListener("click", () => { stop(); go(moment - 1); });
  on.addEventListener("click", () => { stop(); go(moment + 1); });
  time.addEventListener("input", () => { stop(); go(Number(time.value)); });
  size.addEventListener("input", () => { model.set("size", Number(size.value)); model.save_changes(); });

  // a page turned by Python or by the reader begins at its first moment
  const turn = () => { stop(); moment = 0; draw(); };
  model.on("change:program change:size", turn);
  draw();
  return () => stop();
}

export default { render };
