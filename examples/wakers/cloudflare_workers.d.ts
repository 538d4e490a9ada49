/** The part of the module `cloudflare:workers` that the example uses. `@cloudflare/workers-types` declares all of it. */

/** The steps of a workflow. The results of those that are done are kept. */
export interface WorkflowStep {
  /** Executes a step, and again if it fails. */
  do<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Waits. The workflow uses no process meanwhile. */
  sleep(name: string, ms: number): Promise<void>;
}

/** The base class of workflows. */
export abstract class WorkflowEntrypoint<Env> {
  protected readonly env: Env;
  constructor(ctx: unknown, env: Env);
  abstract run(event: { readonly payload: unknown }, step: WorkflowStep): Promise<unknown>;
}
