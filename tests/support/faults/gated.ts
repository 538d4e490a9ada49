/**
 * Deno KV at the pace of a simulation.
 *
 * @module
 */
import { inOrder } from "./in_order.ts";

/** Wraps a database so that operations and notifications happen one after another in a fixed order. */
export function gated(kv: Deno.Kv): Deno.Kv {
  const changes = new EventTarget();
  const inTurn = inOrder();

  /** An atomic operation that notifies the watchers of its keys after its commit. */
  function atomic(): Deno.AtomicOperation {
    const operation = kv.atomic();
    const keys: string[] = [];
    async function commit() {
      const done = await inTurn(() => operation.commit());
      for (const key of keys) changes.dispatchEvent(new Event(key));
      return done;
    }
    const gate: Deno.AtomicOperation = new Proxy(operation, {
      get: (_, method: keyof Deno.AtomicOperation) => (...args: never[]) => {
        if (method === "commit") return commit();
        if (method === "set" || method === "delete") keys.push(JSON.stringify(args[0]));
        Reflect.apply(operation[method], operation, args);
        return gate;
      },
    });
    return gate;
  }

  /** Streams the entry of a key, now and after each change. */
  function watch([key]: readonly Deno.KvKey[]): ReadableStream<unknown> {
    if (!key) throw new TypeError("Cannot watch no key");
    let changed = Promise.withResolvers<void>();
    changed.resolve();
    const change = () => changed.resolve();
    const name = JSON.stringify(key);
    changes.addEventListener(name, change);
    return new ReadableStream({
      async pull(controller) {
        await changed.promise;
        changed = Promise.withResolvers();
        controller.enqueue([await inTurn(() => kv.get(key))]);
      },
      cancel: () => changes.removeEventListener(name, change),
    }, { highWaterMark: 0 });
  }

  async function* list(...args: Parameters<Deno.Kv["list"]>) {
    yield* await inTurn(() => Array.fromAsync(kv.list(...args)));
  }

  return new Proxy(kv, {
    get(_, key: "get" | "getMany" | "delete" | "list" | "atomic" | "watch") {
      if (key === "list") return list;
      if (key === "watch") return watch;
      if (key === "atomic") return atomic;
      return (...args: never[]) => inTurn(() => Reflect.apply(kv[key], kv, args) as Promise<unknown>); // each method returns a promise
    },
  });
}
