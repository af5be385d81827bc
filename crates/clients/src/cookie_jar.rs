//! Cookies that servers have set, as one client keeps them (RFC 6265, section 5). Their values are secrets: nothing here is shown, and
//! no other client has them.

use crate::target::{Link, Target};
use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::Duration;
use weir_metrics::Moment;

/// The longest cookie that is kept, attributes included, and the most of one client: RFC 6265, section 6.1, has clients keep "at least
/// 4096 bytes per cookie" and "at least 50 cookies per domain".
const LONGEST: usize = 4_096;
const MOST: usize = 50;
/// The most bytes of one client.
const MOST_BYTES: usize = 16 << 10;

/// What lasts longer lasts longer than any run.
const LONGEST_AGE: u64 = 365 * 86_400;

#[derive(Default)]
pub(crate) struct CookieJar(Vec<Cookie>);

struct Cookie {
    name: Box<str>,
    value: Box<str>,
    /// The host that has set it, or the domain that this has named, in lower case.
    domain: Box<str>,
    is_host_only: bool,
    path: Box<str>,
    is_secure: bool,
    expires: Option<Moment>,
}

impl CookieJar {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps what the field `Set-Cookie` of an answer to a request for this target says, at a time that is `wall` in seconds since 1970.
    pub(crate) fn set(&mut self, field: &str, from: &Target, now: Moment, wall: i64) {
        let Some(cookie) = Cookie::read(field, from, now, wall) else { return };
        let is_same =
            |it: &Cookie| it.name == cookie.name && it.domain == cookie.domain && it.path == cookie.path;
        let place = self.0.iter().position(is_same);
        match (place, cookie.is_over(now)) {
            // Section 5.3, step 11: a cookie keeps the place in time of the one that it replaces.
            (Some(place), false) => self.0[place] = cookie,
            (Some(place), true) => drop(self.0.remove(place)),
            (None, false) => self.0.push(cookie),
            (None, true) => {}
        }
        self.0.retain(|it| !it.is_over(now));
        while self.0.len() > MOST || self.0.iter().map(Cookie::bytes).sum::<usize>() > MOST_BYTES {
            self.0.remove(0);
        }
    }

    /// The pairs that go with a request for this target, those of longer paths first (section 5.4). Of several with one name that is
    /// the first.
    pub(crate) fn pairs(&self, to: &Target, now: Moment) -> Vec<String> {
        let mut meant: Vec<_> = self.0.iter().filter(|it| it.is_for(to) && !it.is_over(now)).collect();
        meant.sort_by_key(|it| Reverse(it.path.len()));
        let is_first = |(at, it): &(usize, &&Cookie)| meant[..*at].iter().all(|other| other.name != it.name);
        let first = meant.iter().enumerate().filter(is_first);
        first.map(|(_, it)| format!("{}={}", it.name, it.value)).collect()
    }
}

impl Cookie {
    /// Sections 5.2 and 5.3. `None` if it is malformed, or names a domain that is not the host's.
    fn read(field: &str, from: &Target, now: Moment, wall: i64) -> Option<Self> {
        if field.len() > LONGEST || field.contains(char::is_control) {
            return None;
        }
        let mut parts = field.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let (host, path_of_request) = (from.host.to_ascii_lowercase(), path(from));
        // Section 5.1.4: up to its last slash, without that.
        let folder = path_of_request.rfind('/').map_or("", |last| &path_of_request[..last]);
        let mut cookie = Self {
            name: Some(name).filter(|name| !name.is_empty())?.into(),
            value: value.into(),
            domain: host.as_str().into(),
            is_host_only: true,
            path: if folder.is_empty() { "/" } else { folder }.into(),
            is_secure: false,
            expires: None,
        };
        let (mut age, mut date) = (None, None);
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match attribute.trim().to_ascii_lowercase().as_str() {
                "max-age" => age = read_age(value).or(age),
                "expires" => date = read_date(value).or(date),
                "domain" => {
                    let domain = value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase();
                    // Step 5: a domain that many own ("com") is no single host's to set cookies for. Which of those with a dot are such is in a
                    // list that weir does not have.
                    if domain == host {
                        cookie.is_host_only = !domain.contains('.');
                    } else if domain.contains('.') && is_below(&host, &domain) {
                        (cookie.domain, cookie.is_host_only) = (domain.into(), false);
                    } else if !domain.is_empty() {
                        return None;
                    }
                }
                "path" if value.starts_with('/') => cookie.path = value.into(),
                "secure" => cookie.is_secure = true,
                _ => {}
            }
        }
        // Max-Age goes before Expires (section 5.3, step 3).
        let left = age.or_else(|| date.map(|date| date.saturating_sub(wall)));
        cookie.expires = match left.map(u64::try_from) {
            None => None,
            Some(Err(_)) => Some(now),
            Some(Ok(seconds)) if seconds > LONGEST_AGE => None,
            Some(Ok(seconds)) => Some(now + Duration::from_secs(seconds)),
        };
        Some(cookie)
    }

    fn is_over(&self, now: Moment) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len()
    }

    /// Whether a request for this target has it. Ports are all one (section 8.5).
    fn is_for(&self, to: &Target) -> bool {
        let host = to.host.to_ascii_lowercase();
        let is_host = *self.domain == host || !self.is_host_only && is_below(&host, &self.domain);
        // Section 5.1.4.
        let is_path = path(to)
            .strip_prefix(&*self.path)
            .is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        is_host && is_path && (!self.is_secure || to.scheme.link == Link::Tls)
    }
}

/// The path of a target without its query.
fn path(target: &Target) -> &str {
    target.path.split(['?', '#']).next().unwrap_or_default()
}

/// Whether a name of a host lies below a domain (section 5.1.3). An address lies below none.
fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')) && host.parse::<IpAddr>().is_err()
}

/// Section 5.2.2.
fn read_age(value: &str) -> Option<i64> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| value.parse().unwrap_or(if value.starts_with('-') { i64::MIN } else { i64::MAX }))
}

/// Seconds since 1970 of a date in any of the ways that servers write it (section 5.1.1); `None` for one that lacks a part.
fn read_date(value: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let is_delimiter = |letter: char| !letter.is_ascii_alphanumeric() && letter != ':';
    for token in value.split(is_delimiter).filter(|token| !token.is_empty()) {
        let number = token.parse::<i64>().ok();
        if time.is_none() && token.contains(':') {
            let mut parts = token.split(':').map(|part| part.parse::<i64>().ok());
            let parts = [parts.next()??, parts.next()??, parts.next()??];
            time = Some(parts).filter(|[hour, minute, second]| *hour < 24 && *minute < 60 && *second < 60);
        } else if day.is_none() && token.len() <= 2 && number.is_some() {
            day = number.filter(|day| (1..=31).contains(day));
        } else if year.is_none() && matches!(token.len(), 2 | 4) && number.is_some() {
            year = number.map(|year| match year {
                70..=99 => year + 1_900,
                0..=69 => year + 2_000,
                _ => year,
            });
        } else if month.is_none() {
            let begin = token.get(..3).unwrap_or_default().to_ascii_lowercase();
            month = MONTHS.iter().position(|it| *it == begin);
        }
    }
    let ([hour, minute, second], day, month, year) =
        (time?, day?, month? as i64 + 1, year.filter(|year| *year >= 1_601)?);
    // Days of a civil date, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http_request::SCHEMES;

    fn target(url: &str) -> Target {
        Target::parse(url, "play", SCHEMES).unwrap()
    }

    fn now() -> Moment {
        Moment::from_nanos(1_000_000_000)
    }

    /// What of these cookies, set by one URL, another is asked for with.
    fn sent(fields: &[&str], from: &str, to: &str) -> String {
        let mut jar = CookieJar::default();
        fields.iter().for_each(|field| jar.set(field, &target(from), now(), 1_800_000_000));
        jar.pairs(&target(to), now()).join("; ")
    }

    #[test]
    fn cookies_go_back_to_the_hosts_and_paths_that_they_are_for() {
        for (field, from, to, expected) in [
            // RFC 6265, section 3.1.
            (
                "SID=31d4d96e407aad42; Path=/; Secure; HttpOnly",
                "https://a.example/",
                "https://a.example/x",
                true,
            ),
            ("s=1; Path=/; Secure", "https://a.example/", "http://a.example/x", false),
            ("s=1", "http://a.example/live/a.m3u8?x=/y/", "http://a.example/live/b/c.ts", true),
            ("s=1", "http://a.example/live/a.m3u8", "http://a.example:81/live", true),
            ("s=1", "http://a.example/live/a.m3u8", "http://a.example/lively", false),
            ("s=1", "http://a.example/a.m3u8", "http://a.example/x", true),
            ("s=1; Path=/live/", "http://a.example/", "http://a.example/live", false),
            ("s=1; Path=live", "http://a.example/", "http://a.example/x", true),
            ("s=1; Path=/", "http://a.example/", "http://b.a.example/", false),
            ("s=1; Domain=a.example", "http://A.example/", "http://b.a.example/", true),
            ("s=1; Domain=.A.example", "http://c.a.example/", "http://b.a.example/", true),
            ("s=1; Domain=a.example", "http://a.example/", "http://ba.example/", false),
            ("s=1; Domain=b.example", "http://a.example/", "http://b.example/", false),
            ("s=1; Domain=b.a.example", "http://a.example/", "http://a.example/", false),
            ("s=1; Domain=example", "http://a.example/", "http://b.example/", false),
            ("s=1; Domain=", "http://a.example/", "http://a.example/", true),
            ("s=1; Domain=127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", true),
            ("s=1; Domain=0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", false),
            ("s", "http://a.example/", "http://a.example/", false),
            ("=1", "http://a.example/", "http://a.example/", false),
            ("s=1\r\nX: y", "http://a.example/", "http://a.example/", false),
        ] {
            assert_eq!(!sent(&[field], from, to).is_empty(), expected, "{field} of {from} to {to}");
        }
    }

    #[test]
    fn a_later_cookie_replaces_an_earlier_one_and_longer_paths_come_first() {
        let both = |fields: &[&str]| sent(fields, "http://a.example/x/y", "http://a.example/x/z");
        assert_eq!(both(&["a=1; Path=/", "b=2; Path=/", "a=3; Path=/"]), "a=3; b=2");
        assert_eq!(both(&["a=1; Path=/", "b=2; Path=/x", "a=4; Path=/x"]), "b=2; a=4");
    }

    #[test]
    fn cookies_end_at_their_time_and_by_being_set_to_the_past() {
        let url = "http://a.example/";
        for (attribute, stays) in [
            ("Max-Age=0", false),
            ("Max-Age=-1", false),
            ("max-age=99999999999999999999", true),
            ("Max-Age=soon", true),
            ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", false),
            ("Expires=Thu, 01-Jan-1970 00:00:01 GMT", false),
            ("Expires=Fri Jan  1 00:00:00 2100", true),
            // It is the fifteenth of January 2027, eight o'clock.
            ("expires=Friday, 15-Jan-27 08:00:00 GMT", false),
            ("expires=Friday, 15-Jan-27 08:00:01 GMT", true),
            ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9", true),
            ("Expires=never", true),
        ] {
            assert_eq!(
                !sent(&["s=1", &format!("s=2; {attribute}")], url, url).is_empty(),
                stays,
                "{attribute}"
            );
        }
        let mut jar = CookieJar::default();
        jar.set("s=1; Max-Age=2", &target(url), now(), 0);
        assert_eq!(jar.pairs(&target(url), now() + Duration::from_secs(1)), ["s=1"]);
        assert!(jar.pairs(&target(url), now() + Duration::from_secs(2)).is_empty());
    }

    #[test]
    fn what_a_server_may_have_kept_is_bounded() {
        let mut jar = CookieJar::default();
        for number in 0..200 {
            jar.set(&format!("s{number}={}", "x".repeat(1_000)), &target("http://a/"), now(), 0);
        }
        jar.set(&format!("long={}", "x".repeat(LONGEST)), &target("http://a/"), now(), 0);
        let pairs = jar.pairs(&target("http://a/"), now());
        assert!(pairs.len() == 16 && pairs[15].starts_with("s199="), "{}", pairs.len());
    }
}
