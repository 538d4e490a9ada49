/**
 * SHA-256 without a wait: `crypto.subtle` resolves in another thread, and each claim of a session would wait for it.
 *
 * @module
 */

/** Returns the first 32 bits of the fraction of `root(prime)` for the first `count` primes. */
function fractions(count: number, root: (prime: number) => number): Int32Array {
  const values = new Int32Array(count);
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate++) {
    if (primes.some((prime) => candidate % prime === 0)) continue;
    values[primes.length] = (root(candidate) % 1) * 2 ** 32;
    primes.push(candidate);
  }
  return values;
}

/** The constants of the rounds, and the first state. */
const rounds = /* @__PURE__ */ fractions(64, Math.cbrt);
const start = /* @__PURE__ */ fractions(8, Math.sqrt);

/** Returns the hash of `bytes`: 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const padded = new DataView(new ArrayBuffer(Math.ceil((bytes.length + 9) / 64) * 64));
  new Uint8Array(padded.buffer).set(bytes);
  padded.setUint8(bytes.length, 0x80);
  padded.setBigUint64(padded.byteLength - 8, BigInt(bytes.length) * 8n);
  const state = start.slice();
  const words = new Int32Array(64);
  for (let block = 0; block < padded.byteLength; block += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) words[i] = padded.getInt32(block + 4 * i);
      else {
        const [a, b] = [at(words, i - 15), at(words, i - 2)];
        const small = rotated(a, 7) ^ rotated(a, 18) ^ (a >>> 3);
        const large = rotated(b, 17) ^ rotated(b, 19) ^ (b >>> 10);
        words[i] = at(words, i - 16) + small + at(words, i - 7) + large;
      }
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
    for (let i = 0; i < 64; i++) {
      const choice = (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g));
      const first = (h + choice + at(rounds, i) + at(words, i)) | 0;
      const second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = at(state, i) + value;
  }
  const hash = new DataView(new ArrayBuffer(32));
  for (const [i, value] of state.entries()) hash.setInt32(4 * i, value);
  return new Uint8Array(hash.buffer);
}

/** Returns an element within the bounds. */
function at(values: Int32Array, index: number): number {
  return values[index] ?? 0;
}

function rotated(value: number, by: number): number {
  return (value >>> by) | (value << (32 - by));
}
