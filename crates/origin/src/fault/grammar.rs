//! Reads a fault from its line.

use super::{Action, CountedUnit, Damage, Fault, LinkPhase, Pick, Range, Units, When, Whom, Why};
use std::str::FromStr;
use std::time::Duration;
use weir_metrics::{ParseUnitError, parse_duration};

/// A line that is no fault; says what is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFaultError {
    /// The first word is no action.
    #[error(
        "'{0}' is not a fault; known are stall, drop, duplicate, swap, delay, jump, stale, early, status, lose, gap, reset, close, \
         counter, error, scramble, unsync, crop, junk, unauthorized, reject, redirect, silent, withhold, latency, read, refuse, burn and leak"
    )]
    Action(String),
    /// A word is not KEY=VALUE, or its key does not belong to the action.
    #[error("'{word}' does not belong to '{action}'")]
    Word {
        /// The action.
        action: String,
        /// The word.
        word: String,
    },
    /// Something is missing.
    #[error("'{action}' needs {needs}")]
    Missing {
        /// The action.
        action: String,
        /// What it needs.
        needs: &'static str,
    },
    /// A value is not what its key takes.
    #[error("{key}={value}: expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A value is not a quantity.
    #[error(transparent)]
    Unit(#[from] ParseUnitError),
}

use ParseFaultError as Error;

/// Most bytes that are kept for one viewer: a hundred viewers are 6 GiB then.
const MOST_LEAKED: usize = 64 << 20;

/// The longest latency that a handshake of SRT can say: 16 bits of milliseconds.
const MOST_LATENCY: Duration = Duration::from_millis(u16::MAX as u64);

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(line: &str) -> Result<Self, Error> {
        let mut words = Words::split(line)?;
        let action = words.action()?;
        let whom = words.whom(&action)?;
        match words.rest.first() {
            Some((key, value)) => {
                let word = if key.is_empty() { (*value).to_owned() } else { format!("{key}={value}") };
                Err(Error::Word { action: words.name.to_owned(), word })
            }
            None => Ok(Self { action, whom }),
        }
    }
}

/// The words of a line that no one has asked for yet; a bare value has an empty key.
struct Words<'a> {
    name: &'a str,
    rest: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn split(line: &'a str) -> Result<Self, Error> {
        let (line, text) = match line.find(" words=") {
            Some(at) => (&line[..at], Some(line[at + " words=".len()..].trim())),
            None => (line, None),
        };
        let mut words = line.split_whitespace();
        let name = words.next().ok_or_else(|| Error::Action(String::new()))?;
        let mut rest: Vec<_> = words.map(|word| word.split_once('=').unwrap_or(("", word))).collect();
        rest.extend(text.map(|text| ("words", text)));
        Ok(Self { name, rest })
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let at = self.rest.iter().position(|(other, _)| *other == key)?;
        Some(self.rest.remove(at).1)
    }

    fn need(&mut self, key: &str, needs: &'static str) -> Result<&'a str, Error> {
        self.take(key).ok_or_else(|| self.missing(needs))
    }

    fn missing(&self, needs: &'static str) -> Error {
        Error::Missing { action: self.name.to_owned(), needs }
    }

    fn duration(&mut self, key: &str) -> Result<Option<Duration>, Error> {
        Ok(self.take(key).map(parse_duration).transpose()?)
    }

    fn action(&mut self) -> Result<Action, Error> {
        Ok(match self.name {
            "stall" => self.stall()?,
            "drop" => Action::Drop(self.pick()?),
            "duplicate" => {
                let times = self.number("times", 1..=1_000)?.unwrap_or(1);
                Action::Duplicate { pick: self.pick()?, times }
            }
            "counter" => {
                self.damage(|words| Ok(Damage::Counter(words.number("by", 1..=15)?.unwrap_or(8))))?
            }
            "error" => self.damage(|_| Ok(Damage::Error))?,
            "scramble" => {
                self.damage(|words| Ok(Damage::Scrambling(words.number("control", 1..=3)?.unwrap_or(2))))?
            }
            "unsync" => self.damage(|_| Ok(Damage::Sync))?,
            "crop" => self.damage(|words| match words.number("bytes", 1..=188)? {
                Some(bytes) => Ok(Damage::Crop(bytes)),
                None => Err(words.missing("bytes=N, as in 'crop unit=1 bytes=100'")),
            })?,
            "junk" => self.damage(|words| {
                let of = words.number("of", 0..=255)?;
                match words.number("bytes", 1..=1 << 20)? {
                    Some(bytes) => Ok(Damage::Junk { bytes, of }),
                    None => Err(words.missing("bytes=N, as in 'junk unit=7 bytes=100'")),
                }
            })?,
            "swap" => Action::Swap(self.pick()?),
            "delay" => Action::Delay(parse_duration(self.need("", "a time, as in 'delay 80ms'")?)?),
            "jump" => {
                let by = signed(self.need("by", "by=±TIME, as in 'jump at=3s by=-500ms'")?)?;
                Action::Jump { when: self.when()?, by }
            }
            "stale" => {
                let span = parse_duration(self.need("for", "for=TIME, as in 'stale at=4s for=10s'")?)?;
                let at = self.duration("at")?.ok_or_else(|| self.missing("at=TIME"))?;
                Action::Stale { at, span }
            }
            "early" => Action::Early(self.pick()?),
            "status" => {
                let code = self.number("code", 400..=599)?.unwrap_or(404);
                Action::Status { pick: self.pick()?, code }
            }
            "lose" => {
                let packets = self.number("packets", 1..=1_000)?.unwrap_or(1);
                Action::Lose { pick: self.pick()?, packets }
            }
            "gap" => {
                let pick = self.pick()?;
                if !self.rest.iter().any(|(key, _)| *key == "stream") {
                    return Err(self.missing("stream=APP/STREAM: all its viewers are told of the gap"));
                }
                Action::Gap(pick)
            }
            "reset" => Action::Reset(self.when()?),
            "close" => Action::Close(self.when()?),
            "unauthorized" => {
                let unless = self.take("unless").map(str::to_owned);
                self.refusal(Why::Unauthorized { unless })?
            }
            "reject" => self.refusal(Why::Rejected)?,
            "redirect" => {
                let to = self.need("to", "to=URL, as in 'redirect to=/2.ts phase=play'")?.to_owned();
                self.refusal(Why::Moved { to })?
            }
            "withhold" => Action::Withhold(self.pick()?),
            "latency" => {
                let latency = parse_duration(self.need("", "a time, as in 'latency 2s'")?)?;
                if latency > MOST_LATENCY {
                    return Err(wrong("latency", &format!("{latency:?}"), "65535ms at the most"));
                }
                Action::Latency(latency)
            }
            "silent" => {
                let phase = self.need("phase", "phase=accept, handshake, connect, play or publish")?;
                Action::Silent(phase_of(phase)?)
            }
            "read" => Action::Read(self.need("rate", "rate=RATE, as in 'read rate=100kbps'")?.parse()?),
            "refuse" => Action::Refuse,
            "burn" => {
                let share = parse_duration(self.need("", "a time in every second, as in 'burn 200ms'")?)?;
                if share > Duration::from_secs(1) {
                    return Err(wrong("burn", &format!("{share:?}"), "at most 1s in every second"));
                }
                match self.take("each") {
                    None => {}
                    Some("viewer") => return Ok(Action::BurnForViewers { share }),
                    Some("publisher") => return Ok(Action::BurnForPublishers { share }),
                    Some(other) => return Err(wrong("each", other, "viewer or publisher")),
                }
                let thread = self.need("thread", "thread=NAME, each=viewer or each=publisher")?;
                // The kernel keeps fifteen bytes of a thread's name (prctl(2), PR_SET_NAME).
                if thread.is_empty() || thread.len() > 15 {
                    return Err(wrong("thread", thread, "a name of 1 to 15 bytes"));
                }
                Action::Burn { share, thread: thread.to_owned() }
            }
            "leak" => {
                let bytes = self.number("bytes", 1..=MOST_LEAKED)?;
                let bytes =
                    bytes.ok_or_else(|| self.missing("bytes=N, as in 'leak bytes=2048 each=viewer'"))?;
                match self.need("each", "each=viewer")? {
                    "viewer" => Action::Leak { bytes },
                    other => return Err(wrong("each", other, "viewer")),
                }
            }
            other => return Err(Error::Action(other.to_owned())),
        })
    }

    fn stall(&mut self) -> Result<Action, Error> {
        let span = self.need("for", "for=TIME, as in 'stall at=2s for=1500ms'")?;
        let span = parse_duration(span)?;
        let when = self.when()?;
        let every = match when {
            When::At(_) => self.duration("every")?,
            When::Unit(_) => None,
        };
        if let Some(every) = every.filter(|every| *every <= span) {
            return Err(wrong("every", &format!("{every:?}"), "a time longer than 'for'"));
        }
        Ok(Action::Stall { when, span, every })
    }

    fn refusal(&mut self, why: Why) -> Result<Action, Error> {
        let phase = self.take("phase").map_or(Ok(LinkPhase::Connect), phase_of)?;
        if phase < LinkPhase::Connect {
            return Err(wrong("phase", "accept", "connect, play or publish: before, nothing was asked"));
        }
        let beyond = match self.take("beyond") {
            None => None,
            Some(_) if phase != LinkPhase::Play => {
                return Err(wrong("phase", "connect", "play, beside 'beyond'"));
            }
            Some(text) => Some(text.parse().map_err(|_| wrong("beyond", text, "a number of viewers"))?),
        };
        Ok(Action::Refusal {
            phase,
            why,
            beyond,
            code: self.take("code").map(str::to_owned),
            words: self.take("words").map(str::to_owned),
        })
    }

    fn damage(&mut self, of: impl Fn(&mut Self) -> Result<Damage, Error>) -> Result<Action, Error> {
        let damage = of(self)?;
        Ok(Action::Damage { pick: self.pick()?, damage })
    }

    fn number<T: FromStr + PartialOrd>(
        &mut self,
        key: &str,
        allowed: std::ops::RangeInclusive<T>,
    ) -> Result<Option<T>, Error> {
        let Some(text) = self.take(key) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        number.map(Some).ok_or_else(|| wrong(key, text, "a number that it can have there"))
    }

    fn when(&mut self) -> Result<When, Error> {
        match self.duration("at")? {
            Some(at) => Ok(When::At(at)),
            None if self.rest.iter().any(|(key, _)| *key == "unit") => Ok(When::Unit(self.pick()?)),
            None => Err(self.missing("at=TIME or unit=NUMBER")),
        }
    }

    fn pick(&mut self) -> Result<Pick, Error> {
        const EXPECTED: &str = "a number, A..B, A.. or every:K, counted from 1";
        let text = self.need("unit", "unit=K, unit=A..B or unit=every:K")?;
        let units = match text.strip_prefix("every:") {
            Some(k) => match k.parse() {
                Ok(k) if k > 0 => Units::Every(k),
                _ => return Err(wrong("unit", text, EXPECTED)),
            },
            None => Units::In(range(text).ok_or_else(|| wrong("unit", text, EXPECTED))?),
        };
        let of = match self.take("kind") {
            None => match self.take("pid") {
                None => CountedUnit::Any,
                Some(text) => CountedUnit::Pid(pid(text).ok_or_else(|| wrong("pid", text, "0 to 0x1FFF"))?),
            },
            Some("video") => CountedUnit::Video,
            Some("audio") => CountedUnit::Audio,
            Some("keyframe") => CountedUnit::Keyframe,
            Some(other) => return Err(wrong("kind", other, "video, audio or keyframe")),
        };
        Ok(Pick { units, of })
    }

    fn whom(&mut self, action: &Action) -> Result<Whom, Error> {
        const EXPECTED: &str = "a number, A..B or A.., counted from 1";
        let mut said = None;
        for (one, many, whom) in [
            ("link", "links", Whom::Links as fn(Range) -> Whom),
            ("viewer", "viewers", Whom::Viewers),
            ("publisher", "publishers", Whom::Publishers),
        ] {
            if !whom(Range::ALL).suits(action) {
                continue;
            }
            if let Some(text) = self.take(one).or_else(|| self.take(many)) {
                said = Some(whom(range(text).ok_or_else(|| wrong(many, text, EXPECTED))?));
                break;
            }
        }
        if said.is_none() && Whom::Stream(String::new()).suits(action) {
            said = self.take("stream").map(|name| Whom::Stream(name.to_owned()));
        }
        Ok(said.unwrap_or_else(|| Whom::usual(action)))
    }
}

impl Whom {
    /// Whether an action can happen to such a one.
    fn suits(&self, action: &Action) -> bool {
        match action {
            Action::Refuse
            | Action::Burn { .. }
            | Action::BurnForViewers { .. }
            | Action::BurnForPublishers { .. }
            | Action::Leak { .. } => *self == Self::Origin,
            Action::Read(_) | Action::Withhold(_) => matches!(self, Self::Publishers(_)),
            Action::Latency(_) => matches!(self, Self::Links(_)),
            Action::Refusal { phase, .. } | Action::Silent(phase) => match self {
                Self::Links(_) => true,
                Self::Viewers(_) => *phase == LinkPhase::Play,
                Self::Publishers(_) => *phase == LinkPhase::Publish,
                _ => false,
            },
            Action::Reset(when) | Action::Close(when) => match self {
                Self::Links(_) => matches!(when, When::At(_)),
                Self::Viewers(_) | Self::Publishers(_) => true,
                _ => false,
            },
            Action::Stale { .. } | Action::Early(_) | Action::Status { .. } | Action::Lose { .. } => {
                matches!(self, Self::Viewers(_))
            }
            Action::Gap(_) => matches!(self, Self::Stream(_)),
            _ => matches!(self, Self::Viewers(_) | Self::Stream(_)),
        }
    }

    /// What an action happens to if the fault does not say.
    fn usual(action: &Action) -> Self {
        match action {
            Action::Refuse
            | Action::Burn { .. }
            | Action::BurnForViewers { .. }
            | Action::BurnForPublishers { .. }
            | Action::Leak { .. } => Self::Origin,
            Action::Read(_) | Action::Withhold(_) => Self::Publishers(Range::ALL),
            Action::Refusal { .. } | Action::Silent(_) | Action::Latency(_) => Self::Links(Range::ALL),
            _ => Self::Viewers(Range::ALL),
        }
    }
}

fn wrong(key: &str, value: &str, expected: &'static str) -> Error {
    Error::Value { key: key.to_owned(), value: value.to_owned(), expected }
}

fn range(text: &str) -> Option<Range> {
    let (first, last) = match text.split_once("..") {
        None => {
            let number = text.parse().ok()?;
            (number, number)
        }
        Some((first, "")) => (first.parse().ok()?, u64::MAX),
        Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
    };
    (1 <= first && first <= last).then_some(Range { first, last })
}

/// `0x101`, or `257`.
fn pid(text: &str) -> Option<u16> {
    let pid = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    (pid <= 0x1FFF).then_some(pid)
}

fn phase_of(text: &str) -> Result<LinkPhase, Error> {
    Ok(match text {
        "accept" => LinkPhase::Accept,
        "handshake" => LinkPhase::Handshake,
        "connect" => LinkPhase::Connect,
        "play" => LinkPhase::Play,
        "publish" => LinkPhase::Publish,
        _ => return Err(wrong("phase", text, "accept, handshake, connect, play or publish")),
    })
}

fn signed(text: &str) -> Result<i64, Error> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    Ok(sign * parse_duration(text)?.as_micros() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> Fault {
        line.parse().unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn pick(units: Units) -> Pick {
        Pick { units, of: CountedUnit::Any }
    }

    #[test]
    fn a_line_says_what_happens_to_whom_and_when() {
        let all = Whom::Viewers(Range::ALL);
        let ms = Duration::from_millis;
        assert_eq!(
            fault("drop unit=every:100 viewer=3"),
            Fault {
                action: Action::Drop(pick(Units::Every(100))),
                whom: Whom::Viewers(Range { first: 3, last: 3 })
            }
        );
        assert_eq!(
            fault("stall at=2s for=1500ms every=5s"),
            Fault {
                action: Action::Stall { when: When::At(ms(2_000)), span: ms(1_500), every: Some(ms(5_000)) },
                whom: all.clone(),
            }
        );
        assert_eq!(fault("delay 80ms"), Fault { action: Action::Delay(ms(80)), whom: all });
        assert_eq!(
            fault("reset viewers=5..10 at=1s"),
            Fault {
                action: Action::Reset(When::At(ms(1_000))),
                whom: Whom::Viewers(Range { first: 5, last: 10 }),
            }
        );
        assert_eq!(
            fault("jump at=3s by=-500ms stream=live/a").action,
            Action::Jump { when: When::At(ms(3_000)), by: -500_000 }
        );
        assert_eq!(
            fault("reject phase=play code=a.b words=not today, thank you").action,
            Action::Refusal {
                phase: LinkPhase::Play,
                why: Why::Rejected,
                code: Some("a.b".into()),
                words: Some("not today, thank you".into()),
                beyond: None,
            }
        );
        assert_eq!(
            fault("reject phase=play beyond=100").action,
            Action::Refusal {
                phase: LinkPhase::Play,
                why: Why::Rejected,
                code: None,
                words: None,
                beyond: Some(100),
            }
        );
        assert_eq!(
            fault("drop unit=5..9 pid=0x101 stream=/1.ts"),
            Fault {
                action: Action::Drop(Pick {
                    units: Units::In(Range { first: 5, last: 9 }),
                    of: CountedUnit::Pid(0x101)
                }),
                whom: Whom::Stream("/1.ts".into()),
            }
        );
        let damage = |line: &str| match fault(line).action {
            Action::Damage { pick, damage } if pick == self::pick(Units::Every(7)) => damage,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(damage("counter unit=every:7"), Damage::Counter(8));
        assert_eq!(damage("counter unit=every:7 by=1"), Damage::Counter(1));
        assert_eq!(damage("error unit=every:7"), Damage::Error);
        assert_eq!(damage("scramble unit=every:7 control=3"), Damage::Scrambling(3));
        assert_eq!(damage("unsync unit=every:7"), Damage::Sync);
        assert_eq!(damage("crop unit=every:7 bytes=100"), Damage::Crop(100));
        assert_eq!(damage("junk unit=every:7 bytes=9 of=71"), Damage::Junk { bytes: 9, of: Some(71) });
        let why = |line: &str| match fault(line).action {
            Action::Refusal { why, .. } => why,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(why("unauthorized unless=a:b"), Why::Unauthorized { unless: Some("a:b".into()) });
        assert_eq!(why("redirect phase=play to=/2.ts code=307"), Why::Moved { to: "/2.ts".into() });
        assert_eq!(fault("silent phase=play").whom, Whom::Links(Range::ALL));
        let latency = fault("latency 2s link=3");
        assert_eq!(
            (latency.action, latency.whom),
            (Action::Latency(ms(2_000)), Whom::Links(Range { first: 3, last: 3 }))
        );
        assert_eq!(fault("read rate=100kbps").whom, Whom::Publishers(Range::ALL));
        assert_eq!(
            fault("burn 200ms thread=busy").action,
            Action::Burn { share: ms(200), thread: "busy".into() }
        );
        let burn = fault("burn 2ms each=viewer");
        assert_eq!((burn.action, burn.whom), (Action::BurnForViewers { share: ms(2) }, Whom::Origin));
        let burn = fault("burn 2ms each=publisher");
        assert_eq!((burn.action, burn.whom), (Action::BurnForPublishers { share: ms(2) }, Whom::Origin));
        assert_eq!(fault("refuse").whom, Whom::Origin);
        let leak = fault("leak bytes=2048 each=viewer");
        assert_eq!((leak.action, leak.whom), (Action::Leak { bytes: 2_048 }, Whom::Origin));
    }

    #[test]
    fn what_is_no_fault_is_refused_with_a_remedy() {
        for (line, words) in [
            ("explode", "'explode' is not a fault; known are stall, drop"),
            ("drop", "'drop' needs unit=K, unit=A..B or unit=every:K"),
            ("drop unit=0", "unit=0: expected a number, A..B, A.. or every:K, counted from 1"),
            ("drop unit=every:0", "unit=every:0: expected"),
            ("drop unit=5 colour=red", "'colour=red' does not belong to 'drop'"),
            ("drop unit=5 link=1", "'link=1' does not belong to 'drop'"),
            ("silent phase=connect viewer=1", "'viewer=1' does not belong to 'silent'"),
            ("delay soon", "'soon' is not a duration"),
            ("stall at=1s", "'stall' needs for=TIME"),
            ("stall at=1s for=2s every=1s", "every=1s: expected a time longer than 'for'"),
            ("drop unit=5 pid=8192", "pid=8192: expected 0 to 0x1FFF"),
            ("drop unit=5 pid=1 kind=video", "'pid=1' does not belong to 'drop'"),
            ("counter unit=5 by=16", "by=16: expected"),
            ("crop unit=5", "'crop' needs bytes=N"),
            ("redirect phase=play", "'redirect' needs to=URL"),
            ("reject beyond=5", "phase=connect: expected play, beside 'beyond'"),
            ("reject phase=play beyond=few", "beyond=few: expected a number of viewers"),
            ("latency", "'latency' needs a time"),
            ("latency 2m", "65535ms at the most"),
            ("latency 1s viewer=1", "'viewer=1' does not belong to 'latency'"),
            ("leak each=viewer", "'leak' needs bytes=N"),
            ("leak bytes=9", "'leak' needs each=viewer"),
            ("leak bytes=9 each=day", "each=day: expected viewer"),
            ("leak bytes=9 each=viewer viewer=3", "'viewer=3' does not belong to 'leak'"),
            ("burn 2s thread=x", "at most 1s in every second"),
            ("burn 2s each=viewer", "at most 1s in every second"),
            ("burn 2ms each=stream", "each=stream: expected viewer or publisher"),
            ("burn 2ms each=viewer thread=x", "'thread=x' does not belong to 'burn'"),
            ("burn 2ms", "'burn' needs thread=NAME, each=viewer or each=publisher"),
            ("burn 2ms thread=a-name-that-is-too-long", "a name of 1 to 15 bytes"),
            ("reset", "'reset' needs at=TIME or unit=NUMBER"),
            ("", "'' is not a fault"),
        ] {
            let error = line.parse::<Fault>().expect_err(line).to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
