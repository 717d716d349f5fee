// Writes receipts.jsonl: what a payment provider's webhooks deliver in a bad hour. Deterministic:
//   node make_receipts.mjs > receipts.jsonl
// One purchase notification a line. About one in nine is delivered again, many arrive out of
// order, some purchases are cancelled, and one order id comes back with another quantity.

const PLAYERS = 500;
const ORDERS = 880;
const MISMATCHED_ORDER = 200;
const products = ["gems_80", "gems_500", "gems_1200", "starter_pack", "sword_of_dawn"];

let state = 20240229;
function random(below) { // mulberry32
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % below;
}
const digits = (count) => Array.from({ length: count }, () => random(10)).join("");

const deliveries = [];
for (let i = 0; i < ORDERS; i++) {
  const purchased = 1735689600000 + i * 1700 + random(1500);
  const cancelled = i !== MISMATCHED_ORDER && random(80) === 0;
  const notification = {
    version: "1.0",
    packageName: "com.example.plaza",
    eventTimeMillis: String(purchased + 300 + random(2000)),
    notificationType: cancelled ? "ONE_TIME_PRODUCT_CANCELED" : "ONE_TIME_PRODUCT_PURCHASED",
    orderId: `GPA.${digits(4)}-${digits(4)}-${digits(4)}-${digits(5)}`,
    purchaseTimeMillis: String(purchased),
    productId: products[random(products.length)],
    quantity: 1 + (random(6) === 0 ? random(4) : 0),
    obfuscatedAccountId: `player-${String(random(PLAYERS) + 1).padStart(4, "0")}`,
  };
  // The provider's queue does not keep order: each delivery is late by up to 40 places.
  deliveries.push({ place: i + random(40), notification });
  if (random(9) === 0)
    deliveries.push({ place: i + 20 + random(200), notification });
  if (i === MISMATCHED_ORDER)
    deliveries.push({ place: i + 500,
      notification: { ...notification, quantity: notification.quantity + 8 } });
}
deliveries.sort((a, b) => a.place - b.place); // Stable.
for (const { notification } of deliveries) console.log(JSON.stringify(notification));
