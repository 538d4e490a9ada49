/**
 * Elements: made with what they show, and kept for as long as they show it. All that is shown is text.
 *
 * @module
 */
import type { Document, Element } from "./dom.ts";

/** Makes elements, and keeps lists of them. */
export interface Elements {
  /** An element of a class, with a text or with others in it. */
  make(tag: string, className: string, ...children: readonly (string | Element)[]): Element;
  /** Changes a text, where it is another one: what a person has selected stays selected. */
  write(element: Element | undefined, text: string): void;
  /** Has `root` show `items`, each in an element that stays the same as long as its key does. */
  list<T extends { readonly key: string }>(
    root: Element,
    items: readonly T[],
    make: (item: T) => Element,
    update: (element: Element, item: T) => void,
  ): void;
}

/** Runs in the page: it reaches for nothing outside of itself. */
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
      const known = new Map(Array.from(root.children, (child) => [child.dataset.key, child]));
      items.forEach((item, index) => {
        const element = known.get(item.key) ?? make(item);
        known.delete(item.key);
        element.dataset.key = item.key;
        update(element, item);
        const there = root.children[index] ?? null;
        if (there !== element) root.insertBefore(element, there);
      });
      for (const element of known.values()) element.remove();
    },
  };
}
