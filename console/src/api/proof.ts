// Proof of work: a number so that SHA-256 (FIPS 180-4) of `seed.number` begins with zero bits. Written here, since the browser's own
// is asynchronous: a promise a try takes ten times as long.

const K = new Uint32Array(64);
const START = new Uint32Array(8);
const words = new Uint32Array(64);
const LONGEST = 55;

function fraction(value: number): number {
  return Math.floor((value - Math.floor(value)) * 2 ** 32);
}

function fillConstants(): void {
  let found = 0;
  for (let candidate = 2; found < 64; candidate++) {
    let isPrime = true;
    for (let factor = 2; factor * factor <= candidate; factor++) if (candidate % factor === 0) isPrime = false;
    if (!isPrime) continue;
    if (found < 8) START[found] = fraction(Math.sqrt(candidate));
    K[found++] = fraction(Math.cbrt(candidate));
  }
}

function turned(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

/** SHA-256 of a short ASCII text, as eight words. */
export function sha256(text: string): Uint32Array {
  if (text.length > LONGEST) throw new RangeError("longer than one block");
  if (!K[0]) fillConstants();
  words.fill(0, 0, 16);
  for (let i = 0; i < text.length; i++) words[i >> 2] = (words[i >> 2] ?? 0) | (text.charCodeAt(i) << (24 - 8 * (i & 3)));
  words[text.length >> 2] = (words[text.length >> 2] ?? 0) | (0x80 << (24 - 8 * (text.length & 3)));
  words[15] = 8 * text.length;
  for (let i = 16; i < 64; i++) {
    const a = words[i - 15] ?? 0;
    const b = words[i - 2] ?? 0;
    const s0 = turned(a, 7) ^ turned(a, 18) ^ (a >>> 3);
    const s1 = turned(b, 17) ^ turned(b, 19) ^ (b >>> 10);
    words[i] = (words[i - 16] ?? 0) + s0 + (words[i - 7] ?? 0) + s1;
  }
  let [a, b, c, d, e, f, g, h] = START as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const t1 = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + (K[i] ?? 0) + (words[i] ?? 0)) | 0;
    const t2 = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  return Uint32Array.of(a, b, c, d, e, f, g, h).map((word, i) => word + (START[i] ?? 0));
}

function zeroBits(hash: Uint32Array): number {
  const first = hash.findIndex((word) => word !== 0);
  return first < 0 ? 256 : 32 * first + Math.clz32(hash[first] ?? 0);
}

/** The least number whose hash begins with that many zero bits. */
export function solve(seed: string, bits: number): string {
  for (let number = 0; ; number++) if (zeroBits(sha256(`${seed}.${number}`)) >= bits) return String(number);
}
