// The page's only ways to make and find elements. Text is always text: nothing here or elsewhere parses markup.

/** The element of that id. */
export const byId = (id) => document.getElementById(id);

/** An element with properties, attributes (in `attributes`), data (in `dataset`) and children. */
export function make(tag, { attributes = {}, dataset = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  Object.assign(element.dataset, dataset);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Sets text only where it changes, so that screen readers are not told twice. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
