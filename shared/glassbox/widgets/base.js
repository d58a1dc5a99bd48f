// What the widgets share; it stands before the text of each, since a widget is one file to the browser.

// an element with attributes and children; a value that is no text is set as the element's own property
function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value;
    else if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// an element that has a class and a text at most
function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// JupyterLab would take keys for its own shortcuts, such as moving between cells; it asks the focused element first
function keepKeys(root) {
  root.addEventListener("focusin", (event) => { event.target.dataset.lmSuppressShortcuts = "true"; });
}

