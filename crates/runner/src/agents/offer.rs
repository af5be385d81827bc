//! What is sent to agents: the scenario without what only the coordinator does, and the files that it names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use weir_agents::frame::{Offer, SentFile};
use weir_agents::parts;
use weir_clients::Filling;
use weir_engine::ingest;
use weir_engine::run::Prepared;
use weir_engine::scenario::Scenario;
use weir_setting::AGENTS;

/// Bytes of a message that are not the offer's: 10,000 agents' shares of 10 workloads are less.
const AROUND: usize = 4 << 10;
/// Bytes of an offer, at the most: what a message may have in parts.
const LARGEST: usize = parts::LARGEST - AROUND;

/// What this weir counts, so that what two of them count can be added: the same declarations have the same text.
pub(super) fn figures() -> String {
    let mut hash = Sha256::new();
    for scheme in weir_protocols::schemes().chain([ingest::PROTOCOL]) {
        let figures = ingest::schema_of(scheme).into_iter().flat_map(|schema| schema.figures());
        figures.for_each(|figure| {
            hash.update(format!("{scheme}/{}/{:?}/{:?};", figure.name, figure.unit, figure.kind));
        });
    }
    let digest = hash.finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The offer of a prepared run.
pub(super) fn of(prepared: &Prepared) -> Result<Offer, String> {
    let mut scenario = prepared.scenario.clone();
    if scenario.workloads.iter().any(|it| !it.probe.0.is_empty()) {
        return Err(format!("`probe` asks from this machine; leave {AGENTS} out of such a run"));
    }
    if let Some(messages) = prepared.consuming.as_ref().map(|it| &it.messages)
        && let Some(spec) = scenario.workloads.get_mut(usize::from(messages.workload))
    {
        spec.options = std::mem::take(&mut spec.options).with("client_id", messages.name.clone());
    }
    // These are the coordinator's.
    (scenario.before, scenario.during, scenario.after) = (Vec::new(), Vec::new(), Vec::new());
    (scenario.thresholds, scenario.abort, scenario.accept) = (Vec::new(), Vec::new(), Vec::new());
    (scenario.prometheus, scenario.prometheus_instance, scenario.node_exporter) = (None, None, None);
    (scenario.watch, scenario.bind_addr) = (Vec::new(), Vec::new());
    (scenario.repeat, scenario.order, scenario.find) = (None, None, None);
    let payloads = scenario.workloads.iter().flat_map(|it| it.options.texts("payload"));
    let directories =
        payloads.filter_map(|payload| payload.strip_prefix("dir:").map(PathBuf::from)).collect();
    let (mut files, mut trouble) = (SentFiles { directories, ..SentFiles::default() }, None);
    scenario.clone().each_file(&mut |path| {
        if let Err(words) = files.add(path) {
            trouble.get_or_insert(words);
        }
    });
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    let offer = Offer {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        figures: figures(),
        scenario: serde_json::to_value(&scenario).map_err(|error| error.to_string())?,
        targets: prepared.workloads.iter().map(|(facts, _)| facts.targets.clone()).collect(),
        servers: prepared.workloads.iter().map(|(facts, _)| facts.servers.clone()).collect(),
        files: files.files,
        segment: None,
        slice_seconds: prepared.slice_seconds,
    };
    let size = serde_json::to_vec(&offer).map_err(|error| error.to_string())?.len();
    if size > LARGEST { Err(too_large()) } else { Ok(offer) }
}

fn too_large() -> String {
    format!(
        "the scenario and its files are more than the {} MB that agents are sent; use smaller files",
        LARGEST >> 20
    )
}

/// The files that go with an offer.
#[derive(Default)]
struct SentFiles {
    files: Vec<SentFile>,
    /// The directories whose files are payloads. Any other option that names a directory is a mistake, and sends nothing.
    directories: Vec<PathBuf>,
    /// Bytes of their contents, as they are sent.
    size: usize,
}

impl SentFiles {
    /// Adds a file; of a directory of payloads each file, numbered in their order.
    fn add(&mut self, path: &Path) -> Result<(), String> {
        if !self.directories.iter().any(|directory| directory == path) {
            return self.add_as(path.display().to_string(), path);
        }
        let files = Filling::files(path).map_err(|error| error.to_string())?;
        let numbered = |number: usize| path.join(format!("{number:08}")).display().to_string();
        files.iter().enumerate().try_for_each(|(number, file)| self.add_as(numbered(number), file))
    }

    fn add_as(&mut self, path: String, file: &Path) -> Result<(), String> {
        if self.files.iter().any(|sent| sent.path == path) {
            return Ok(());
        }
        let bytes = contents(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let contents = BASE64.encode(bytes);
        self.size += contents.len();
        self.files.push(SentFile { path, contents });
        if self.size > LARGEST { Err(too_large()) } else { Ok(()) }
    }
}

/// What is in a file, which may be endless.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LARGEST { Err(io::Error::other(too_large())) } else { Ok(bytes) }
}

/// The scenario of an offer, with its files in `folder`. It can name no others.
pub(super) fn scenario(offer: &Offer, folder: &Path) -> Result<Scenario, String> {
    let mut scenario: Scenario =
        serde_json::from_value(offer.scenario.clone()).map_err(|error| format!("the scenario: {error}"))?;
    let mut trouble = None;
    scenario.each_file(&mut |path| match own_path(offer, folder, path) {
        Ok(own) => *path = own,
        Err(words) => trouble = Some(words),
    });
    trouble.map_or(Ok(scenario), Err)
}

/// Where what was sent of a file, or of a directory, stands now. Its name is a number and, of a file, the end of its own, which may
/// say what it is.
fn own_path(offer: &Offer, folder: &Path, path: &Path) -> Result<PathBuf, String> {
    let sent = || offer.files.iter().enumerate();
    let text = path.display().to_string();
    if let Some((number, file)) = sent().find(|(_, sent)| sent.path == text) {
        let is_plain = |it: &&str| it.len() <= 8 && it.chars().all(|c| c.is_ascii_alphanumeric());
        let end = Path::new(&file.path).extension().and_then(|end| end.to_str()).filter(is_plain);
        return written(file, folder.join(format!("{number}.{}", end.unwrap_or("bin"))));
    }
    let mut inside = sent().filter(|(_, sent)| Path::new(&sent.path).parent() == Some(path)).peekable();
    let Some((first, _)) = inside.peek() else {
        return Err(format!("it names a file of this machine, {text}"));
    };
    let own = folder.join(first.to_string());
    fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    for (number, file) in inside {
        written(file, own.join(format!("{number:08}")))?;
    }
    Ok(own)
}

/// Writes a file that was sent.
fn written(file: &SentFile, own: PathBuf) -> Result<PathBuf, String> {
    let bytes = BASE64.decode(&file.contents).map_err(|error| format!("a file that was sent: {error}"))?;
    let mut options = OpenOptions::new();
    let open = options.write(true).create(true).truncate(true).mode(0o600).open(&own);
    open.and_then(|mut out| out.write_all(&bytes)).map_err(|error| format!("{}: {error}", own.display()))?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(scenario: &str, files: Vec<SentFile>) -> Offer {
        let scenario = serde_json::to_value(Scenario::parse(scenario).unwrap()).unwrap();
        Offer { scenario, files, ..Offer::default() }
    }

    #[test]
    fn a_scenario_reads_the_files_that_came_with_it_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let text = "{cacert: /etc/ca.pem, workloads: [{publish: 'mqtt://h/a', password_file: /etc/passwd, payload: 'file:/etc/passwd'}]}";
        let said = scenario(&offer(text, Vec::new()), folder.path()).unwrap_err();
        assert!(said.starts_with("it names a file of this machine, /etc/"), "{said}");
        let sent = |path: &str| SentFile { path: path.to_owned(), contents: BASE64.encode(path) };
        let made =
            scenario(&offer(text, vec![sent("/etc/ca.pem"), sent("/etc/passwd")]), folder.path()).unwrap();
        let ca = made.cacert.unwrap();
        assert_eq!(
            (ca.as_path(), fs::read_to_string(&ca).unwrap()),
            (&*folder.path().join("0.pem"), "/etc/ca.pem".to_owned())
        );
        let shown = serde_json::to_string(&made.workloads).unwrap();
        assert!(!shown.contains("/etc"), "{shown}");
    }

    #[test]
    fn a_file_that_is_called_by_a_number_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        for kind in ["file", "dir", "template", "avro", "json", "avro-json"] {
            let text = format!("{{workloads: [{{publish: 'mqtt://h/a', payload: '{kind}:123'}}]}}");
            let said = scenario(&offer(&text, Vec::new()), folder.path()).unwrap_err();
            assert_eq!(said, "it names a file of this machine, 123");
        }
        let size = "{workloads: [{publish: 'mqtt://h/a', payload: 'size:123'}]}";
        assert!(scenario(&offer(size, Vec::new()), folder.path()).is_ok());
    }

    #[test]
    fn a_directory_of_payloads_is_sent_file_by_file_in_its_order() {
        let (here, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, content) in [("z.json", "second"), ("a", "first"), (".hidden", "none")] {
            fs::write(here.path().join(name), content).unwrap();
        }
        let mut files = SentFiles { directories: vec![here.path().to_owned()], ..SentFiles::default() };
        files.add(here.path()).unwrap();
        files.add(here.path()).unwrap();
        assert_eq!(files.files.len(), 2);
        let text =
            format!("{{workloads: [{{publish: 'mqtt://h/a', payload: 'dir:{}'}}]}}", here.path().display());
        let made = scenario(&offer(&text, files.files), folder.path()).unwrap();
        let mut own = PathBuf::new();
        made.clone().each_file(&mut |path| own.clone_from(path));
        assert!(own.starts_with(folder.path()), "{}", own.display());
        let contents =
            Filling::files(&own).unwrap().into_iter().map(|file| fs::read_to_string(file).unwrap());
        assert_eq!(contents.collect::<Vec<_>>(), ["first", "second"]);
        let said = SentFiles::default().add(here.path()).unwrap_err();
        assert!(said.ends_with("Is a directory (os error 21)"), "of a key or a certificate: {said}");
        let said = SentFiles::default().add(Path::new("/nowhere/else")).unwrap_err();
        assert!(said.starts_with("/nowhere/else: "), "{said}");
    }

    #[test]
    fn figures_have_one_name() {
        assert_eq!(figures(), figures());
        assert_eq!(figures().len(), 16);
    }
}
