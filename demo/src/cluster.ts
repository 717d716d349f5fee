// The processes of the local cluster, from the file `holdfast dev` keeps.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clients } from "./clients.js";

export interface Process {
  name: string;
  pid: number;
  starts: number;
}

export class Cluster {
  constructor(private readonly file: string) {}

  read(): { endpoint: string; processes: Process[] } {
    return JSON.parse(readFileSync(this.file, "utf8"));
  }

  process(name: string): Process {
    const found = this.read().processes.find((process) => process.name === name);
    if (found === undefined) throw new Error(`no process ${name}`);
    return found;
  }

  kill(name: string): void {
    process.kill(this.process(name).pid, "SIGKILL");
  }

  // Waits until the node runs again and holds every shard as its peers do.
  async waitBack(clients: Clients, name: string, starts: number, endMs: number): Promise<void> {
    while (performance.now() < endMs) {
      await sleep(100);
      if (this.process(name).starts < starts) continue;
      try {
        const { nodes } = await clients.admin.getCluster({}, { timeoutMs: 2000 });
        const node = nodes.find((one) => one.name === name);
        if (node?.live !== true) continue;
        const { shards } = await clients.admin.listShards({}, { timeoutMs: 2000 });
        const states = shards.flatMap((shard) => shard.replicas)
          .filter((replica) => replica.replicaId === node.replicaId).map(({ state }) => state);
        if (states.length > 0 && states.every((state) => state === "ok")) return;
      } catch {
        continue; // Asked again in a moment.
      }
    }
    throw new Error(`${name} did not come back`);
  }
}
