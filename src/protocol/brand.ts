/**
 * Brands: they make `instanceof` work for errors and interrupts of another copy or version of this package.
 *
 * @module
 */

/**
 * Makes `instanceof` recognize the instances of `type` that any copy of this package made, and returns their mark. A subclass recognizes only its own
 * instances, as usual. Call it for a static field of the class, with a `@__PURE__` comment: bundlers drop a class that is not used, but not one with a static
 * block.
 */
export function brand(type: { readonly prototype: object }, name: string): symbol {
  const mark = Symbol.for(`jizai.${name}`);
  Object.defineProperty(type.prototype, mark, { value: true });
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      return this === type ? isMarked(value, mark) : Function.prototype[Symbol.hasInstance].call(this, value);
    },
  });
  return mark;
}

/** Returns false for a proxy that throws, too: nothing of it can be read. */
function isMarked(value: unknown, mark: symbol): boolean {
  try {
    return mark in Object(value);
  } catch {
    return false;
  }
}
