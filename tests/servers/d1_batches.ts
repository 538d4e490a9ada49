/**
 * A Worker that executes batches on its D1 database, for programs outside. A batch is a list of statements, each with its values.
 *
 * @module
 */
import type { D1 } from "@jizai/jizai/session/d1";

export default {
  async fetch(request: Request, { DB }: { readonly DB: D1 }): Promise<Response> {
    const statements: readonly (readonly [sql: string, ...values: unknown[]])[] = await request.json();
    try {
      const replies = await DB.batch(statements.map(([sql, ...values]) => DB.prepare(sql).bind(...values)));
      return Response.json(replies.map(({ results }) => results));
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
