/**
 * Elements of the page. Their content is always text, never HTML.
 *
 * @module
 */
import type { Document, Element } from "./dom.ts";

/** Creates and updates elements. */
export interface Elements {
  /** Creates an element with a class and children. */
  make(tag: string, className: string, ...children: readonly (string | Element)[]): Element;
  /** Sets the text of an element. An unchanged text is left alone, so that the user's selection in it stays. */
  write(element: Element | undefined, text: string): void;
  /** Shows `items` in `root`. An item keeps its element as long as its key is in the list. */
  list<T extends { readonly key: string }>(
    root: Element,
    items: readonly T[],
    make: (item: T) => Element,
    update: (element: Element, item: T) => void,
  ): void;
}

/** Creates the functions. Runs in the page, so it uses nothing outside itself. */
export function elementsOf(document: Document): Elements {
  return {
    make(tag, className, ...children) {
      const element = document.createElement(tag);
      element.className = className;
      element.append(...children);
      return element;
    },

    write(element, text) {
      if (element && element.textContent !== text) element.textContent = text;
    },

    list(root, items, make, update) {
      const unused = new Map(Array.from(root.children, (child) => [child.dataset.key, child]));
      items.forEach((item, index) => {
        const element = unused.get(item.key) ?? make(item);
        unused.delete(item.key);
        element.dataset.key = item.key;
        update(element, item);
        const present = root.children[index] ?? null;
        if (present !== element) root.insertBefore(element, present);
      });
      for (const element of unused.values()) element.remove();
    },
  };
}
