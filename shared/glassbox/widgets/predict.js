// Shows the question, sends what the reader commits to, and shows the answer that the kernel computed.

const PATIENCE_MS = 3000;

function inline(parent, source) {
  // `code`, **bold** and *italic* only; everything goes in as text, never as HTML
  const marks = /(`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*(?=[^\s*])[^*]*(?<=\S)\*(?![\w*]))/;
  source.split(marks).forEach((part, k) => {
    // split puts what the pattern caught at the odd places
    if (k % 2 === 0) {
      parent.append(part);
      return;
    }
    const tag = part.startsWith("`") ? "code" : part.startsWith("**") ? "strong" : "em";
    const width = tag === "strong" ? 2 : 1;
    parent.append(element(tag, "", part.slice(width, -width)));
  });
}

function render({ model, el }) {
  const choices = model.get("choices");
  const name = "gb-" + Math.random().toString(36).slice(2);
  const root = element("div", "gb-widget gb-predict");
  keepKeys(root);

  root.append(element("div", "gb-ask", model.get("question")));
  root.append(element("pre", "gb-expression", model.get("expression")));

  const form = element("form");
  const fieldset = element("fieldset");
  fieldset.append(element("legend", "", `${model.get("question")} ${model.get("expression")}`));
  const row = element("div", "gb-row");
  const commit = element("button", "", "Commit");
  commit.type = "submit";
  let read;
  if (choices.length) {
    for (const choice of choices) {
      const label = element("label", "gb-choice");
      const input = element("input");
      Object.assign(input, { type: "radio", name, value: choice });
      label.append(input, element("code", "", choice));
      row.append(label);
    }
    read = () => row.querySelector("input:checked")?.value ?? "";
  } else {
    const input = element("input");
    Object.assign(input, { type: "text", autocomplete: "off", spellcheck: false, placeholder: "your prediction" });
    input.setAttribute("aria-label", `your prediction for ${model.get("expression")}`);
    row.append(input);
    read = () => input.value.trim();
  }
  row.append(commit);
  fieldset.append(row);
  form.append(fieldset);
  const result = element("div", "gb-result");
  result.setAttribute("role", "status");
  root.append(form, result);

  const ready = () => { commit.disabled = read() === ""; };
  form.addEventListener("input", ready);
  // inside a notebook the browser does not always submit on Enter by itself
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target === commit) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (read() === "" || model.get("done")) return;
    fieldset.disabled = true;
    result.textContent = "evaluating ...";
    model.set("chosen", read());
    model.save_changes();
    // A notebook that is opened again shows its questions, but a new kernel does not know them.
    setTimeout(() => {
      if (model.get("done") || model.get("chosen") === "") return;
      result.textContent = "No answer yet. If the kernel was restarted since, run the cell again.";
    }, PATIENCE_MS);
  });

  function update() {
    const done = model.get("done");
    fieldset.disabled = done;
    commit.hidden = done;
    ready();
    if (!done) return;
    const chosen = model.get("chosen");
    for (const input of row.querySelectorAll("input")) {
      if (input.type === "radio") input.checked = input.value === chosen;
      else input.value = chosen;
    }
    root.dataset.state = model.get("ok") ? "right" : "wrong";
    const verdict = element("p", "gb-verdict", model.get("ok") ? "Right. " : "Not so. ");
    const answer = element("p");
    answer.append(model.get("raised") ? "It raises " : "It is ", element("code", "", model.get("answer")));
    result.replaceChildren(verdict, answer);
    for (const paragraph of model.get("explanation").split(/\n\s*\n/)) {
      if (!paragraph.trim()) continue;
      const p = element("p");
      inline(p, paragraph);
      result.append(p);
    }
  }
  model.on("change:done", update);
  // taken back by the kernel, which was interrupted
  model.on("change:chosen", () => {
    if (model.get("chosen") !== "" || model.get("done")) return;
    fieldset.disabled = false;
    result.textContent = "Interrupted before there was an answer. Commit again to retry.";
  });
  update();
  el.append(root);
}

export default { render };
