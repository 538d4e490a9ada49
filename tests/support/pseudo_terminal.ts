/**
 * Programs in a pseudo terminal, as a person uses them. The program `script` of util-linux provides it.
 *
 * @module
 */

/** Whether pseudo terminals exist here. */
export const hasPseudoTerminals: boolean = await new Deno.Command("script", { args: ["--version"] }).output()
  .then(({ success, stdout }) => success && new TextDecoder().decode(stdout).includes("util-linux"), () => false);

/** The most milliseconds that a program may live. One that waits for a key forever would stop the tests. */
const longest = 60_000;

/** A program in a pseudo terminal. It is killed after a minute. */
export class PseudoTerminal implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #output: ReadableStreamDefaultReader<string>;
  readonly #limit: ReturnType<typeof setTimeout>;
  #screen = "";
  #seen = 0;

  /** Starts a program. */
  constructor(...command: readonly string[]) {
    const line = command.map((word) => `'${word}'`).join(" ");
    this.#process = new Deno.Command("script", {
      args: ["--quiet", "--flush", "--return", "--command", line, "/dev/null"],
      env: { TERM: "xterm", SHELL: "/bin/sh" },
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#limit = setTimeout(() => this.#process.kill("SIGKILL"), longest);
    this.#input = this.#process.stdin.getWriter();
    this.#output = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Types keys. */
  async type(keys: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(keys));
  }

  /** Waits until the program has written a text since the last one, and returns the text between the two. Throws an `Error` if the program ends without it. */
  async shows(text: string): Promise<string> {
    for (;;) {
      const at = this.#screen.indexOf(text, this.#seen);
      if (at >= 0) {
        const before = this.#screen.slice(this.#seen, at);
        this.#seen = at + text.length;
        return before;
      }
      if (!await this.#read()) throw new Error(`Cannot find "${text}": the program wrote ${this.#screen}`);
    }
  }

  /** Waits until the program ends. Returns its exit code, and the text since the last one that was awaited. */
  async ended(): Promise<readonly [code: number, text: string]> {
    while (await this.#read());
    return [(await this.#process.status).code, this.#screen.slice(this.#seen)];
  }

  /** Ends the program. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#input.close().catch(() => {}); // it may have ended
    while (await this.#read());
    await this.#process.status;
    clearTimeout(this.#limit);
  }

  /** Reads the next output. Returns whether there was any. */
  async #read(): Promise<boolean> {
    const { done, value = "" } = await this.#output.read();
    this.#screen += value.replace(sequences, "").replaceAll("\r", "");
    return !done;
  }
}

/** The sequences that move the cursor or clear the screen. */
// deno-lint-ignore no-control-regex -- the terminal understands these characters
const sequences = /\x1b\[[0-9;?]*[A-Za-z]/g;
