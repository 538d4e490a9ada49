/**
 * Types of the DOM that the page uses. The library is compiled without the DOM's own types, so that no other file uses the DOM by mistake.
 *
 * @module
 */

/** An element, with the members that the page uses. */
export interface Element {
  className: string;
  textContent: string | null;
  hidden: boolean;
  disabled: boolean;
  checked: boolean;
  value: string;
  readonly children: Iterable<Element> & ArrayLike<Element>;
  readonly dataset: { [name: string]: string };
  readonly style: { setProperty(name: string, value: string): void };
  readonly scrollHeight: number;
  readonly clientHeight: number;
  scrollTop: number;
  append(...children: readonly (Element | string)[]): void;
  insertBefore(child: Element, before: Element | null): void;
  remove(): void;
  setAttribute(name: string, value: string): void;
  setCustomValidity(message: string): void;
  reportValidity(): boolean;
  focus(): void;
  addEventListener(type: string, listener: (event: PageEvent) => void): void;
}

/** A DOM event. */
export interface PageEvent {
  readonly key?: string;
  readonly shiftKey?: boolean;
  readonly isComposing?: boolean;
  preventDefault(): void;
}

/** The document of the page. */
export interface Document {
  createElement(tag: string): Element;
  getElementById(id: string): Element | null;
}
