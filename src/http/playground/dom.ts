/**
 * What is asked of a page's document: said here as types, so that nothing else in the library takes itself for a page.
 *
 * @module
 */

/** An element, with what those that are used here have. */
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
  addEventListener(type: string, hear: (event: PageEvent) => void): void;
}

/** What happened to an element. */
export interface PageEvent {
  readonly key?: string;
  readonly shiftKey?: boolean;
  readonly isComposing?: boolean;
  preventDefault(): void;
}

/** The document of a page. */
export interface Document {
  createElement(tag: string): Element;
  getElementById(id: string): Element | null;
}
