//! Clips of every codec, made by ffmpeg.

use std::path::{Path, PathBuf};
use weir_testing::program;

/// Every codec of pictures that weir reads: as they are asked for, and by name.
pub(crate) const CODECS: [(&str, &str); 5] =
    [("vp8", "VP8"), ("vp9", "VP9"), ("av1", "AV1"), ("h265", "H.265"), ("h264", "H.264")];

/// A file of four seconds, 100 pictures of 320x180, most of them of several packets; a keyframe every 30.
pub(crate) fn clip(folder: &Path, codec: &str) -> PathBuf {
    let (encoder, file): (&[&str], _) = match codec {
        "vp8" => (&["libvpx", "-deadline", "realtime", "-auto-alt-ref", "0"], "vp8.ivf"),
        "vp9" => (&["libvpx-vp9", "-deadline", "realtime", "-lag-in-frames", "0"], "vp9.webm"),
        "av1" => (&["libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"], "av1.mkv"),
        "h265" => {
            (&["libx265", "-preset", "ultrafast", "-x265-params", "scenecut=0:log-level=0"], "h265.mp4")
        }
        "h264" => (&["libx264", "-preset", "ultrafast", "-sc_threshold", "0"], "h264.mp4"),
        other => panic!("{other}"),
    };
    let path = folder.join(file);
    let source = "testsrc2=size=320x180:rate=25,noise=alls=20:allf=t";
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-y", "-f", "lavfi", "-i", source, "-frames:v", "100"]);
    ffmpeg.args(["-pix_fmt", "yuv420p", "-b:v", "1M", "-g", "30", "-bf", "0", "-c:v"]).args(encoder);
    let made = ffmpeg.arg(&path).output().unwrap();
    assert!(made.status.success(), "{codec}: {}", String::from_utf8_lossy(&made.stderr));
    path
}
