/**
 * Frames of a response.
 *
 * @module
 */
import type { Frame } from "./view.ts";

/** Reads server-sent events to their end. Throws if the connection is lost. */
export async function readFrames({ body }: Response, onFrame: (frame: Frame) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let id = 0;
  let rest = "";
  for (;;) {
    const { done, value } = await reader?.read() ?? { done: true };
    if (done) return;
    const text = decoder.decode(value, { stream: true });
    rest += text;
    if (!text.includes("\n")) continue; // a long line is split once, when it is complete
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) id = Number(line.slice(4));
      else if (line.startsWith("data: ")) onFrame({ id, event: JSON.parse(line.slice(6)) });
    }
  }
}
