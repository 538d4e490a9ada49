/**
 * A client whose connection is reset.
 *
 * @module
 */
import { Socket } from "node:net";

/** Sends a request with a JSON body, and returns a function that resets its connection. */
export async function sendAndReset(url: URL, body: unknown): Promise<() => void> {
  const text = JSON.stringify(body);
  const socket = new Socket();
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.connect(Number(url.port), url.hostname, resolve);
  });
  const head = [`POST ${url.pathname} HTTP/1.1`, `Host: ${url.host}`, "Content-Type: application/json"];
  socket.write([...head, `Content-Length: ${new TextEncoder().encode(text).length}`, "", text].join("\r\n"));
  return () => socket.resetAndDestroy();
}
