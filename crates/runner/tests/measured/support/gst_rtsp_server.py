"""GStreamer's RTSP server: a port on the first line; with a scheme as its argument, user "me" and password "mine"; with "tls" and the
files of a certificate and its key, by TLS and for all."""
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gio, GLib, Gst, GstRtspServer  # noqa: E402

Gst.init(None)
PICTURES = "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=%d/1 ! x264enc speed-preset=superfast %s"
SOUND = "audiotestsrc is-live=true ! audioconvert ! audioresample"
RAW = "videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240,framerate=10/1 ! "
STREAMS = {
    "/av": PICTURES % (25, "tune=zerolatency key-int-max=25")
    + " ! rtph264pay name=pay0 pt=96 "
    + SOUND
    + " ! voaacenc ! rtpmp4gpay name=pay1 pt=97",
    "/reordered": PICTURES % (30, "bframes=2 b-adapt=false key-int-max=60") + " ! video/x-h264,profile=main ! rtph264pay config-interval=-1 name=pay0 pt=96",
    "/slow": PICTURES % (5, "tune=zerolatency key-int-max=5") + " ! rtph264pay name=pay0 pt=96",
    "/latm": SOUND + " ! voaacenc ! rtpmp4apay name=pay0 pt=97",
    "/g711": SOUND + " ! alawenc ! rtppcmapay name=pay0 pt=8",
    "/vp8": RAW + "vp8enc deadline=1 keyframe-max-dist=10 ! rtpvp8pay name=pay0 pt=96",
    "/vp9": RAW + "vp9enc deadline=1 cpu-used=8 lag-in-frames=0 keyframe-max-dist=10 ! rtpvp9pay name=pay0 pt=96",
    "/h265": RAW + "x265enc speed-preset=ultrafast tune=zerolatency key-int-max=10 ! rtph265pay config-interval=-1 name=pay0 pt=96",
    "/jpeg": RAW + "jpegenc ! rtpjpegpay name=pay0 pt=26",
}
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
for path, launch in STREAMS.items():
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch("( " + launch + " )")
    factory.set_shared(True)
    if len(sys.argv) > 1:
        permissions = GstRtspServer.RTSPPermissions()
        permissions.add_role("user")
        for permission in ("media.factory.access", "media.factory.construct"):
            permissions.add_permission_for_role("user", permission, True)
        factory.set_permissions(permissions)
    server.get_mount_points().add_factory(path, factory)
if len(sys.argv) > 1:
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    if sys.argv[1] == "tls":
        auth.set_tls_certificate(Gio.TlsCertificate.new_from_files(*sys.argv[2:]))
        auth.set_default_token(token)
    elif sys.argv[1] == "basic":
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic("me", "mine"), token)
    else:
        # GST_RTSP_AUTH_DIGEST
        auth.set_supported_methods(2)
        auth.add_digest("me", "mine", token)
    server.set_auth(auth)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
