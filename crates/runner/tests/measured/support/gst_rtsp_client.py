"""GStreamer as a client of RTSP: "publish URL PROTOCOL" sends H.264 and G.711; "play URL PROTOCOL" plays pictures, pauses after two
seconds for two seconds, and plays on. It ends with its standard input, and prints how many frames came before, in and behind the pause."""
import sys
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

Gst.init(None)
does, url, protocol = sys.argv[1:]
if does == "publish":
    pipeline = Gst.parse_launch(
        "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1 ! x264enc tune=zerolatency key-int-max=25 ! "
        f"rtspclientsink name=s location={url} protocols={protocol} audiotestsrc is-live=true ! audioconvert ! audioresample ! alawenc ! s."
    )
    pipeline.set_state(Gst.State.PLAYING)
    sys.stdin.read()
    pipeline.set_state(Gst.State.NULL)
else:
    counts = [0, 0, 0]
    now = 0
    pipeline = Gst.parse_launch(
        f"rtspsrc name=s location={url} protocols={protocol} latency=100 s. ! application/x-rtp,media=video ! rtph264depay ! "
        "video/x-h264,alignment=au ! fakesink sync=false async=false signal-handoffs=true name=frames"
    )

    def came(*_):
        counts[now] += 1

    pipeline.get_by_name("frames").connect("handoff", came)
    pipeline.set_state(Gst.State.PLAYING)
    while counts[0] == 0:
        time.sleep(0.02)
    print("ready", flush=True)
    time.sleep(2)
    pipeline.set_state(Gst.State.PAUSED)
    # What is under way arrives.
    time.sleep(0.5)
    now = 1
    print("paused", flush=True)
    time.sleep(2)
    now = 2
    pipeline.set_state(Gst.State.PLAYING)
    sys.stdin.read()
    print("before={} meanwhile={} after={}".format(*counts), flush=True)
    pipeline.set_state(Gst.State.NULL)
