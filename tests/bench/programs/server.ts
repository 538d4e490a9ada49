/**
 * Serves a file of `streams/`, and prints its port.
 *
 * @module
 */
const { default: app } = await import(`./streams/${Deno.args[0]}.ts`);

Deno.serve(
  { hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) },
  (request) => app.fetch(request),
);
