//! What the workers of an origin share of its streams: the window of each, by name.

use super::playlist::{self, Playlist};
use super::settings::HlsSettings;
use super::window::Window;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Streams whose publication is over that are kept: their last viewers are still to be told of the end.
const ENDED_KEPT: usize = 64;

/// The shortest part: a frame of 50 a second. Playlists name the parts of three target durations.
const SHORTEST_PART: Duration = Duration::from_millis(20);

/// The shelves of all streams.
#[derive(Debug)]
pub(crate) struct Shelves {
    settings: HlsSettings,
    shelves: Mutex<ShelvesByName>,
}

#[derive(Debug, Default)]
struct ShelvesByName {
    names: HashMap<Arc<str>, Arc<Shelf>>,
    /// Those whose publication is over, the latest last.
    ended: VecDeque<Arc<str>>,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Shelf {
    name: Arc<str>,
    /// Changes with each thing that can be loaded.
    version: AtomicU64,
    state: Mutex<ShelfState>,
}

#[derive(Debug)]
struct ShelfState {
    window: Window,
    /// The whole playlist and the one with skipped segments, of the version that they are of.
    playlists: [Option<(u64, Playlist)>; 2],
}

impl Shelves {
    pub(crate) fn new(mut settings: HlsSettings) -> Self {
        settings.part = settings.part.map(|part| part.max(SHORTEST_PART));
        Self { settings, shelves: Mutex::default() }
    }

    pub(crate) fn settings(&self) -> &HlsSettings {
        &self.settings
    }

    /// The shelf of a stream, if something was published under its name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Shelf>> {
        self.lock().names.get(name).cloned()
    }

    /// The Multivariant Playlist of several streams of one folder, `APP/ONE,OTHER`; `None` unless each has something to load.
    pub(super) fn multivariant(&self, names: &str) -> Option<Playlist> {
        if !is_multivariant(names) {
            return None;
        }
        let (folder, names) = names.rsplit_once('/').unwrap_or(("", names));
        let variant = |name: &str| {
            let name = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let (peak, average) = self.get(&name)?.look(Window::bit_rates)?;
            Some((name, peak, average))
        };
        let variants = names.split(',').map(variant).collect::<Option<Vec<_>>>()?;
        Some(playlist::write_multivariant(&variants, &self.settings))
    }

    /// A number that changes when a stream has something new; 0 of one that was never published.
    pub(crate) fn version(&self, name: &str) -> u64 {
        self.lock().names.get(name).map_or(0, |shelf| shelf.version())
    }

    /// A publication begins.
    pub(super) fn begin(&self, name: &Arc<str>) -> Arc<Shelf> {
        let mut shelves = self.lock();
        shelves.ended.retain(|ended| ended != name);
        let shelf = shelves.names.entry(name.clone()).or_insert_with(|| {
            let state = ShelfState { window: Window::new(self.settings.clone()), playlists: [None, None] };
            Arc::new(Shelf { name: name.clone(), version: AtomicU64::new(1), state: Mutex::new(state) })
        });
        let shelf = shelf.clone();
        drop(shelves);
        shelf.change(|window| {
            window.resume();
            true
        });
        shelf
    }

    /// The publication of a stream is over.
    pub(super) fn end(&self, shelf: &Shelf) {
        let mut shelves = self.lock();
        shelves.ended.push_back(shelf.name.clone());
        if shelves.ended.len() > ENDED_KEPT
            && let Some(oldest) = shelves.ended.pop_front()
        {
            shelves.names.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ShelvesByName> {
        // No code panics while it holds the lock; if it did, the map would still be whole.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether several streams of one folder are named: `APP/ONE,OTHER`.
pub(super) fn is_multivariant(names: &str) -> bool {
    names.rsplit('/').next().is_some_and(|it| it.contains(','))
}

impl Shelf {
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Changes what is there; `change` says whether there is something new to load.
    pub(super) fn change(&self, change: impl FnOnce(&mut Window) -> bool) {
        let mut state = self.lock();
        if change(&mut state.window) {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Looks at what is there.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Window) -> T) -> T {
        look(&self.lock().window)
    }

    /// The playlist as it is now, in which older segments may be skipped; `None` before the first segment is whole.
    pub(super) fn playlist(&self, skips: bool, settings: &HlsSettings) -> Option<Playlist> {
        let mut state = self.lock();
        let version = self.version();
        let ShelfState { window, playlists } = &mut *state;
        let written = &mut playlists[usize::from(skips)];
        if written.as_ref().is_none_or(|(of, _)| *of != version) {
            *written = playlist::write(window, &self.name, skips, settings).map(|text| (version, text));
        }
        written.as_ref().map(|(_, text)| text.clone())
    }

    fn lock(&self) -> MutexGuard<'_, ShelfState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
