//! The programs and services that the tables of a stream name, bounded in number.

use crate::clock::{StreamTime, TICKS_PER_SECOND};
use crate::psi::{self, Entry};
use crate::section::Long;
use crate::stream_type::Codec;
use crate::text::TextCoding;

/// No transport stream has more; a hostile one may say so.
const MOST_PROGRAMS: usize = 512;
/// There are no more PIDs.
const MOST_COMPONENTS: usize = 8192;

/// One elementary stream of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its PID.
    pub pid: u16,
    /// ISO/IEC 13818-1 table 2-34.
    pub stream_type: u8,
    /// What that and its descriptors mean.
    pub codec: Codec,
    /// ISO 639-2 code.
    pub language: Option<String>,
    /// The text of its component descriptor.
    pub name: Option<String>,
}

/// A program out of the PAT, with its map once that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its number; in DVB and ARIB the service id.
    pub number: u16,
    /// The PID of its map.
    pub pmt_pid: u16,
    /// Version of its map; `None` until it has come.
    pub version: Option<u8>,
    /// The PID of its clock; 0x1FFF: it has none.
    pub pcr_pid: Option<u16>,
    /// Its elementary streams.
    pub components: Vec<Component>,
    pub(crate) watch: Watch,
    /// The checksum of its map.
    pub(crate) checksum: u32,
}

impl Program {
    /// The streams that decoding it depends on: video, or audio where there is no video.
    pub(crate) fn needs(&self, codec: Codec) -> bool {
        codec.is_video() || codec.is_audio() && !self.components.iter().any(|other| other.codec.is_video())
    }
}

/// A service out of the SDT of this transport stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its id: the program's number.
    pub id: u16,
    /// ETSI EN 300 468 table 87.
    pub service_type: u8,
    /// The provider's name.
    pub provider: String,
    /// What it is called.
    pub name: String,
}

/// When something was last there, and whether its absence has been reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watch {
    last: StreamTime,
    told: bool,
}

impl Watch {
    pub(crate) fn from(now: Option<StreamTime>) -> Self {
        Self { last: now.unwrap_or_default(), told: false }
    }

    /// It is there. `true`: it was away for longer than `limit` ticks, which has not been reported yet.
    pub(crate) fn seen(&mut self, now: Option<StreamTime>, limit: u64) -> bool {
        let Some(now) = now else { return false };
        let late = self.missing(now, limit);
        *self = Self { last: now, told: false };
        late
    }

    /// It is not there. `true` once, when that has lasted longer than `limit` ticks.
    pub(crate) fn missing(&mut self, now: StreamTime, limit: u64) -> bool {
        let late = !self.told && now.0.saturating_sub(self.last.0) > limit;
        self.told |= late;
        late
    }
}

/// Half a second: how long PAT and PMT may be away (TR 101 290 1.3, 1.5).
pub(crate) const HALF_SECOND: u64 = TICKS_PER_SECOND / 2;

/// Which sections of one version have been read.
#[derive(Clone, Debug, Default)]
struct ReadSections {
    version: Option<u8>,
    /// By section number.
    checksums: Vec<Option<u32>>,
}

/// How a section that is read differs from what is known of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// More of the same version, or the first of all.
    More,
    /// Another version than before.
    Version,
    /// Other contents than before, under the same version.
    Contents,
}

impl ReadSections {
    /// `None`: this section is known. A change makes all that was read before outdated.
    fn change(&mut self, section: Long<'_>) -> Option<Change> {
        let number = usize::from(section.number);
        let known = self.checksums.get(number).copied().flatten();
        let change = match self.version.replace(section.version) {
            Some(version) if version != section.version => Change::Version,
            _ if known == Some(section.checksum) => return None,
            _ if known.is_some() => Change::Contents,
            _ => Change::More,
        };
        if change != Change::More {
            self.checksums.clear();
        }
        self.checksums.resize(self.checksums.len().max(number + 1), None);
        self.checksums[number] = Some(section.checksum);
        Some(change)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) transport_stream_id: Option<u16>,
    pub(crate) programs: Vec<Program>,
    pub(crate) services: Vec<Service>,
    pat: ReadSections,
    sdt: ReadSections,
    components: usize,
}

/// What a table brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Roles of PIDs have to be assigned again.
    pub(crate) roles: bool,
    /// It was another version of a known table, or had other contents.
    pub(crate) changed: bool,
    /// It had other contents, and the version of the one before.
    pub(crate) same_version: bool,
}

impl News {
    fn of(change: Change, roles: bool) -> Self {
        Self { roles, changed: change != Change::More, same_version: change == Change::Contents }
    }
}

impl Tables {
    pub(crate) fn pat(&mut self, pat: Long<'_>, now: Option<StreamTime>) -> News {
        let Some(change) = self.pat.change(pat) else { return News::default() };
        let news = News::of(change, true);
        self.transport_stream_id = Some(pat.extension);
        let before = if news.changed { std::mem::take(&mut self.programs) } else { Vec::new() };
        for (number, pmt_pid) in psi::programs(pat).take(MOST_PROGRAMS - self.programs.len()) {
            let kept = before.iter().find(|program| (program.number, program.pmt_pid) == (number, pmt_pid));
            self.programs.push(kept.cloned().unwrap_or_else(|| Program {
                number,
                pmt_pid,
                version: None,
                pcr_pid: None,
                components: Vec::new(),
                watch: Watch::from(now),
                checksum: 0,
            }));
        }
        self.components = self.programs.iter().map(|program| program.components.len()).sum();
        news
    }

    pub(crate) fn pmt(&mut self, pid: u16, pmt: Long<'_>) -> News {
        let program = |program: &&mut Program| program.number == pmt.extension && program.pmt_pid == pid;
        let Some(program) = self.programs.iter_mut().find(program) else { return News::default() };
        let change = match program.version {
            None => Change::More,
            Some(version) if version != pmt.version => Change::Version,
            Some(_) if program.checksum != pmt.checksum => Change::Contents,
            Some(_) => return News::default(),
        };
        let Some((pcr_pid, entries)) = psi::program_map(pmt) else { return News::default() };
        (program.version, program.checksum) = (Some(pmt.version), pmt.checksum);
        program.pcr_pid = Some(pcr_pid);
        self.components -= program.components.len();
        let room = MOST_COMPONENTS - self.components;
        program.components = entries.take(room).map(component).collect();
        self.components += program.components.len();
        News::of(change, true)
    }

    pub(crate) fn sdt(&mut self, sdt: Long<'_>, coding: TextCoding) -> News {
        let Some(change) = self.sdt.change(sdt) else { return News::default() };
        let news = News::of(change, false);
        if news.changed {
            self.services.clear();
        }
        if let Some((network, services)) = psi::services(sdt) {
            let room = MOST_PROGRAMS - self.services.len();
            self.services.extend(services.take(room).map(|service| Service {
                id: service.service_id,
                service_type: service.service_type,
                provider: coding.decode(service.provider, network),
                name: coding.decode(service.name, network),
            }));
        }
        news
    }

    /// About how many bytes of memory they take.
    pub(crate) fn memory(&self) -> usize {
        let programs = self.programs.capacity() * size_of::<Program>();
        let components: usize = self.programs.iter().map(|program| program.components.capacity()).sum();
        let services = self.services.capacity() * size_of::<Service>();
        let names: usize = self.services.iter().map(|s| s.name.capacity() + s.provider.capacity()).sum();
        programs + components * size_of::<Component>() + services + names
    }
}

fn component(entry: Entry<'_>) -> Component {
    let name = psi::component_name(entry.descriptors);
    Component {
        pid: entry.pid,
        stream_type: entry.stream_type,
        codec: Codec::new(entry.stream_type, entry.descriptors),
        language: psi::language(entry.descriptors).map(|code| code.iter().map(|&b| char::from(b)).collect()),
        name: name.map(|name| TextCoding::Detect.decode(name, 0)),
    }
}
