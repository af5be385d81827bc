//! The target's machine: the same figures come out of each source; and servers that are no source, or that end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use weir_http::{HttpError, HttpTrust};
use weir_observe::{
    Figure, Interfaces, MachineError, MachinePoint, MachineSample, MachineSource, MachineUsage, Remote,
    Sample, Sampler, Window,
};

use crate::puppet::Puppet;
use crate::server::{Program, answer, free_address, get, send_over_loopback, serve};
use weir_testing::undisturbed;

const BYTES: u64 = 300_000_000;
const BURNT_SECONDS: f64 = 8.0;

/// A load that was seen by `/proc` and by others, over the same window.
struct LoadReadings {
    seconds: f64,
    here: MachineUsage,
    others: Vec<MachineUsage>,
    /// What the burner itself says that it used.
    burnt_cpu_seconds: f64,
}

/// Watches a process that burns CPU, and bytes on `lo`, until all machines have said what was a little after.
fn see(machines: Vec<Remote>) -> LoadReadings {
    let start = Instant::now();
    let now_ns = move || start.elapsed().as_nanos() as u64;
    let mut sampler = Sampler::new([]).unwrap();
    let count = machines.len();
    machines.into_iter().for_each(|machine| sampler.watch_machine(machine));
    let mut samples: Vec<Sample> = vec![sampler.sample(now_ns())];
    let mut puppet = Puppet::start();
    let burning = std::thread::spawn(move || {
        let reply = puppet.tell(format_args!("burn burner 0.8 {BURNT_SECONDS}"));
        reply.split_once(' ').unwrap().1.parse::<f64>().unwrap()
    });
    let sending = std::thread::spawn(|| send_over_loopback(BYTES, Duration::from_secs_f64(BURNT_SECONDS)));
    let mut end = None;
    loop {
        assert!(start.elapsed() < Duration::from_secs(90), "not every machine was heard of");
        std::thread::sleep(Duration::from_millis(100));
        samples.push(sampler.sample(now_ns()));
        if end.is_none() && burning.is_finished() && sending.is_finished() {
            end = Some(now_ns() + 2_000_000_000);
        }
        let heard = |machine: usize| samples.iter().filter_map(move |it| it.machines[machine].points.last());
        let last = |machine| heard(machine).next_back().map_or(0, |point| point.at_ns);
        if end.is_some_and(|end| now_ns() >= end && (0..count).all(|machine| last(machine) >= end)) {
            break;
        }
    }
    sending.join().unwrap();
    let lo = Interfaces::loopback();
    let between = |earlier: &Sample, later: &Sample| {
        MachinePoint::of_host((earlier.at_ns, &earlier.host), (later.at_ns, &later.host), &lo)
    };
    let here: Vec<_> = samples.windows(2).filter_map(|pair| between(&pair[0], &pair[1])).collect();
    let end = end.unwrap();
    let over = |points: &[MachinePoint]| MachineUsage::over(points, Window { from_ns: 1, to_ns: end });
    let other = |machine: usize| {
        let points: Vec<_> =
            samples.iter().flat_map(|sample| &sample.machines[machine].points).copied().collect();
        over(&points)
    };
    LoadReadings {
        seconds: end as f64 * 1e-9,
        here: over(&here),
        others: (0..count).map(other).collect(),
        burnt_cpu_seconds: burning.join().unwrap(),
    }
}

fn mean(figure: Option<Figure>) -> f64 {
    figure.expect("it was counted").mean
}

/// The burner's CPU time and the bytes on `lo` are in both, and the one says what the other says.
fn assert_alike(seen: &LoadReadings, there: MachineUsage) {
    let here = seen.here;
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    for usage in [here, there] {
        let used = mean(usage.cpu_percent) / 100.0 * cpus * seen.seconds;
        assert!(used > 0.8 * seen.burnt_cpu_seconds, "{used} s of {} s", seen.burnt_cpu_seconds);
        let [tx, rx] = [usage.tx_bps, usage.rx_bps].map(|bps| mean(bps) / 8.0 * seen.seconds);
        assert!(tx > 0.8 * BYTES as f64 && rx > 0.8 * BYTES as f64, "{tx} and {rx} of {BYTES}");
    }
    let apart = |of: fn(MachineUsage) -> Option<Figure>| (mean(of(here)), mean(of(there)));
    let (a, b) = apart(|it| it.cpu_percent);
    assert!((a - b).abs() < 10.0, "cpu: {a} % and {b} %");
    let (a, b) = apart(|it| it.memory_bytes);
    assert!((a - b).abs() < 0.1 * a, "memory: {a} and {b}");
    let (a, b) = apart(|it| it.load1);
    assert!((a - b).abs() < 0.5 + 0.1 * a, "load1: {a} and {b}");
    for of in [|it: MachineUsage| it.tx_bps, |it: MachineUsage| it.rx_bps] {
        let (a, b) = apart(of);
        assert!((a - b).abs() < 0.25 * a.max(b), "bits a second: {a} and {b}");
    }
}

#[test]
fn a_node_exporter_says_what_proc_says() {
    undisturbed(|| {
        let exporter = Program::node_exporter();
        let remote =
            Remote::node_exporter(&exporter.url(), Interfaces::loopback(), &HttpTrust::System).unwrap();
        assert_eq!(remote.facts().source, MachineSource::NodeExporter);
        assert_eq!(remote.facts().address.as_deref(), Some(format!("{}/metrics", exporter.url()).as_str()));
        let seen = see(vec![remote]);
        assert!(seen.burnt_cpu_seconds > 0.2, "the machine was too busy to burn");
        assert_alike(&seen, seen.others[0]);
    });
}

#[test]
fn a_prometheus_says_what_proc_and_its_node_exporter_say() {
    undisturbed(|| {
        let directory = tempfile::tempdir().unwrap();
        let exporter = Program::node_exporter();
        let prometheus = Program::prometheus(&[&exporter], directory.path());
        let (lo, second) = (Interfaces::loopback(), Duration::from_secs(1));
        let asked =
            Remote::prometheus(&prometheus.url(), None, lo.clone(), second, &HttpTrust::System).unwrap();
        assert_eq!(asked.facts().instance.as_deref(), Some(exporter.address.as_str()));
        let ahead = asked.facts().clock_ahead_seconds.unwrap();
        assert!(ahead.abs() < 0.5, "one machine has one clock: {ahead} s");
        let scraped = Remote::node_exporter(&exporter.url(), lo, &HttpTrust::System).unwrap();
        let seen = see(vec![scraped, asked]);
        assert_alike(&seen, seen.others[0]);
        assert_alike(&seen, seen.others[1]);
    });
}

#[test]
fn of_several_machines_of_a_prometheus_one_must_be_said() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (Program::node_exporter(), Program::node_exporter());
    let prometheus = Program::prometheus(&[&one, &other], directory.path());
    let ask = |instance| {
        let second = Duration::from_secs(1);
        Remote::prometheus(&prometheus.url(), instance, Interfaces::loopback(), second, &HttpTrust::System)
    };
    let error = ask(None).expect_err("there are two");
    let mut both = vec![one.address.clone(), other.address.clone()];
    both.sort();
    assert!(matches!(&error, MachineError::WhichMachine { instances, .. } if *instances == both), "{error}");
    assert!(ask(Some("elsewhere:9100")).is_err());
    let facts = ask(Some(&other.address)).unwrap().facts().clone();
    assert!(facts.expressions.iter().all(|it| it.contains(&other.address)), "{facts:?}");
    // What a person opens by the URL of the report is there.
    let url = facts.graph_url(300.0, "2026-11-21 10:00:00").unwrap();
    let path = url.strip_prefix(&prometheus.url()).unwrap();
    let page = get(&prometheus.address, path);
    assert!(page.starts_with("HTTP/1.0 200") && page.contains("</html>"), "{path}: {page}");
}

#[test]
fn what_is_no_prometheus_is_one_line_that_says_why() {
    let refused = |url: &str| {
        let second = Duration::from_secs(1);
        let remote = Remote::prometheus(url, None, Interfaces::default(), second, &HttpTrust::System);
        remote.expect_err("it is no Prometheus").to_string()
    };
    let exporter = Program::node_exporter();
    let nobody = format!("http://{}", free_address());
    let page = format!("http://{}", serve(|_| answer("200 OK", "<html>welcome</html>")));
    let guarded = format!("http://{}", serve(|_| answer("401 Unauthorized", "<html>no</html>")));
    let time = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1.5"]}}"#;
    let none = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let empty = move |request: &crate::server::Request| {
        answer("200 OK", if request.path.contains("time") { time } else { none })
    };
    let empty = format!("http://{}", serve(empty));
    for (url, words) in [
        (nobody, "refused"),
        (page, "not as a Prometheus"),
        (guarded, "user:password@host"),
        (exporter.url(), "`node_exporter`"),
        (empty, "collect from"),
    ] {
        let line = refused(&url);
        assert!(line.contains(words) && line.contains(&url) && !line.contains('\n'), "{words}: {line}");
    }
    let line = refused("http//me:hunter2@h:9090");
    assert!(line.contains("`prometheus`") && !line.contains("hunter2"), "{line}");
}

#[test]
fn a_prometheus_that_comes_back_is_asked_for_what_was_missed() {
    undisturbed(|| {
        let start = Instant::now();
        // Its clock shows 1000 s at the start of the test; load1 is that time.
        let range = move |request: &crate::server::Request, constant: Option<f64>| {
            let parameter = |name: &str| -> f64 {
                let rest = request.path.split(&format!("&{name}=")).nth(1).expect("a range has it");
                rest.split('&').next().unwrap().parse().unwrap()
            };
            let (begin, end, step) = (parameter("start"), parameter("end"), parameter("step"));
            let times = (0..).map(|index| begin + f64::from(index) * step).take_while(|time| *time <= end);
            let values: Vec<String> =
                times.map(|time| format!("[{time},\"{}\"]", constant.unwrap_or(time))).collect();
            format!(
                r#"{{"status":"success","data":{{"resultType":"matrix","result":[{{"metric":{{}},"values":[{}]}}]}}}}"#,
                values.join(",")
            )
        };
        let address = serve(move |request| {
            let passed = start.elapsed().as_secs_f64();
            let now = 1000.0 + passed;
            if request.path.contains("query_range") {
                if (4.0..9.0).contains(&passed) {
                    return answer("503 Service Unavailable", "<html>");
                }
                return answer(
                    "200 OK",
                    &match request.path.as_str() {
                        path if path.contains("query=max%28up") => range(request, Some(1.0)),
                        path if path.contains("timestamp") => range(request, Some(0.5)),
                        _ => range(request, None),
                    },
                );
            }
            answer(
                "200 OK",
                &if request.path.contains("time") {
                    format!(
                        r#"{{"status":"success","data":{{"resultType":"scalar","result":[{now},"{now}"]}}}}"#
                    )
                } else {
                    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"a"},"value":[1,"1"]}]}}"#
                    .to_owned()
                },
            )
        });
        let second = Duration::from_secs(1);
        let url = format!("http://{address}");
        let remote =
            Remote::prometheus(&url, None, Interfaces::default(), second, &HttpTrust::System).unwrap();
        let mut sampler = Sampler::new([]).unwrap();
        sampler.watch_machine(remote);
        let now_ns = || 1_000_000_000_000 + start.elapsed().as_nanos() as u64;
        let mut heard: Vec<MachineSample> = Vec::new();
        while start.elapsed() < Duration::from_secs(12) {
            std::thread::sleep(Duration::from_millis(250));
            heard.extend(sampler.sample(now_ns()).machines);
        }
        heard.extend(sampler.last_sample(now_ns()).machines);
        let failed: Vec<_> = heard.iter().filter_map(|sample| sample.failure.clone()).collect();
        assert!(!failed.is_empty() && failed.iter().all(|words| words.contains("503")), "{failed:?}");
        let points: Vec<MachinePoint> = heard.iter().flat_map(|sample| &sample.points).copied().collect();
        assert!(points.len() >= 12, "the last seconds and all before them: {}", points.len());
        for pair in points.windows(2) {
            let apart = (pair[1].at_ns - pair[0].at_ns) as f64 * 1e-9;
            assert!((apart - 1.0).abs() < 0.05, "a point each second: {apart} s apart");
        }
        for point in &points {
            let shown = point.values.load1.unwrap();
            assert!((shown - point.at_ns as f64 * 1e-9).abs() < 0.5, "{shown} at {} ns", point.at_ns);
        }
    });
}

#[test]
fn a_prometheus_whose_node_exporter_is_gone_repeats_no_old_figures() {
    let directory = tempfile::tempdir().unwrap();
    let mut exporter = Program::node_exporter();
    let prometheus = Program::prometheus(&[&exporter], directory.path());
    let (lo, second) = (Interfaces::loopback(), Duration::from_secs(1));
    let asked = Remote::prometheus(&prometheus.url(), None, lo, second, &HttpTrust::System).unwrap();
    let start = Instant::now();
    let now_ns = move || start.elapsed().as_nanos() as u64;
    let mut sampler = Sampler::new([]).unwrap();
    sampler.watch_machine(asked);
    let mut heard: Vec<MachineSample> = Vec::new();
    let mut until = |what: &str, sampler: &mut Sampler, holds: &dyn Fn(&MachineSample) -> bool| {
        let began = Instant::now();
        while !heard.iter().any(holds) {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}: {heard:?}");
            std::thread::sleep(Duration::from_millis(200));
            heard.extend(sampler.sample(now_ns()).machines);
        }
    };
    until("it has figures", &mut sampler, &|it| it.points.iter().any(|point| point.values.tx_bps.is_some()));
    exporter.child.kill().unwrap();
    exporter.child.wait().unwrap();
    until("it says that they end", &mut sampler, &|it| it.gap.is_some());
    until("points go on", &mut sampler, &|it| it.points.last().is_some_and(|point| point.values.is_empty()));
    let gaps: Vec<&str> = heard.iter().filter_map(|sample| sample.gap.as_deref()).collect();
    let words = format!("could not collect from {} (up is 0)", exporter.address);
    assert!(gaps.iter().all(|gap| gap.contains(&words)), "{gaps:?}");
    assert!(heard.iter().all(|sample| sample.failure.is_none()), "the Prometheus itself answers");
    // From the first gap on nothing is told of the machine: rates of the minute before neither.
    let points: Vec<MachinePoint> = heard.iter().flat_map(|sample| &sample.points).copied().collect();
    let mut known = points.iter().skip_while(|point| point.values.is_empty());
    let gap = known.by_ref().find(|point| point.values.is_empty());
    assert!(gap.is_some() && known.all(|point| point.values.is_empty()), "{points:?}");
}

/// Two CPUs of which one was busy for half of each second of the node's uptime.
fn exposition(second: f64) -> String {
    format!(
        "node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {}\nnode_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {}\n\
         node_load1 0.5\nnode_network_transmit_bytes_total{{device=\"eth0\"}} {}\n",
        second * 1.5,
        second * 0.5,
        second * 1e6
    )
}

fn refused(url: &str) -> MachineError {
    Remote::node_exporter(url, Interfaces::default(), &HttpTrust::System).expect_err("it is no node_exporter")
}

#[test]
fn a_url_that_leads_to_no_node_exporter_is_one_line_that_says_why() {
    for url in ["target:9100", "http://", "ftp://target:9100", "9100"] {
        assert!(matches!(refused(url), MachineError::NotAUrl { .. }), "{url}");
    }
    let nobody = format!("http://{}", free_address());
    let unlikely = "http://no-such-host.invalid:9100".to_owned();
    let page = format!("http://{}", serve(|_| answer("200 OK", "<html>welcome</html>")));
    let missing = format!("http://{}", serve(|_| answer("404 Not Found", "")));
    let moved = format!("http://{}", serve(|_| answer("302 Found", "")));
    let broken = format!("http://{}", serve(|_| answer("503 Service Unavailable", "warming up\n")));
    let chatter = format!("http://{}", serve(|_| b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()));
    let endless = format!("http://{}", serve(|_| answer("200 OK", &"a 1\n".repeat(3 << 20))));
    let silent = format!("http://{}", serve(|_| Vec::new()));
    for (url, words) in [
        (nobody, "refused"),
        (unlikely, "no address"),
        (page, "not as a node_exporter"),
        (missing, "check the path"),
        (moved, "leads elsewhere"),
        (broken, "warming up"),
        (chatter, "no HTTP"),
        (endless, "8 MiB"),
        (silent, "within 5 s"),
    ] {
        let line = refused(&url).to_string();
        assert!(line.contains(words) && line.contains(&url) && !line.contains('\n'), "{words}: {line}");
    }
}

#[test]
fn user_and_password_are_sent_and_are_in_no_error() {
    let guarded = |request: &crate::server::Request| {
        let is_known = request.headers.iter().any(|line| line == "authorization: Basic bWU6aHVudGVyMg==");
        if is_known { answer("200 OK", &exposition(1.0)) } else { answer("401 Unauthorized", "") }
    };
    let address = serve(guarded);
    let remote = Remote::node_exporter(
        &format!("http://me:hunter2@{address}"),
        Interfaces::default(),
        &HttpTrust::System,
    );
    let facts = format!("{:?}", remote.unwrap().facts());
    assert!(!facts.contains("hunter2") && !facts.contains("me:"), "{facts}");
    let error = refused(&format!("http://me:hunter3@{address}/metrics?key=hunter4"));
    assert!(matches!(&error, MachineError::Unheard { source: HttpError::Status { status: 401, .. }, .. }));
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("hunter"), "{text}");
    }
}

#[test]
fn only_the_collectors_that_are_needed_are_asked_for_where_that_works() {
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let counted = counts.clone();
    let address = serve(move |request| {
        let filtered = request.path.contains("collect%5B%5D=netdev");
        counted[usize::from(filtered)].fetch_add(1, Ordering::Relaxed);
        if filtered {
            answer("400 Bad Request", "disabled collector: netdev")
        } else {
            answer("200 OK", &exposition(1.0))
        }
    });
    let url = format!("http://{address}");
    let _remote = Remote::node_exporter(&url, Interfaces::default(), &HttpTrust::System).unwrap();
    assert_eq!((counts[0].load(Ordering::Relaxed), counts[1].load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn a_machine_that_goes_and_comes_back_is_absent_in_between() {
    undisturbed(|| {
        let start = Instant::now();
        // It answers for two seconds, then not for three, and then again, as a server that was restarted.
        let address = serve(move |_| match start.elapsed().as_secs_f64() {
            second if second < 2.5 => answer("200 OK", &exposition(1000.0 + second)),
            second if second < 5.5 => answer("500 Internal Server Error", "node is down"),
            second => answer("200 OK", &exposition(second)),
        });
        let remote =
            Remote::node_exporter(&format!("http://{address}"), Interfaces::default(), &HttpTrust::System);
        let mut sampler = Sampler::new([]).unwrap();
        sampler.watch_machine(remote.unwrap());
        let mut heard: Vec<MachineSample> = Vec::new();
        while start.elapsed() < Duration::from_secs(9) {
            std::thread::sleep(Duration::from_millis(250));
            heard.extend(sampler.sample(start.elapsed().as_nanos() as u64).machines);
        }
        heard.extend(sampler.last_sample(start.elapsed().as_nanos() as u64).machines);
        let points: Vec<MachinePoint> = heard.iter().flat_map(|sample| &sample.points).copied().collect();
        let failures: Vec<&str> = heard.iter().filter_map(|sample| sample.failure.as_deref()).collect();
        assert!(
            !failures.is_empty() && failures.iter().all(|words| words.contains("node is down")),
            "{failures:?}"
        );
        assert!(points.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
        let silent = |point: &MachinePoint| (2_600_000_000..5_400_000_000).contains(&point.at_ns);
        assert!(!points.iter().any(silent), "{points:?}");
        let restarted = points.iter().find(|point| point.at_ns > 5_000_000_000).expect("it came back");
        assert_eq!(
            (restarted.values.cpu_percent, restarted.values.tx_bps),
            (None, None),
            "no rate over a new start"
        );
        assert_eq!(restarted.values.load1, Some(0.5));
        let rates: Vec<f64> = points.iter().filter_map(|point| point.values.cpu_percent).collect();
        assert!(rates.len() >= 3 && rates.iter().all(|cpu| (cpu - 25.0).abs() < 0.1), "{rates:?}");
        let sent: Vec<f64> = points.iter().filter_map(|point| point.values.tx_bps).collect();
        assert!(sent.iter().all(|bps| (bps - 8e6).abs() < 2e6), "{sent:?}");
        assert!(
            points.iter().all(|point| point.values.rx_bps.is_none() && point.values.memory_bytes.is_none())
        );
    });
}
