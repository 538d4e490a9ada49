/**
 * The wire port, for authors of client dialects.
 *
 * @module
 */
export { ShapeError } from "./shape.ts";
export type * from "./wire.ts";
