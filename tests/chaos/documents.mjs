// Callers of documents who write down what they wrote and were shown, for holdfast-check (check/README.md):
// elements, siblings, leaves, counters, whole ones, several hands on the same documents. Each hand brings
// the context of what it saw; what is not answered it repeats under the same op_id, or gives up.
//
//   documents.mjs < plan      plan: one line of JSON, {url, name, hands, entities, seed, calls}
//
// Ends when standard input does. Numbers, and the values that are written, are `calls` + 1 ...
import { createInterface } from "node:readline";
import { ConnectError, createClient, createConnectTransport, opId } from "../conformance/client.mjs";
import { DocumentConsistency, DocumentService } from "../conformance/gen/holdfast/v1/document_pb.js";
import { ErrorDetailSchema, Outcome } from "../conformance/gen/holdfast/v1/error_pb.js";
import { PatchKind } from "../conformance/gen/holdfast/v1/profile_pb.js";
import { answers, dice } from "./caller.mjs";

const KEY = "k";
const SHOWN_MANY = 150; // From then on more is taken away than comes.

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);
const transport = createConnectTransport({
  baseUrl: plan.url, httpVersion: "1.1", useBinaryFormat: true });
const documents = createClient(DocumentService, transport);
const { below, choose, pause, random } = dice(plan.seed);
const { tell, clock, end } = answers();
let calls = plan.calls, stopping = false;
lines.next().then(() => { stopping = true; });

const set = (kind, path, value) => ({ case: "patch", value: { steps: [{ kind, path, json: JSON.stringify(value) }] } });
const merge = (leaf, value) => ({ case: "merge", value: JSON.stringify({ [leaf]: value }) });
const numbers = (values) => values.map(Number).sort((a, b) => a - b);

// By collection: what one document shows, and the edits that bring a value and take one away.
const kinds = {
  tags: { do: "add", shown: (json) => numbers(json),
    bring: (value) => set(PatchKind.ADD, "", String(value)),
    take: (value) => set(PatchKind.DISCARD, "", String(value)) },
  settings: { do: "add", shown: (json) => numbers(Object.values(json)),
    bring: (value) => merge(`l${value}`, value), take: (value) => merge(`l${value}`, null) },
  rooms: { do: "add", shown: (json, siblings) => numbers(siblings.length > 0 ? siblings : [json]) },
  prefs: { do: "write", shown: (json) => [json] },
  stats: { do: "count", shown: (json) => [json.n ?? 0],
    bring: (value) => set(PatchKind.INCREMENT, "/n", value) },
};

function shownOf(collection, document) {
  if (!document) return collection === "stats" ? [0] : [];
  return kinds[collection].shown(JSON.parse(document.json),
    document.siblings.map((each) => JSON.parse(each.json)));
}

class Hand {
  constructor(number) {
    this.name = `${plan.name}/${number}`;
    this.contexts = new Map();
  }

  async look(name, collection, entity) {
    const from = clock();
    try {
      const { document, context } = await documents.getDocument({ entity, collection, key: KEY,
        context: this.contexts.get(name) ?? "",
        consistency: choose([DocumentConsistency.ANY, DocumentConsistency.ANY, DocumentConsistency.MAJORITY]),
      }, { timeoutMs: 3000 });
      const shows = shownOf(collection, document);
      tell({ look: name, hand: this.name, from, at: clock(), shows });
      this.contexts.set(name, context);
      return shows;
    } catch {
      await pause(below(100)); // What had no answer read nothing.
      return undefined;
    }
  }

  // From its first packet until its outcome is known or given up.
  async edit(name, record, request, send) {
    const call = ++calls;
    tell({ edit: call, at: clock(), of: name, hand: this.name, ...record });
    let unknown = false;
    for (let tries = 1 + below(6); tries > 0; tries--) {
      try {
        const { written } = await send(request, { timeoutMs: choose([200, 1000, 4000]) });
        tell({ edited: call, at: clock(), state: "ok" });
        if (written.context) this.contexts.set(name, written.context);
        return;
      } catch (error) {
        const [detail] = ConnectError.from(error).findDetails(ErrorDetailSchema);
        if (detail?.outcome !== Outcome.REFUSED) unknown = true;
        else if (!unknown) { // Of this attempt; an earlier one may stand where it was not refused.
          tell({ edited: call, at: clock(), state: "refused" });
          return;
        }
      }
      await pause(below(200));
    }
    tell({ edited: call, at: clock(), state: "unknown" });
  }

  async act() {
    const collection = choose(Object.keys(kinds)), entity = choose(plan.entities);
    const name = `${collection}:${entity}`, kind = kinds[collection];
    const shown = await this.look(name, collection, entity);
    if (shown === undefined || random() < 0.3) return;
    const value = collection === "stats" ? 1 + below(9) : ++calls;
    const request = { entity, collection, key: KEY, opId: opId(), context: this.contexts.get(name) ?? "" };
    const taken = kind.take && shown.length > 0 && random() < (shown.length < SHOWN_MANY ? 0.3 : 0.8);
    if (taken) { // The oldest, so that what comes back is seen.
      await this.edit(name, { do: "discard", replaces: [shown[0]] },
        { ...request, edit: kind.take(shown[0]) }, documents.updateDocument);
    } else if (kind.bring) {
      await this.edit(name, { do: kind.do, value }, { ...request, edit: kind.bring(value) },
        documents.updateDocument);
    } else {
      await this.edit(name, { do: kind.do, value, ...(collection === "rooms" ? { replaces: shown } : {}) },
        { ...request, json: JSON.stringify(value) }, documents.putDocument);
    }
  }

  async work() {
    while (!stopping) await this.act();
  }
}

await Promise.all(Array.from({ length: plan.hands }, (_, number) => new Hand(number).work()));
end();
