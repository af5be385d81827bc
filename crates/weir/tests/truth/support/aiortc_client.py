"""A client of aiortc: publishes a noisy picture and silence by WHIP, or plays by WHEP.

Usage: publish|play URL. Says "ready" once it is connected. When its standard input ends it stops sending, or asks the server
to, and prints packets, packets lost, frames of pictures (made, or decoded), all seen from its side.
"""

import asyncio
import fractions
import os
import sys
import urllib.parse
import urllib.request

import av
import numpy
from aiortc import RTCPeerConnection, RTCRtpSender, RTCSessionDescription, VideoStreamTrack
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError

frames = 0


class Picture(VideoStreamTrack):
    async def recv(self):
        global frames
        timestamp, time_base = await self.next_timestamp()
        # Noise, so that a frame takes several packets.
        picture = numpy.random.randint(0, 255, (120, 160, 3), numpy.uint8)
        frame = av.VideoFrame.from_ndarray(picture, format="bgr24")
        frame.pts, frame.time_base = timestamp, fractions.Fraction(time_base)
        frames += 1
        return frame


async def decode(track):
    global frames
    while True:
        try:
            await track.recv()
        except MediaStreamError:
            return
        frames += track.kind == "video"


def ask(method, url, body=None):
    fields = {"Content-Type": "application/sdp"} if body else {}
    request = urllib.request.Request(url, body and body.encode(), fields, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.headers, answer.read().decode()


async def main(publishes, url):
    peer = RTCPeerConnection()
    if publishes:
        for track in (Picture(), AudioStreamTrack()):
            peer.addTrack(track)
    else:
        for kind in ("video", "audio"):
            peer.addTransceiver(kind, direction="recvonly")
        peer.on("track", lambda track: asyncio.ensure_future(decode(track)))
    for transceiver in peer.getTransceivers():
        if publishes:
            transceiver.direction = "sendonly"
        if transceiver.kind == "video":
            codecs = RTCRtpSender.getCapabilities("video").codecs
            transceiver.setCodecPreferences([codec for codec in codecs if codec.mimeType == "video/H264"])
    connected = asyncio.Event()
    peer.on("connectionstatechange", lambda: peer.connectionState == "connected" and connected.set())
    await peer.setLocalDescription(await peer.createOffer())
    loop = asyncio.get_running_loop()
    head, answer = await loop.run_in_executor(None, ask, "POST", url, peer.localDescription.sdp)
    await peer.setRemoteDescription(RTCSessionDescription(sdp=answer, type="answer"))
    await asyncio.wait_for(connected.wait(), 30)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    resource = urllib.parse.urljoin(url, head["Location"])
    if publishes:
        for sender in peer.getSenders():
            sender.replaceTrack(None)
    else:
        await loop.run_in_executor(None, ask, "DELETE", resource)
    await asyncio.sleep(0.5)
    packets = lost = 0
    for report in (await peer.getStats()).values():
        if report.type == "outbound-rtp":
            packets += report.packetsSent
        elif report.type == "inbound-rtp":
            packets += report.packetsReceived
            lost += report.packetsLost
        elif report.type == "remote-inbound-rtp":
            lost += report.packetsLost
    print(packets, lost, frames, flush=True)
    if publishes:
        await loop.run_in_executor(None, ask, "DELETE", resource)
    await peer.close()


# libx264 writes to standard error whatever the level of logging: only Python goes on to.
sys.stderr = os.fdopen(os.dup(2), "w", 1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
asyncio.run(main(sys.argv[1] == "publish", sys.argv[2]))
