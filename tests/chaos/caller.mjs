// What the callers of a chaos run have in common: a seed's dice, one clock, records on standard output.
import { createWriteStream } from "node:fs";

export function dice(seed) { // xorshift32
  const random = () => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return (seed >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(random() * n);
  return { random, below, choose: (list) => list[below(list.length)],
    pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) };
}

export function answers() {
  const out = createWriteStream(null, { fd: 1 });
  return { tell: (record) => out.write(`${JSON.stringify(record)}\n`),
    clock: () => Number(process.hrtime.bigint()), end: () => out.end() };
}
