"""GStreamer's SRT elements as a listener or a caller: "send URI" or "receive URI FILE", until SIGTERM; then the element's own statistics."""
import json
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

Gst.init(None)
PICTURES = "videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=25/1 ! x264enc speed-preset=ultrafast tune=zerolatency key-int-max=25 ! h264parse"
if sys.argv[1] == "send":
    launch = PICTURES + " ! mpegtsmux alignment=7 ! srtsink name=srt"
else:
    launch = "srtsrc name=srt ! filesink name=file"
pipeline = Gst.parse_launch(launch)
srt = pipeline.get_by_name("srt")
srt.set_property("uri", sys.argv[2])
if sys.argv[1] != "send":
    pipeline.get_by_name("file").set_property("location", sys.argv[3])
loop = GLib.MainLoop()


def plain(value):
    """A structure with what is in it, its callers among it, as JSON has them."""
    if isinstance(value, Gst.Structure):
        names = [value.nth_field_name(number) for number in range(value.n_fields())]
        return {name: plain(value.get_value(name)) for name in names}
    if isinstance(value, (int, float, str)):
        return value
    try:
        return [plain(each) for each in value]
    except TypeError:
        return str(value)


last = {}


def sample():
    global last
    stats = plain(srt.get_property("stats"))
    if "callers" not in stats or stats["callers"]:
        last = stats
    return True


GLib.timeout_add(100, sample)
GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGTERM, loop.quit)
pipeline.set_state(Gst.State.PLAYING)
loop.run()
sample()
pipeline.set_state(Gst.State.NULL)
print(json.dumps(last), flush=True)
