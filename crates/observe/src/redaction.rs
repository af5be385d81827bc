//! Secrets taken out of command lines. When in doubt, it is a secret.

/// What stands for a secret.
const MASK: &str = "***";

/// The arguments, with what may be a secret replaced by `***`; their number stays.
///
/// Replaced are, as arguments and as words inside of one (`sh -c "…"`):
/// - what follows `=`, `:` or a space after a name that stands for a secret (`--password=…`, `--token …`,
///   `streamkey=…`, `Authorization: …`, `?secret=…`), up to the end of the argument;
/// - what follows `-p` and `-P`, joined or not, unless it makes a known longer flag (`-preset`), or is an argument behind `-p` that is
///   a port or a path, and no program of the command line is sshpass;
/// - user and password in URLs and in front of an `@`, and the password after `-u user:`;
/// - what follows the application in an RTMP URL: it is the key of a stream.
pub fn redact<S: AsRef<str>>(arguments: &[S]) -> Vec<String> {
    let mut next = Next::Open;
    let is_password = arguments.iter().any(|argument| argument.as_ref().contains("sshpass"));
    arguments
        .iter()
        .map(|argument| {
            if is_password && next == Next::PasswordOrPlace {
                next = Next::Secret;
            }
            let (text, follows) = redact_argument(argument.as_ref(), next);
            next = follows;
            text
        })
        .collect()
}

/// What the word before says about the one that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Open,
    /// A secret, whatever it looks like.
    Secret,
    /// A secret, unless it is another flag.
    SecretUnlessFlag,
    /// A password, a port or a path: what `-p` means to each program.
    PasswordOrPlace,
    /// `user:password`.
    Credentials,
}

/// One argument: word by word, until one of them hides the rest.
fn redact_argument(argument: &str, mut next: Next) -> (String, Next) {
    let mut text = String::with_capacity(argument.len());
    let mut rest = argument;
    loop {
        let start = rest.len() - rest.trim_start().len();
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        if rest.is_empty() {
            return (text, next);
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let word = &rest[..end];
        let hides_rest = match next {
            Next::Secret => true,
            Next::SecretUnlessFlag => !word.starts_with("--"),
            Next::PasswordOrPlace => argument.contains("sshpass") || !is_port_or_path(word),
            Next::Open | Next::Credentials => false,
        };
        if hides_rest {
            return (text + MASK, announced_at_end(rest));
        }
        if next == Next::Credentials
            && let Some((user, _)) = word.split_once(':')
        {
            return (text + user + ":" + MASK, announced_at_end(rest));
        }
        let shown = redact_word(word);
        text.push_str(&shown.text);
        if shown.hides_rest {
            return (text, announced_at_end(rest));
        }
        next = shown.next;
        rest = &rest[end..];
    }
}

/// What the last word of a hidden text announces: a secret that looks like a flag may be one.
fn announced_at_end(hidden: &str) -> Next {
    hidden.split_whitespace().next_back().map_or(Next::Open, |word| redact_word(word).next)
}

/// What to make of one word.
struct RedactedWord {
    text: String,
    hides_rest: bool,
    next: Next,
}

/// One word, by its own looks.
fn redact_word(word: &str) -> RedactedWord {
    let name = &word[..word.find(['=', ':']).unwrap_or(word.len())];
    let announced = if is_announcement(name) { Next::SecretUnlessFlag } else { Next::Open };
    let hidden = |text: String| RedactedWord { text, hides_rest: true, next: announced };
    let open = |next| RedactedWord { text: word.to_owned(), hides_rest: false, next };
    match word {
        "-p" => return open(Next::PasswordOrPlace),
        "-P" => return open(Next::Secret),
        "-u" | "-U" | "--user" | "--proxy-user" => return open(Next::Credentials),
        _ => {}
    }
    let is_joined = word.starts_with("-p") || word.starts_with("-P");
    let is_known = || LONG_FLAGS.contains(&name.to_ascii_lowercase().as_str());
    if is_joined && !is_known() {
        return hidden(format!("{}{MASK}", &word[..2]));
    }
    if word.starts_with("-u")
        && let Some((user, _)) = word.split_once(':')
    {
        return hidden(format!("{user}:{MASK}"));
    }
    let word = hide_stream_keys(&hide_credentials(word));
    let mut separators = word.match_indices(['=', ':']).map(|(index, _)| index);
    match separators.find(|&index| is_sensitive(name_before(&word[..index]))) {
        // `Authorization:` at the end of an argument: the next one is the secret.
        Some(index) if index + 1 == word.len() => {
            RedactedWord { text: word, hides_rest: false, next: Next::Secret }
        }
        Some(index) => hidden(format!("{}{MASK}", &word[..=index])),
        None => RedactedWord { text: word, hides_rest: false, next: announced },
    }
}

/// Whether it is the number of a port, or a path from the root, from here or from home.
fn is_port_or_path(word: &str) -> bool {
    let is_port = word.bytes().all(|byte| byte.is_ascii_digit()) && word.parse::<u16>().is_ok();
    is_port || ["/", "./", "../", "~/"].iter().any(|begin| word.starts_with(begin))
}

/// Flags with one dash that start with a `p` and are no `-pPASSWORD`. Those of them that tell of a secret
/// are dealt with by their name.
const LONG_FLAGS: [&str; 24] = [
    "-pass",
    "-passin",
    "-passout",
    "-passphrase",
    "-passwd",
    "-password",
    "-path",
    "-period",
    "-pid",
    "-pidfile",
    "-pix_fmt",
    "-pkt_size",
    "-plugin",
    "-pmu",
    "-port",
    "-ports",
    "-prefix",
    "-preset",
    "-print",
    "-prof",
    "-profile",
    "-progress",
    "-protocol",
    "-protocol_whitelist",
];

/// Words that announce a secret without a dash (`redis-cli AUTH …`).
const BARE_WORDS: [&str; 8] =
    ["auth", "masterauth", "pass", "passwd", "password", "requirepass", "secret", "token"];

/// Whether a secret follows this word.
fn is_announcement(word: &str) -> bool {
    if word.starts_with('-') {
        is_sensitive(word)
    } else {
        BARE_WORDS.contains(&word.to_ascii_lowercase().as_str())
    }
}

/// The name at the end of the text, without the quotes that JSON has around it.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches(['"', '\'']);
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.rfind(|letter| !is_part(letter))
        .map_or(text, |index| text[index..].trim_start_matches(|letter| !is_part(letter)))
}

/// Whether the value that goes with this name may be a secret.
fn is_sensitive(name: &str) -> bool {
    const ANYWHERE: [&str; 16] = [
        "apikey",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "hmac",
        "jwt",
        "passcode",
        "passphrase",
        "passw",
        "pwd",
        "secret",
        "signature",
        "streamid",
        "token",
        "userinfo",
    ];
    const PART_ENDS: [&str; 4] = ["auth", "key", "keys", "pass"];
    const PARTS: [&str; 5] = ["pin", "pw", "sas", "sig", "sign"];
    let name = name.to_lowercase();
    ANYWHERE.iter().any(|word| name.contains(word))
        || name
            .split(['-', '_', '.'])
            .any(|part| PARTS.contains(&part) || PART_ENDS.iter().any(|end| part.ends_with(end)))
}

/// Hides what stands before the last `@`: from the first `://`, or from the start if there is a password.
fn hide_credentials(word: &str) -> String {
    let Some(at) = word.rfind('@') else { return word.to_owned() };
    match word[..at].find("://") {
        Some(scheme) => format!("{}{MASK}{}", &word[..scheme + 3], &word[at..]),
        None if word[..at].contains(':') => format!("{MASK}{}", &word[at..]),
        None => word.to_owned(),
    }
}

/// Hides what follows the application in RTMP URLs; ffmpeg's tee joins several with `|`.
fn hide_stream_keys(word: &str) -> String {
    let urls = word.split('|').map(|url| {
        let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| scheme.contains("rtmp")) else {
            return url.to_owned();
        };
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        match path.match_indices('/').nth(1) {
            Some((key, _)) => format!("{scheme}://{}{MASK}{query}", &path[..=key]),
            None => url.to_owned(),
        }
    });
    urls.collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redacted(line: &str) -> String {
        redact(&line.split(' ').collect::<Vec<_>>()).join(" ")
    }

    #[test]
    fn what_is_no_secret_stays() {
        for line in [
            "/usr/sbin/nginx -g daemon",
            "nginx: worker process",
            "./objs/srs -c conf/srs.conf",
            "mosquitto -c /etc/mosquitto/mosquitto.conf -v",
            "ffmpeg -re -i in.flv -preset veryfast -pix_fmt yuv420p -g 60 -x264-params keyint=60 -f flv out.flv",
            "node server.js --port=8000 --keyframe-interval 2",
            "postgres: 15/main: walwriter",
            "nc -l -p 80 -k",
            "nginx -p /etc/nginx/ -c nginx.conf",
            "git@host:repo http://127.0.0.1:3333/app/stream",
        ] {
            assert_eq!(redacted(line), line);
        }
    }

    #[test]
    fn what_is_a_secret_goes() {
        for (line, expected) in [
            ("a --password=x --port=1", "a --password=*** --port=1"),
            ("a --password x --port 1", "a --password *** --port 1"),
            ("a --password --port 1", "a --password --port 1"),
            ("mysql -uroot -psesame -h db", "mysql -uroot -p*** -h db"),
            ("mysql -p1234", "mysql -p***"),
            ("sshpass -p sesame ssh", "sshpass -p *** ssh"),
            ("sshpass -p 4711 ssh -p 22", "sshpass -p *** ssh -p ***"),
            ("mosquitto_pub -u joe -P sesame", "mosquitto_pub -u joe -P ***"),
            ("mosquitto_pub -p 1883 -P 1234", "mosquitto_pub -p 1883 -P ***"),
            ("openssl -passin pass:sesame", "openssl -passin pass:***"),
            ("x -password sesame", "x -password ***"),
            ("curl -u joe:sesame", "curl -u joe:***"),
            ("curl -ujoe:sesame", "curl -ujoe:***"),
            ("x postgres://joe:ses@me@db/live", "x postgres://***@db/live"),
            ("x joe:sesame@db", "x ***@db"),
            ("x -Djavax.net.ssl.keyStorePassword=x", "x -Djavax.net.ssl.keyStorePassword=***"),
            ("x https://h/p?v=1&api_key=x&w=2", "x https://h/p?v=1&api_key=***"),
            ("x {\"token\":\"x\"}", "x {\"token\":***"),
            ("redis-cli AUTH sesame", "redis-cli AUTH ***"),
            ("f rtmp://a.example/live2/abcd-1234", "f rtmp://a.example/live2/***"),
            (
                "f [f=flv]rtmp://h/a/k|[f=flv]rtmp://i/a/k?x=1",
                "f [f=flv]rtmp://h/a/***|[f=flv]rtmp://i/a/***?x=1",
            ),
            ("f rtmp://h/live", "f rtmp://h/live"),
            ("f rtmp://h/live/a/b", "f rtmp://h/live/***"),
            ("x -p --password sesame", "x -p *** ***"),
            ("x -pgpassword sesame", "x -p*** ***"),
            ("x -p 80 --token sesame", "x -p 80 --token ***"),
            ("x -p /a?token=sesame", "x -p /a?token=***"),
            ("x -p 123456 -p80x", "x -p *** -p***"),
            ("f srt://h:9000?passphrase=x&mode=caller", "f srt://h:9000?passphrase=***"),
        ] {
            assert_eq!(redacted(line), expected);
        }
    }

    #[test]
    fn words_inside_of_an_argument_are_looked_at() {
        assert_eq!(redact(&["sh", "-c", "sshpass -p 4711 ssh"]), ["sh", "-c", "sshpass -p ***"]);
        assert_eq!(redact(&["sh", "-c", "run --token abc --port 1"]), ["sh", "-c", "run --token ***"]);
        assert_eq!(redact(&["-H", "Authorization: Bearer abc"]), ["-H", "Authorization: ***"]);
        assert_eq!(redact(&["--password", "two words"]), ["--password", "***"]);
        assert_eq!(redact(&["x --password", "two words"]), ["x --password", "***"]);
        assert_eq!(redact(&["--pass=two words"]), ["--pass=***"]);
    }

    /// A secret as it may stand in a command line, in pieces; `§` marks its place.
    const PLACES: [&[&str]; 22] = [
        &["--password=§"],
        &["--password", "§"],
        &["--PASSWORD:§"],
        &["-p§"],
        &["-p", "§"],
        &["-P", "§"],
        &["-u", "joe:§"],
        &["--user", "joe:§"],
        &["-password", "§"],
        &["-passwd=§"],
        &["--api-key", "§"],
        &["--apiKey=§"],
        &["streamkey=§"],
        &["rtmp://joe:§@host/app/stream"],
        &["mqtt://§@host"],
        &["joe:§@host"],
        &["rtmp://host/app/§"],
        &["http://host/app?x=1&token=§&y=2"],
        &["sh", "-c", "server --secret § --port 1"],
        &["sh", "-c", "PGPASSWORD=§ psql"],
        &["-H", "X-Auth-Token: §"],
        &["{\"user\": \"joe\", \"password\": \"§\"}"],
    ];

    proptest! {
        #[test]
        fn no_secret_survives(
            before in prop::collection::vec("[ -~]{0,12}", 0..3),
            place in prop::sample::select(&PLACES[..]),
            secret in "S3[a-zA-Z0-9+/=!%-]{4,16}",
            after in prop::collection::vec("[ -~]{0,12}", 0..3),
        ) {
            let placed = place.iter().map(|piece| piece.replace('§', &secret));
            let arguments: Vec<String> = before.into_iter().chain(placed).chain(after).collect();
            let shown = redact(&arguments);
            prop_assert_eq!(shown.len(), arguments.len());
            prop_assert!(!shown.iter().any(|it| it.contains(&secret)), "{:?} shows as {:?}", arguments, shown);
        }

        #[test]
        fn any_argument_is_read(arguments: Vec<String>) {
            prop_assert_eq!(redact(&arguments).len(), arguments.len());
        }
    }
}
