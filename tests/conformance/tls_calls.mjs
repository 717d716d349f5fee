// Stock JavaScript clients (connect-node in all its protocols, grpc-js), asked to grant in each of
// some situations: tls_calls.mjs '[{"name", "url", "ca", "key", "player"}, ..]'. Prints
// {situation: {client: {"code", "message"}}}; the caller judges.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { LedgerService } from "./gen/holdfast/v1/ledger_pb.js";

const patienceMs = 20000;
const idl = fileURLToPath(new URL("../../idl", import.meta.url));
const { holdfast } = grpc.loadPackageDefinition(loader.loadSync("holdfast/v1/ledger.proto", {
  includeDirs: [idl], longs: String, enums: String, defaults: true }));

const snake = (name) => name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

function transports({ url, ca, key }) {
  const isTls = url.startsWith("https:");
  const options = isTls ? { ca: readFileSync(ca) } : {};
  const common = { baseUrl: url, nodeOptions: options, interceptors: [(next) => (request) => {
    if (key) request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  }] };
  return {
    "connect JSON, HTTP/1.1": createConnectTransport({
      ...common, httpVersion: "1.1", useBinaryFormat: false }),
    "connect binary, HTTP/2": createConnectTransport({ ...common, httpVersion: "2" }),
    "connect gRPC": createGrpcTransport(common),
    "connect gRPC-Web, HTTP/1.1": createGrpcWebTransport({ ...common, httpVersion: "1.1" }),
  };
}

async function byConnect(name, transport, situation) {
  const player = situation.player;
  try {
    const answer = await createClient(LedgerService, transport).grant({
      playerId: player, opId: `admin:${player}-${name}`.replace(/[^\w:-]/g, "-"),
      authority: "system:payments",
      currencies: [{ currency: "gold", amount: 5n }],
    }, { timeoutMs: patienceMs });
    return { code: "ok", message: answer.balances[0].currency };
  } catch (error) {
    const { code, rawMessage, cause } = ConnectError.from(error);
    return { code: snake(Code[code]), message: `${rawMessage} ${cause?.message ?? ""}` };
  }
}

function byGrpcJs({ url, ca, key, player }) {
  const isTls = url.startsWith("https:");
  const client = new holdfast.v1.LedgerService(new URL(url).host, isTls
    ? grpc.credentials.createSsl(readFileSync(ca)) : grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  if (key) metadata.set("authorization", `Bearer ${key}`);
  const request = {
    playerId: player, opId: `admin:${player}-grpc-js`, authority: "system:payments",
    currencies: [{ currency: "gold", amount: "5" }] };
  return new Promise((resolve) => {
    client.Grant(request, metadata, { deadline: Date.now() + patienceMs }, (error, answer) => {
      client.close();
      resolve(error ? { code: snake(grpc.status[error.code]), message: error.details }
        : { code: "ok", message: answer.balances[0].currency });
    });
  });
}

const results = {};
for (const situation of JSON.parse(process.argv[2])) {
  const one = { "grpc-js": await byGrpcJs(situation) };
  for (const [name, transport] of Object.entries(transports(situation)))
    one[name] = await byConnect(name, transport, situation);
  results[situation.name] = one;
}
console.log(JSON.stringify(results));
process.exit(0);
