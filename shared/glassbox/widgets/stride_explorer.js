// Draws a tensor over its storage. What an op means comes from the kernel as a table; the address formula and the
// bounds of the controls are arithmetic on shape, stride and offset and need no round trip.

const HUES = 6;

const product = (sizes) => sizes.reduce((a, b) => a * b, 1);
const reach = (shape, stride) => shape.reduce((sum, n, k) => sum + (n - 1) * stride[k], 0);
const tuple = (list) => (list.length === 1 ? `(${list[0]},)` : `(${list.join(", ")})`);

function indices(shape) {
  let list = [[]];
  for (const n of shape) list = list.flatMap((head) => Array.from({ length: n }, (_, i) => [...head, i]));
  return list;
}

// a dimension of size 1 does not count, whatever its stride
function isContiguous(shape, stride) {
  let expected = 1;
  for (let k = shape.length - 1; k >= 0; k--) {
    if (shape[k] === 1) continue;
    if (stride[k] !== expected) return false;
    expected *= shape[k];
  }
  return true;
}

// the largest value that keeps the last element inside the storage
function bound(layout, field, k, size, limits) {
  const { shape, stride, offset } = layout;
  if (field === "offset") return size - 1 - reach(shape, stride);
  const free = size - 1 - offset - reach(shape, stride) + (shape[k] - 1) * stride[k];
  if (field === "stride") return shape[k] > 1 ? Math.floor(free / (shape[k] - 1)) : size;
  const most = stride[k] > 0 ? 1 + Math.floor(free / stride[k]) : limits.size;
  const others = product(shape) / shape[k];
  return Math.max(1, Math.min(most, limits.size, Math.floor(limits.cells / others)));
}

function render({ model, el }) {
  const cells = model.get("cells");
  const limits = model.get("limits");
  const size = cells.length;
  let layout, addresses, positions, readers, active, tensorCells, storageCells, inputs, built;

  const root = make("div", { class: "gb-widget gb-explorer" });
  keepKeys(root);
  const select = make("select", { "aria-label": "operation" });
  for (const entry of model.get("ops")) select.append(make("option", { value: entry.label }, entry.label));
  const custom = make("option", { value: "as_strided" }, "as_strided (your own)");
  select.append(custom);
  const fields = make("div", { class: "gb-fields" });
  const refusal = make("div", { class: "gb-refusal", role: "alert" });
  const facts = make("div", { class: "gb-facts" });
  const grid = make("div", { class: "gb-grid", role: "grid" });
  const storageTitle = make("div", { class: "gb-caption" });
  const strip = make("div", { class: "gb-strip", role: "img" });
  const formula = make("div", { class: "gb-formula gb-mono", "aria-live": "polite", role: "status" });
  const help = make("div", { class: "gb-help" },
    "Point at a cell, or press Tab and walk with the arrow keys; click or Enter selects it.");
  root.append(
    make("div", { class: "gb-controls" }, make("label", { class: "gb-field" }, make("span", {}, "op"), select), fields),
    refusal, facts, grid, storageTitle, strip, formula, help,
  );
  el.append(root);

  const label = () => (model.get("op") === "as_strided" ? "view" : model.get("op"));
  const address = (index) => layout.offset + index.reduce((sum, i, k) => sum + i * layout.stride[k], 0);

  function spell(index) {
    const at = index.length ? `[${index.join(",")}]` : "[()]";
    const terms = [layout.offset, ...index.map((i, k) => `${i}*${layout.stride[k]}`)].join(" + ");
    const end = index.length ? ` = storage[${address(index)}]` : "";
    return `${label()}${at} = storage[${terms}]${end}`;
  }

  function light(keys, position, text) {
    for (const cell of [...tensorCells, ...storageCells]) cell.classList.remove("gb-hot");
    for (const k of keys) tensorCells[k].classList.add("gb-hot");
    if (position !== null) storageCells[position].classList.add("gb-hot");
    formula.textContent = text;
  }

  function lightIndex(k) {
    // every index that reads this storage cell is lit, since they are one and the same element
    light(readers[addresses[k]] ?? [k], addresses[k], spell(positions[k]));
  }

  function lightStorage(position) {
    const keys = readers[position] ?? [];
    const names = keys.slice(0, 6).map((k) => `${label()}[${positions[k].join(",")}]`);
    const more = keys.length > 6 ? ` and ${keys.length - 6} more` : "";
    const text = keys.length ? `storage[${position}] is ${names.join(" = ")}${more}` : `storage[${position}] is not in ${label()}`;
    light(keys, position, text);
  }

  function rest() {
    lightIndex(active);
  }

  function activate(k, focus) {
    tensorCells[active]?.setAttribute("tabindex", "-1");
    active = k;
    tensorCells[k].setAttribute("tabindex", "0");
    if (focus) tensorCells[k].focus();
    lightIndex(k);
  }

  function choose(k) {
    activate(k, false);
    model.set("selected", positions[k]);
    model.save_changes();
    markSelected();
  }

  function markSelected() {
    const wanted = model.get("selected").join(",");
    const any = model.get("selected").length > 0;
    tensorCells.forEach((cell, k) => {
      const on = any && positions[k].join(",") === wanted;
      cell.classList.toggle("gb-selected", on);
      cell.setAttribute("aria-selected", String(on));
    });
  }

  function change(next, op) {
    model.set("op", op ?? "as_strided");
    model.set("shape", next.shape);
    model.set("stride", next.stride);
    model.set("offset", next.offset);
    model.set("selected", []);
    model.save_changes();
    draw();
  }

  // back to the name of an op if its layout was reached by hand
  function named(next) {
    const same = (e) => e.offset === next.offset && `${e.shape}` === `${next.shape}` && `${e.stride}` === `${next.stride}`;
    return model.get("ops").find(same)?.label;
  }

  const valueOf = (field, k) => (field === "offset" ? layout.offset : layout[field][k]);
  const minimum = (field) => (field === "shape" ? 1 : 0);

  function tried(field, k, wanted) {
    const next = { shape: [...layout.shape], stride: [...layout.stride], offset: layout.offset };
    if (field === "offset") next.offset = wanted;
    else next[field][k] = wanted;
    return next;
  }

  function number(field, k) {
    const what = field === "offset" ? "offset" : `${field === "shape" ? "size" : "stride"} of dimension ${k}`;
    const input = make("input", { type: "number", step: "1", "aria-label": what });
    const refuse = (reason) => {
      refusal.textContent = reason;
      input.setAttribute("aria-invalid", String(reason !== ""));
    };
    input.addEventListener("input", () => {
      const wanted = input.valueAsNumber;
      const max = bound(layout, field, k, size, limits);
      if (!Number.isInteger(wanted) || wanted < minimum(field) || wanted > max) {
        refuse(input.value === "" ? "" : why(field, k, wanted, max));
        return;
      }
      refuse("");
      const next = tried(field, k, wanted);
      change(next, named(next));
    });
    const settle = () => {
      input.value = String(valueOf(field, k));
      refuse("");
    };
    input.addEventListener("blur", settle);
    input.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "Escape") settle(); });
    inputs.push({ input, field, k });
    return input;
  }

  function why(field, k, wanted, max) {
    if (!Number.isInteger(wanted)) return "That is not a whole number.";
    const what = field === "offset" ? "The offset" : field === "shape" ? `Size ${k}` : `Stride ${k}`;
    if (wanted < minimum(field)) {
      return field === "shape" ? `${what} must be at least 1 here.` : `${what} cannot be negative in PyTorch.`;
    }
    const trial = tried(field, k, wanted);
    const last = trial.offset + reach(trial.shape, trial.stride);
    return last >= size
      ? `${what} of ${wanted} would reach storage[${last}], but the last element is storage[${size - 1}]; at most ${max} fits.`
      : `${what} of ${wanted} is more than can be drawn; at most ${max} fits.`;
  }

  // built once per number of dimensions, so that typing and the buttons keep the focus
  function buildFields() {
    inputs = [];
    const part = (field) => {
      const box = make("span", { class: "gb-tuple gb-mono" }, "(");
      layout.shape.forEach((_, k) => box.append(k ? ", " : "", number(field, k)));
      box.append(layout.shape.length === 1 ? ",)" : ")");
      return make("div", { class: "gb-field", role: "group", "aria-label": field }, make("span", {}, field), box);
    };
    const offset = make("label", { class: "gb-field" }, make("span", {}, "offset"), number("offset"));
    const more = make("button", { type: "button", title: "a new first dimension of size 1, as unsqueeze(0)" }, "+ dim");
    more.disabled = layout.shape.length >= limits.dims;
    more.addEventListener("click", () => {
      const first = layout.shape.length ? layout.shape[0] * layout.stride[0] : 1;
      const next = { shape: [1, ...layout.shape], stride: [first, ...layout.stride], offset: layout.offset };
      change(next, named(next));
    });
    const less = make("button", { type: "button", title: "without the first dimension, as x[0]" }, "\u2212 dim");
    less.disabled = layout.shape.length === 0;
    less.addEventListener("click", () => {
      const next = { shape: layout.shape.slice(1), stride: layout.stride.slice(1), offset: layout.offset };
      change(next, named(next));
    });
    fields.replaceChildren(part("shape"), part("stride"), offset, make("div", { class: "gb-dims" }, more, less));
  }

  function drawFields() {
    if (built !== layout.shape.length) {
      buildFields();
      built = layout.shape.length;
    }
    for (const { input, field, k } of inputs) {
      input.min = String(minimum(field));
      input.max = String(bound(layout, field, k, size, limits));
      if (input.valueAsNumber !== valueOf(field, k)) input.value = String(valueOf(field, k));
    }
  }

  function drawFacts() {
    const contiguous = isContiguous(layout.shape, layout.stride);
    const shared = Math.max(0, ...Object.values(readers).map((keys) => keys.length));
    const seen = Object.keys(readers).length;
    const fact = (text, kind) => make("span", { class: `gb-fact ${kind}` }, text);
    facts.replaceChildren(
      fact(`is_contiguous() is ${contiguous ? "True" : "False"}`, contiguous ? "gb-yes" : "gb-no"),
      fact(`sees ${seen} of ${size} storage cells`, ""),
    );
    if (shared > 1) facts.append(fact(`overlaps: up to ${shared} indices share a cell`, "gb-no"));
  }

  function drawGrid() {
    const { shape } = layout;
    const columns = shape.length ? shape[shape.length - 1] : 1;
    const rows = shape.length > 1 ? shape[shape.length - 2] : 1;
    const blocks = shape.length > 2 ? shape[0] : 1;
    tensorCells = [];
    grid.replaceChildren();
    grid.setAttribute("aria-label", `${label()}, shape ${tuple(shape)}`);
    grid.setAttribute("aria-rowcount", String(rows * blocks));
    grid.setAttribute("aria-colcount", String(columns));
    for (let b = 0; b < blocks; b++) {
      const block = make("div", { class: "gb-block", role: "rowgroup" });
      if (shape.length > 2) block.append(make("div", { class: "gb-caption", "aria-hidden": "true" }, `[${b}, :, :]`));
      if (shape.length) {
        const head = make("div", { class: "gb-line gb-ruler", "aria-hidden": "true" }, make("span", { class: "gb-number" }));
        for (let j = 0; j < columns; j++) head.append(make("span", {}, String(j)));
        block.append(head);
      }
      for (let i = 0; i < rows; i++) {
        const line = make("div", { class: "gb-line", role: "row" });
        line.append(make("span", { class: "gb-number", "aria-hidden": "true" }, shape.length > 1 ? String(i) : ""));
        for (let j = 0; j < columns; j++) {
          const k = tensorCells.length;
          const cell = make("div", { class: `gb-cell gb-r${(b * rows + i) % HUES}`, role: "gridcell", tabindex: "-1" }, cells[addresses[k]]);
          cell.setAttribute("aria-label", `${label()}[${positions[k].join(",")}] is ${cells[addresses[k]]}`);
          cell.addEventListener("pointerenter", () => lightIndex(k));
          cell.addEventListener("focus", () => activate(k, false));
          cell.addEventListener("click", () => { choose(k); cell.focus(); });
          tensorCells.push(cell);
          line.append(cell);
        }
        block.append(line);
      }
      grid.append(block);
    }
  }

  function drawStrip() {
    const { shape } = layout;
    const perRow = shape.length ? shape[shape.length - 1] : 1;
    storageCells = cells.map((text, p) => {
      const keys = readers[p];
      const hue = keys ? `gb-r${Math.floor(keys[0] / perRow) % HUES}` : "gb-out";
      const cell = make("div", { class: `gb-cell ${hue}` }, text);
      if (keys && keys.length > 1) cell.append(make("span", { class: "gb-badge" }, `\u00d7${keys.length}`));
      cell.addEventListener("pointerenter", () => lightStorage(p));
      return cell;
    });
    strip.replaceChildren(...storageCells.map((cell, p) => make("div", { class: "gb-slot" }, make("span", {}, String(p)), cell)));
    strip.setAttribute("aria-label", `storage of ${size} elements`);
    storageTitle.textContent = `storage: ${size} elements of ${model.get("dtype")}`;
  }

  function draw() {
    layout = { shape: model.get("shape"), stride: model.get("stride"), offset: model.get("offset") };
    positions = indices(layout.shape);
    addresses = positions.map(address);
    readers = {};
    addresses.forEach((p, k) => (readers[p] ??= []).push(k));
    select.value = model.get("op");
    custom.hidden = model.get("op") !== "as_strided";
    refusal.textContent = "";
    drawFields();
    drawFacts();
    drawGrid();
    drawStrip();
    const selected = model.get("selected").join(",");
    active = Math.max(0, model.get("selected").length ? positions.findIndex((i) => i.join(",") === selected) : 0);
    tensorCells[active].setAttribute("tabindex", "0");
    rest();
    markSelected();
  }

  select.addEventListener("change", () => {
    const entry = model.get("ops").find((e) => e.label === select.value);
    if (entry) change(entry, entry.label);
  });
  grid.addEventListener("pointerleave", rest);
  strip.addEventListener("pointerleave", rest);
  grid.addEventListener("keydown", (event) => {
    const columns = layout.shape.length ? layout.shape[layout.shape.length - 1] : 1;
    const block = layout.shape.length > 2 ? layout.shape[1] * columns : tensorCells.length;
    const start = active - (active % columns);
    const moves = {
      ArrowRight: active + 1, ArrowLeft: active - 1, ArrowDown: active + columns, ArrowUp: active - columns,
      Home: start, End: start + columns - 1, PageDown: active + block, PageUp: active - block,
    };
    if (event.key === "Enter" || event.key === " ") choose(active);
    else if (event.key in moves) {
      const target = moves[event.key];
      if (target >= 0 && target < tensorCells.length) activate(target, true);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // one drawing for a message that changes several traits
  let pending = false;
  const later = () => {
    if (pending) return;
    pending = true;
    queueMicrotask(() => { pending = false; redraw(); });
  };
  function redraw() {
    const { shape, stride, offset } = layout;
    const moved = `${shape}` !== `${model.get("shape")}` || `${stride}` !== `${model.get("stride")}` || offset !== model.get("offset");
    if (moved || select.value !== model.get("op")) draw();
    else markSelected();
  }
  model.on("change:op change:shape change:stride change:offset change:selected", later);
  draw();
}

export default { render };
