//! The version of a program that must not be run: out of the package that brought it, or its path.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// The version, as it was found.
    pub text: String,
    /// Where it was found.
    pub source: VersionSource,
}

/// Where a version was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VersionSource {
    /// The Debian package of this name, which owns the executable (`/var/lib/dpkg`, in the file system that
    /// the process sees).
    Dpkg(String),
    /// A component of the executable's path, as in `/opt/srs-6.0.48/objs/srs`.
    Path,
}

/// The version of the program at `executable`, in the file system that `pid` sees.
pub(super) fn find(pid: u32, executable: &str) -> Option<Version> {
    of_package(Path::new(&format!("/proc/{pid}/root/var/lib/dpkg")), executable)
        .or_else(|| of_path(executable))
}

/// Looks through dpkg's lists of files, one a package: a thousand of them take some 10 ms, once.
fn of_package(database: &Path, executable: &str) -> Option<Version> {
    let package = fs::read_dir(database.join("info")).ok()?.find_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?.strip_suffix(".list")?;
        let files = fs::read_to_string(&path).ok()?;
        // A list made before /usr was merged names /bin/x what is /usr/bin/x now.
        let merged = executable.strip_prefix("/usr");
        let owns = files.lines().any(|file| file == executable || Some(file) == merged);
        owns.then(|| name.split(':').next().unwrap_or(name).to_owned())
    })?;
    let text = version_in_status(&fs::read_to_string(database.join("status")).ok()?, &package)?;
    Some(Version { text, source: VersionSource::Dpkg(package) })
}

/// The version of a package in `/var/lib/dpkg/status`: paragraphs of `Field: value`.
fn version_in_status(status: &str, package: &str) -> Option<String> {
    let mut paragraphs = status.split("\n\n");
    let field = |paragraph: &str, name: &str| {
        paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    };
    let paragraph = paragraphs.find(|paragraph| field(paragraph, "Package").as_deref() == Some(package))?;
    field(paragraph, "Version")
}

/// The last component of the path that holds a version, as `name-1.2.3`, `v20.1.0` or `1.2.3` do.
fn of_path(executable: &str) -> Option<Version> {
    let text = executable.rsplit('/').find_map(|component| {
        let parts = component.split(['-', '_']);
        let mut versions = parts.filter(|part| is_version(part.trim_start_matches('v')));
        versions.next().map(|version| version.trim_start_matches('v').to_owned())
    })?;
    Some(Version { text, source: VersionSource::Path })
}

/// Two numbers or more, with dots between.
fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.contains('.') && text.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_tell_the_version() {
        for (path, version) in [
            ("/opt/srs-6.0.48/objs/srs", Some("6.0.48")),
            ("/root/.nvm/versions/node/v20.11.1/bin/node", Some("20.11.1")),
            ("/nix/store/0c2zq-nginx-1.26.2/bin/nginx", Some("1.26.2")),
            ("/usr/bin/python3.11", None),
            ("/usr/sbin/nginx", None),
            ("/opt/a.b/x", None),
            ("/opt/v1/x", None),
        ] {
            assert_eq!(of_path(path).map(|it| it.text).as_deref(), version, "{path}");
        }
    }

    #[test]
    fn the_package_that_owns_the_file_tells_its_version() {
        let database = tempfile::tempdir().unwrap();
        fs::create_dir(database.path().join("info")).unwrap();
        fs::write(database.path().join("info/nginx-common.list"), "/.\n/etc/nginx\n").unwrap();
        fs::write(database.path().join("info/nginx:amd64.list"), "/.\n/usr/sbin\n/usr/sbin/nginx\n").unwrap();
        fs::write(database.path().join("info/dash.list"), "/bin/dash\n").unwrap();
        let status = "Package: nginx-common\nVersion: 1\n\nPackage: nginx\nStatus: install ok installed\n\
            Description: small\n Version: 0\nVersion: 1.22.1-9+deb12u3\n\nPackage: dash\nVersion: 0.5\n";
        fs::write(database.path().join("status"), status).unwrap();
        assert_eq!(
            of_package(database.path(), "/usr/sbin/nginx"),
            Some(Version { text: "1.22.1-9+deb12u3".into(), source: VersionSource::Dpkg("nginx".into()) })
        );
        assert_eq!(of_package(database.path(), "/usr/bin/dash").unwrap().text, "0.5");
        assert_eq!(of_package(database.path(), "/usr/local/bin/srs"), None);
    }
}
