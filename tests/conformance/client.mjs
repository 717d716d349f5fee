// What the conformance tests share: where the server is, ids, and one client per protocol.
import { randomBytes } from "node:crypto";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import {
  createConnectTransport as createConnectWeb,
  createGrpcWebTransport as createGrpcWebWeb,
} from "@connectrpc/connect-web";

// For clients elsewhere in the tree, which have no packages of their own.
export { ConnectError, createClient } from "@connectrpc/connect";
export { createConnectTransport };

export const url = process.env.HOLDFAST_URL ?? "http://127.0.0.1:8080";
export const apiKey = process.env.HOLDFAST_API_KEY ?? "";
// The stub of tests/bench/http_bench_server.c answers "fail:<n>" and "silent" as it is told.
export const isStub = process.env.HOLDFAST_STUB === "1";

export const opId = () => opIdAt(Date.now());

export function opIdAt(ms) {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(ms, 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [8, 12, 16, 20, 32].map((end, i, all) => hex.slice(all[i - 1] ?? 0, end)).join("-");
}

const withKey = (next) => async (request) => {
  if (apiKey) request.header.set("authorization", `Bearer ${apiKey}`);
  return next(request);
};
const common = { baseUrl: url, interceptors: [withKey] };
// Every message goes as gzip, and gzip alone is asked for.
const packed = { ...common, sendCompression: compressionGzip, compressMinBytes: 0,
                 acceptCompression: [compressionGzip] };

export const transports = {
  "connect-node JSON, HTTP/1.1": createConnectTransport({
    ...common, httpVersion: "1.1", useBinaryFormat: false }),
  "connect-node binary, HTTP/1.1": createConnectTransport({
    ...common, httpVersion: "1.1", useBinaryFormat: true }),
  "connect-node JSON, HTTP/2": createConnectTransport({
    ...common, httpVersion: "2", useBinaryFormat: false }),
  "connect-node binary, HTTP/2": createConnectTransport({
    ...common, httpVersion: "2", useBinaryFormat: true }),
  "connect-node gRPC binary": createGrpcTransport(common),
  "connect-node gRPC JSON": createGrpcTransport({ ...common, useBinaryFormat: false }),
  "connect-node gRPC-Web, HTTP/1.1": createGrpcWebTransport({ ...common, httpVersion: "1.1" }),
  "connect-node gRPC-Web, HTTP/2": createGrpcWebTransport({ ...common, httpVersion: "2" }),
  "connect-node JSON, HTTP/1.1, gzip": createConnectTransport({
    ...packed, httpVersion: "1.1", useBinaryFormat: false }),
  "connect-node binary, HTTP/2, gzip": createConnectTransport({
    ...packed, httpVersion: "2", useBinaryFormat: true }),
  "connect-node gRPC binary, gzip": createGrpcTransport(packed),
  "connect-node gRPC-Web, HTTP/1.1, gzip": createGrpcWebTransport({
    ...packed, httpVersion: "1.1" }),
  "connect-web JSON": createConnectWeb({ ...common, useBinaryFormat: false }),
  "connect-web binary": createConnectWeb({ ...common, useBinaryFormat: true }),
  "connect-web gRPC-Web": createGrpcWebWeb(common),
};
