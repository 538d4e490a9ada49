/**
 * A Worker that executes batches on its D1 database, for a program that listens on the port in a request.
 *
 * @module
 */
import type { D1 } from "@jizai/jizai/session/d1";
import { answerBatches, type Socket } from "./batch_socket.ts";

/** The module of Workers that connects. */
interface Sockets {
  connect(address: { readonly hostname: string; readonly port: number }): Socket;
}

export default {
  async fetch(request: Request, { DB }: { readonly DB: D1 }): Promise<Response> {
    const sockets = "cloudflare:sockets"; // a variable, because only Workers have the module
    const { connect }: Sockets = await import(sockets);
    const socket = connect({ hostname: "127.0.0.1", port: Number(await request.text()) });
    await answerBatches(socket, async (statements) => {
      const prepared = statements.map(([sql, ...values]) => DB.prepare(sql).bind(...values));
      return (await DB.batch(prepared)).map(({ results }) => results);
    });
    return new Response("closed");
  },
};
