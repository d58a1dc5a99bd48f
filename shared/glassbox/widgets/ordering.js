// A list whose lines the reader moves: by the arrows of a line, by the arrow keys with Shift, or by dragging. What is
// right comes from the kernel, after the commit.

const PATIENCE_MS = 3000;

function render({ model, el }) {
  const root = element("div", "gb-widget gb-ordering");
  keepKeys(root);
  const list = element("ol");
  const commit = element("button", "", "Commit");
  commit.type = "button";
  const result = element("div", "gb-result");
  result.setAttribute("role", "status");
  const help = element("div", "gb-help", "Drag a line, use its arrows, or press Tab and move it with Shift and an arrow key.");
  root.append(element("div", "gb-ask", model.get("question")), list, help, commit, result);
  el.append(root);
  let dragged = -1;

  function move(from, to, control) {
    const order = [...model.get("order")];
    if (model.get("committed") || to < 0 || to >= order.length || from === to) return;
    order.splice(to, 0, ...order.splice(from, 1));
    model.set("order", order);
    model.save_changes();
    draw();
    // The line keeps the focus where it went; at an end one of its two arrows is off.
    const line = list.children[to];
    const wanted = control ? line.querySelector(`button.${control}:not(:disabled)`) : line;
    (wanted ?? line).focus();
    result.textContent = `${order[to]}: now ${to + 1} of ${order.length}`;
  }

  function draw() {
    const order = model.get("order");
    const done = model.get("done");
    const fixed = model.get("committed");
    list.replaceChildren(...order.map((step, nr) => {
      const item = element("li", done ? (model.get("right")[nr] ? "gb-yes" : "gb-no") : "");
      item.tabIndex = 0;
      item.draggable = !fixed;
      const row = element("div", "gb-line");
      row.append(element("span", "gb-step", step));
      item.append(row);
      if (!fixed) {
        for (const [name, sign, to] of [["gb-up", "\u25B2\uFE0E", nr - 1], ["gb-down", "\u25BC\uFE0E", nr + 1]]) {
          const button = element("button", name, sign);
          button.type = "button";
          button.disabled = to < 0 || to >= order.length;
          button.setAttribute("aria-label", `${step}: ${name === "gb-up" ? "up" : "down"}`);
          button.addEventListener("click", () => move(nr, to, name));
          row.append(button);
        }
      } else if (done) {
        row.append(element("span", "gb-mark", model.get("right")[nr] ? "right" : "not here"));
      }
      item.addEventListener("keydown", (event) => {
        if (event.target !== item || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
        const to = nr + (event.key === "ArrowUp" ? -1 : 1);
        if (event.shiftKey) move(nr, to);
        else list.children[to]?.focus();
        event.preventDefault();
        event.stopPropagation();
      });
      item.addEventListener("dragstart", (event) => { dragged = nr; event.dataTransfer.effectAllowed = "move"; });
      item.addEventListener("dragover", (event) => { if (dragged >= 0) event.preventDefault(); });
      item.addEventListener("drop", (event) => { event.preventDefault(); event.stopPropagation(); move(dragged, nr); });
      item.addEventListener("dragend", () => { dragged = -1; });
      return item;
    }));
    commit.hidden = fixed;
    help.hidden = fixed;
    if (done) reveal();
  }

  function reveal() {
    const right = model.get("right").filter(Boolean).length;
    const all = model.get("right").length;
    root.dataset.state = right === all ? "right" : "wrong";
    const parts = [element("p", "gb-verdict", right === all ? "All in their place." : `${right} of ${all} in their place.`)];
    if (right < all) {
      const answer = element("ol", "gb-answer");
      for (const step of model.get("answer")) answer.append(element("li", "", step));
      parts.push(element("p", "", "The order is:"), answer);
    }
    if (model.get("explanation")) parts.push(element("p", "", model.get("explanation")));
    result.replaceChildren(...parts);
  }

  commit.addEventListener("click", () => {
    model.set("committed", true);
    model.save_changes();
    draw();
    result.textContent = "looking ...";
    // A notebook that is opened again shows its lists, but a new kernel does not know them.
    setTimeout(() => {
      if (!model.get("done")) result.textContent = "No answer yet. If the kernel was restarted since, run the cell again.";
    }, PATIENCE_MS);
  });
  model.on("change:done", draw);
  draw();
}

export default { render };
