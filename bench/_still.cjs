// Chance and a clock that stand still, for servers that draw their figures anew for each call.
let seed = 7;
Math.random = () => (seed = seed * 48271 % 2147483647) / 2147483647;
let count = 0;
const uuid = () => "00000000-0000-4000-8000-" + String(++count).padStart(12, "0");
const crypto = require("node:crypto");
crypto.randomUUID = uuid;
globalThis.crypto.randomUUID = uuid;
require("node:module").syncBuiltinESMExports();
const Clock = Date;
globalThis.Date = class extends Clock {
  constructor(...parts) { parts.length ? super(...parts) : super(Date.now()); }
  static now() { return 1700000000000; }
};
