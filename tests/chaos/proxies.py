#!/usr/bin/env python3
"""
What goes wrong between processes. One HTTP proxy stands in front of the router: it drops answers
after the request was carried out, delays requests long past their callers' patience, and delivers
some twice. Byte proxies stand in front of the nodes: they swallow answers and then cut, or hold all
bytes for a while.

A process of its own. Its first line of input is a plan: {"seed", "front": {"listen", "to"},
"links": [{"listen", "to"}], "late_max_s"}. It prints "ready". The line "calm" ends all faults, waits
until everything late is delivered, and prints the counters as JSON; the end of input ends it.
"""

import asyncio
import collections
import json
import os
import random
import sys

LATE_MAX = 20000       # Requests held at once; beyond it they pass.
BODY_MAX = 8 << 20
# What happens to a request: shares of 100; the rest passes unharmed.
FATES = {"dropped": 4, "late": 3, "twice": 3, "cut_before": 2}
LINK_FAULT_EVERY_S = 0.7
LINK_HOLD_MAX_S = 6.0


async def read_message(reader):
    """(head, all bytes) of one HTTP/1.1 message with a length, or in chunks; None at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    fields = head.lower()
    if b"transfer-encoding: chunked" in fields:
        return head, head + await read_chunks(reader)
    at = fields.find(b"\r\ncontent-length:")
    length = int(fields[at + 17:fields.index(b"\r\n", at + 2)]) if at >= 0 else 0
    if length > BODY_MAX:
        raise ValueError(f"a body of {length} bytes")
    return head, head + (await reader.readexactly(length) if length else b"")


async def read_chunks(reader):
    parts = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        parts += [line, await reader.readexactly(size + 2)]
        if size == 0:
            return b"".join(parts)


class Front:
    """In front of the router."""

    def __init__(self, plan, dice, counts):
        self.host, self.port = plan["front"]["to"].split(":")
        self.late_max_s, self.dice, self.counts = plan["late_max_s"], dice, counts
        self.idle = collections.deque(maxlen=256)
        self.late, self.serving = set(), set()
        self.calm = False

    async def ask(self, request):
        """The router's answer; what it had on an idle connection that has ended is asked again
        only if nothing of an answer came, so a proxy's own retry is a duplicate delivery, too."""
        for reader, writer in self.idle_then_new():
            if writer is None:
                reader, writer = await asyncio.open_connection(self.host, int(self.port))
            try:
                writer.write(request)
                await writer.drain()
                answer = await read_message(reader)
            except (OSError, asyncio.IncompleteReadError):
                answer = None
            if answer is None:
                writer.close()
                continue
            self.keep(reader, writer)
            return answer[1]
        return None

    def idle_then_new(self):
        if self.idle:
            yield self.idle.pop()
        yield None, None

    def keep(self, reader, writer):
        if len(self.idle) < self.idle.maxlen:
            self.idle.append((reader, writer))
        else:
            writer.close()

    async def deliver_later(self, request):
        # Most within seconds, some after a minute.
        delay_s = self.late_max_s * self.dice.random() ** 3
        self.counts["longest_delay_s"] = max(self.counts["longest_delay_s"], round(delay_s, 1))
        await asyncio.sleep(delay_s)
        try:
            if await self.ask(request) is not None:
                self.counts["delivered_late"] += 1
        except OSError:
            self.counts["late_lost"] += 1

    def hold(self, request):
        task = asyncio.create_task(self.deliver_later(request))
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    def fate(self):
        if self.calm:
            return "passed"
        roll = self.dice.random() * 100
        for fate, share in FATES.items():
            roll -= share
            if roll < 0:
                return fate if fate != "late" or len(self.late) < LATE_MAX else "passed"
        return "passed"

    async def one(self, request, writer):
        """Whether the caller's connection goes on."""
        fate = self.fate()
        self.counts[fate] += 1
        if fate == "cut_before":
            return False
        if fate == "late":
            self.hold(request)
            return False
        if fate == "twice":
            self.hold(request)
        answer = await self.ask(request)
        if answer is None or fate == "dropped":
            return False
        writer.write(answer)
        await writer.drain()
        return True

    async def serve(self, reader, writer):
        self.serving.add(asyncio.current_task())  # The loop itself holds tasks weakly.
        try:
            while True:
                message = await read_message(reader)
                if message is None or not await self.one(message[1], writer):
                    break
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass
        finally:
            self.serving.discard(asyncio.current_task())
            writer.close()


class Link:
    """One connection to a node: bytes pass, are held, or are swallowed."""

    def __init__(self, *ends):
        self.ends, self.serving = ends, None
        self.open = asyncio.Event()  # Cleared while bytes are held.
        self.open.set()
        self.swallow = False


class Links:
    """In front of a node's ports."""

    def __init__(self, dice, counts):
        self.dice, self.counts = dice, counts
        self.live, self.faults = set(), set()
        self.calm = False

    async def pump(self, reader, writer, link, answers):
        while data := await reader.read(65536):
            await link.open.wait()
            if answers and link.swallow:
                continue
            writer.write(data)
            await writer.drain()

    def server(self, host, port):
        async def serve(reader, writer):
            try:
                node = await asyncio.open_connection(host, port)
            except OSError:
                writer.close()
                return
            link = Link(writer, node[1])
            link.serving = asyncio.current_task()  # The loop itself holds tasks weakly.
            self.live.add(link)
            pumps = [asyncio.create_task(self.pump(reader, node[1], link, False)),
                     asyncio.create_task(self.pump(node[0], writer, link, True))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.live.discard(link)
            for end in link.ends:
                end.close()
        return serve

    async def disturb(self):
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / LINK_FAULT_EVERY_S))
            if self.calm or not self.live:
                continue
            link = self.dice.choice(list(self.live))
            if self.dice.random() < 0.5:
                self.counts["links_held"] += 1
                fault = self.held(link, LINK_HOLD_MAX_S * self.dice.random() ** 2)
            else:
                self.counts["links_deaf_then_cut"] += 1
                fault = self.deaf(link, 1.5 * self.dice.random())
            task = asyncio.create_task(fault)
            self.faults.add(task)
            task.add_done_callback(self.faults.discard)

    async def held(self, link, seconds):
        link.open.clear()
        await asyncio.sleep(seconds)
        link.open.set()

    async def deaf(self, link, seconds):
        link.swallow = True
        await asyncio.sleep(seconds)
        for end in link.ends:
            end.close()


async def run():
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    plan = json.loads(await reader.readline())
    dice, counts = random.Random(plan["seed"]), collections.Counter()
    front, links = Front(plan, dice, counts), Links(dice, counts)
    where = plan["front"]["listen"].split(":")
    servers = [await asyncio.start_server(front.serve, where[0], int(where[1]), limit=BODY_MAX)]
    for link in plan["links"]:
        (host, port), to = link["listen"].split(":"), link["to"].split(":")
        servers.append(await asyncio.start_server(links.server(to[0], int(to[1])), host, int(port)))
    disturbing = asyncio.create_task(links.disturb())  # Referenced as long as it runs.
    print("ready", flush=True)
    while line := await reader.readline():
        assert not disturbing.done()
        if line.strip() == b"calm":
            front.calm = links.calm = True
            while front.late:
                await asyncio.wait(set(front.late))
            print(json.dumps(counts), flush=True)
    os._exit(0)  # What is still open is of no interest; cancelling it would only be told.


if __name__ == "__main__":
    asyncio.run(run())
