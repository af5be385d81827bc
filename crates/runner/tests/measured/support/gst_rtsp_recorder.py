"""GStreamer's RTSP server for a publisher of H.264 and AAC at /live: a port on the first line; what came of each track, and what its
RTP packets lacked, when its standard input ends."""
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

Gst.init(None)
counts = {"frames": 0, "sounds": 0}


def count(media, name):
    def came(*_):
        counts[name] += 1

    media.get_element().get_by_name(name).connect("handoff", came)


def configured(_, media):
    for name in counts:
        count(media, name)


server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
factory.set_latency(200)
SINK = "fakesink sync=false signal-handoffs=true name="
factory.set_launch(
    "( rtph264depay name=depay0 ! video/x-h264,alignment=au ! " + SINK + "frames rtpmp4gdepay name=depay1 ! " + SINK + "sounds )"
)
factory.connect("media-configure", configured)
server.get_mount_points().add_factory("/live", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
loop = GLib.MainLoop()


def end():
    sys.stdin.read()
    print(" ".join(f"{name}={value}" for name, value in counts.items()), flush=True)
    loop.quit()


threading.Thread(target=end, daemon=True).start()
loop.run()
