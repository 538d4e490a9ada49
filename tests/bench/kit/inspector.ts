/**
 * V8's inspector of this process.
 *
 * @module
 */
import { Session } from "node:inspector";

const session = new Session();
session.connect();

/** Sends a command of the Chrome DevTools Protocol, and returns its result. */
export function inspect(method: string, params: object = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    session.post(method, params, (error: Error | null, result: unknown) => error ? reject(error) : resolve(result));
  });
}
