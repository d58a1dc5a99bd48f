// Draws one state of the key set explorer. All states come from the kernel once, as a table; a choice is a place in it.

// What the marks of the table mean, as classes and words.
const MARKS = {
  on: ["gb-on gb-r0", "", "in the set (the colour is its layer's)"],
  taken: ["gb-away gb-r0", "\u2212", "taken away"],
  idle: ["gb-idle gb-r0", "\u2212", "would be taken away, but is not there"],
  lit: ["gb-lit gb-r0", "", "the highest: functionality and backend that win"],
};
const SWITCHES = [
  ["requires_grad", "requires_grad", "a = torch.ones(..., requires_grad=True)"],
  ["autocast", "autocast", "torch.autocast(device)"],
  ["no_grad", "no_grad", "torch.no_grad()"],
  ["vmap", "vmap", "torch.vmap(function)"],
  ["mode", "dispatch mode", "a TorchDispatchMode that runs what it gets"],
];

function render({ model, el }) {
  const data = model.get("data");
  const names = Object.keys(data.options);
  const root = make("div", { class: "gb-widget gb-keyset" });
  keepKeys(root);

  // the place of a choice in the table: its options are the digits of a number, the last one running fastest
  function state() {
    let place = 0;
    for (const name of names) {
      const options = data.options[name];
      place = place * options.length + options.indexOf(model.get(name));
    }
    return data.states[place];
  }

  function choose(name, value) {
    model.set(name, value);
    model.save_changes();
    draw();
  }

  // controls

  const selects = ["op", "device", "inference"].map((name) => {
    const select = make("select", { "aria-label": name === "op" ? "operator" : name === "inference" ? "inference mode" : name });
    for (const value of data.options[name]) select.append(make("option", { value }, value));
    select.addEventListener("change", () => choose(name, select.value));
    return { name, select };
  });
  const boxes = SWITCHES.map(([name, words, title]) => {
    const box = make("input", { type: "checkbox" });
    box.addEventListener("change", () => choose(name, box.checked));
    return { name, box, label: make("label", { class: "gb-switch", title }, box, make("span", {}, words)) };
  });
  const field = (words, name) =>
    make("label", { class: "gb-field" }, make("span", {}, words), selects.find((each) => each.name === name).select);
  const controls = make("div", { class: "gb-controls" },
    field("operator", "op"), field("device", "device"), field("inference mode", "inference"));
  const switches = make("div", { class: "gb-switches", role: "group", "aria-label": "switched on" },
    ...boxes.map(({ label }) => label));

  const code = make("pre", { class: "gb-code gb-mono" });
  const verdict = make("div", { class: "gb-verdict", role: "status" });
  const remark = make("div", { class: "gb-remark" });
  const strip = make("div", { class: "gb-bits", role: "img" });
  const legend = make("ul", { class: "gb-legend", "aria-label": "the marks of the table" },
    ...Object.values(MARKS).map(([kind, sign, words]) =>
      make("li", {}, make("span", { class: `gb-mark ${kind}`, "aria-hidden": "true" }, sign), words)));
  const table = make("table", { class: "gb-sum" });
  const onion = make("div", { class: "gb-onion", tabindex: "0", role: "list" });
  root.append(
    controls, switches, code, verdict, remark,
    make("div", { class: "gb-caption" }, "What is left of the key set, as 64 bits: the functionalities, highest first, and behind the gap the backends."),
    strip,
    make("div", { class: "gb-caption" }, "How it comes about: what the arguments bring, plus and minus what the columns say."),
    legend,
    make("div", { class: "gb-scroll", tabindex: "0", role: "region", "aria-label": "how the key set comes about" }, table),
    make("div", { class: "gb-caption" }, "The kernels of the call, each around those that it leads to:"),
    onion,
  );
  el.append(root);

  // the sum, one row per bit

  function cell(on, mask, taken, lit) {
    if (!on) return make("td", {});
    const kind = lit ? "gb-lit" : mask ? (taken ? "gb-away" : "gb-idle") : "gb-on";
    const words = lit ? "wins" : mask ? (taken ? "taken away" : "would be taken away, but is not there") : "set";
    const mark = make("span", { class: `gb-mark ${kind}`, "aria-hidden": "true" }, mask ? "\u2212" : "");
    return make("td", { title: words }, mark, make("span", { class: "gb-unseen" }, words));
  }

  // a long name may break between its words, and nowhere else
  const parts = (name) => name.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part, nr) => (nr ? [make("wbr"), part] : [part]));

  // where a bit comes from, and on a line of its own what takes it away
  const reasons = (text) => text.split(/; (?=taken away: )/).filter(Boolean).map((each) => make("div", {}, each));

  function drawTable(sets) {
    const [first, second] = sets.arguments;
    // the sign stands above its word, so that no column is wider than the word
    const heads = [["", first[0]], ["", second ? second[0] : ""],
      ["+", "included"], ["\u2212", "excluded"], ["\u2212", "fallthrough"], ["=", "left"]];
    const head = make("tr", {}, make("th", { scope: "col", class: "gb-number" }, "bit"), make("th", { scope: "col" }, "name"),
      ...heads.map(([sign, word]) =>
        make("th", { scope: "col", class: "gb-step" }, make("span", {}, sign && make("b", {}, `${sign} `), word))),
      make("th", { scope: "col" }, "why"));
    const body = make("tbody");
    let backends = false;
    data.rows.forEach(([bit, name, colour, backend], nr) => {
      const has = (bits) => bits.includes(bit);
      const lit = has(sets.lit) && has(sets.left);
      const row = make("tr", { class: `gb-${colour}${lit ? " gb-winner" : ""}` });
      if (backend && !backends) row.classList.add("gb-first-backend");
      backends = backend;
      row.append(
        make("td", { class: "gb-number" }, String(bit)),
        make("th", { scope: "row" }, ...parts(name)),
        cell(has(first[1])),
        second ? cell(has(second[1])) : make("td", {}),
        cell(has(sets.included)),
        cell(has(sets.excluded), true, has(sets.taken[0])),
        cell(has(sets.fallthrough), true, has(sets.taken[1])),
        cell(has(sets.left), false, false, lit),
        make("td", { class: "gb-why" }, ...reasons(data.texts[sets.why[nr]])),
      );
      body.append(row);
    });
    table.replaceChildren(make("thead", {}, head), body);
  }

  function drawStrip(sets) {
    const colours = Object.fromEntries(data.rows.map(([bit, , colour]) => [bit, colour]));
    const cells = [];
    for (let bit = data.size - 1; bit >= 0; bit--) {
      const on = sets.left.includes(bit);
      const lit = on && sets.lit.includes(bit);
      const kind = lit ? "gb-lit" : on ? `gb-on gb-${colours[bit]}` : "";
      cells.push(make("span", { class: `gb-bit ${kind}${bit === 15 ? " gb-apart" : ""}`, title: `bit ${bit}` }));
    }
    strip.replaceChildren(...cells);
    strip.setAttribute("aria-label", `the key set as bits: ${sets.hex}`);
  }

  // the onion

  function drawOnion(hops) {
    const open = [onion];
    onion.replaceChildren();
    for (const [depth, place] of hops) {
      const [op, key, kind, colour, file, inferred] = data.hops[place];
      const short = file.split("/").pop();
      const line = make("div", { class: "gb-hop" }, make("b", {}, op), make("span", {}, key),
        make("small", {}, inferred ? `${kind}, not watched` : kind), make("small", { class: "gb-place", title: file }, short));
      const layer = make("div", { class: `gb-layer gb-${colour}${inferred ? " gb-inferred" : ""}`, role: "listitem" }, line);
      open.length = depth + 1;
      open[depth].append(layer);
      open.push(layer);
    }
    onion.setAttribute("aria-label", `${hops.length} kernels, one inside of the other`);
  }

  function draw() {
    const [tensors, blocks, call, sets, hops, words] = state();
    for (const { name, select } of selects) select.value = model.get(name);
    for (const { name, box } of boxes) box.checked = model.get(name);
    const summed = data.sets[sets];
    code.textContent = [tensors, blocks, call].map((place) => data.texts[place]).filter(Boolean).join("\n");
    verdict.replaceChildren("The call goes to ", make("b", {}, summed.winner), ". ", make("span", { class: "gb-mono" }, summed.words));
    remark.textContent = data.texts[words];
    drawStrip(summed);
    drawTable(summed);
    drawOnion(data.onions[hops]);
  }

  // one drawing for a message that changes several traits
  let pending = false;
  model.on(names.map((name) => `change:${name}`).join(" "), () => {
    if (pending) return;
    pending = true;
    queueMicrotask(() => { pending = false; draw(); });
  });
  draw();
}

export default { render };
