"""A server of aiortc: a noisy picture in H.264 for each who posts an offer to a path of WHEP, and a decoder for each who
posts one to a path of WHIP.

With `passive` it waits for DTLS, which it begins otherwise; with `rsa` its certificates are of RSA; with `link=…` that is
a Link header of its answers.

Prints its port, and when its standard input ends: peers; packets sent, reported as lost, peers that reported; packets
received, lost, frames decoded.
"""

import asyncio
import fractions
import os
import sys

import av
import numpy
from aiortc import RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from aiortc import rtcdtlstransport
from aiortc.mediastreams import MediaStreamError
from cryptography.hazmat.primitives.asymmetric import rsa

if "rsa" in sys.argv:
    rtcdtlstransport.ec.generate_private_key = lambda *_: rsa.generate_private_key(65537, 2048)


class Picture(VideoStreamTrack):
    async def recv(self):
        timestamp, time_base = await self.next_timestamp()
        # Noise, so that a frame takes several packets.
        picture = numpy.random.randint(0, 255, (120, 160, 3), numpy.uint8)
        frame = av.VideoFrame.from_ndarray(picture, format="bgr24")
        frame.pts, frame.time_base = timestamp, fractions.Fraction(time_base)
        return frame


# libx264 writes to standard error whatever the level of logging: only Python goes on to.
sys.stderr = os.fdopen(os.dup(2), "w", 1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
peers = []
decoded = 0
links = "".join(f"Link: {word[5:]}\r\n" for word in sys.argv if word.startswith("link="))


async def decode(track):
    global decoded
    while True:
        try:
            await track.recv()
        except MediaStreamError:
            return
        decoded += 1


async def answer(offer, publishes):
    peer = RTCPeerConnection()
    peers.append(peer)
    peer.on("track", lambda track: asyncio.ensure_future(decode(track)) if publishes else None)
    await peer.setRemoteDescription(RTCSessionDescription(sdp=offer, type="offer"))
    for transceiver in peer.getTransceivers():
        if transceiver.kind == "video" and not publishes:
            peer.addTrack(Picture())
        if "passive" in sys.argv:
            transceiver._transport._set_role("server")
    await peer.setLocalDescription(await peer.createAnswer())
    return peer.localDescription.sdp


async def serve(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    body = (await reader.readexactly(int(fields.get("content-length", 0)))).decode()
    if head.startswith("POST"):
        try:
            status, kind, said = "201 Created", "application/sdp", await answer(body, "/whip" in head)
        except Exception as error:  # Said to the client, whose test then fails with it.
            status, kind, said = "500 Failed", "text/plain", repr(error)
    else:
        status, kind, said = "200 OK", "text/plain", ""
        await peers[int(head.split("/session/")[1].split(" ")[0])].close()
    writer.write(
        f"HTTP/1.1 {status}\r\nLocation: /session/{len(peers) - 1}\r\n{links}Content-Type: {kind}\r\n"
        f"Content-Length: {len(said)}\r\nConnection: close\r\n\r\n{said}".encode()
    )
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    sent = lost = reports = came = missing = 0
    last = {}
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not ended.done():
        await asyncio.sleep(0.1)
        for peer in peers:
            for report in (await peer.getStats()).values():
                if report.type in ("outbound-rtp", "remote-inbound-rtp", "inbound-rtp"):
                    last[(id(peer), report.type, report.ssrc)] = report
    for (_, kind, _), report in last.items():
        if kind == "outbound-rtp":
            sent += report.packetsSent
        elif kind == "inbound-rtp":
            came += report.packetsReceived
            missing += report.packetsLost
        else:
            reports += 1
            lost += report.packetsLost
    print(len(peers), sent, lost, reports, came, missing, decoded, flush=True)


asyncio.run(main())
