//! Members of a shared subscription that come, leave and are cut off, on virtual time.

use crate::subscriber_breaks::message;
use crate::{CONNACK, Stage, options};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::mqtt::SharedSubscriptions;
use weir_clients::{Ending, MqttOptions, PlayOptions, Qos, Workload, mqtt};
use weir_metrics::common::{LOST, OPEN_ENDS};
use weir_mqtt::Version;
use weir_shard::Event;

const LINGER: Duration = Duration::from_millis(500);

fn workload(more: MqttOptions) -> Workload {
    let url = ["mqtt://127.0.0.1:1/$share/g/t".to_owned()];
    mqtt::play(&url, &PlayOptions::default(), &MqttOptions { qos: Qos::AtLeastOnce, reconnect: true, ..more })
        .unwrap()
}

/// A member whose subscription is granted.
fn member(workload: &Workload) -> Stage {
    let mut stage = Stage::new(workload, Version::V5);
    stage.said();
    stage.hear(&CONNACK);
    stage.grant();
    stage
}

fn hear(stage: &mut Stage, number: u64, last: bool) {
    let bytes = message(stage, number, 100, last);
    stage.hear(&bytes);
}

/// Lost messages and unknown ends of all.
fn stopped<const N: usize>(mut members: [Stage; N]) -> [u64; 2] {
    members.iter_mut().for_each(|it| it.dispatch(Event::Stop));
    members.iter_mut().for_each(|it| it.handle_timeout(LINGER.as_millis() as u64));
    let mut sums = [0, 0];
    for mut member in members {
        let (ended, figures) = member.ended();
        assert_eq!(ended, [Ending::OnTime]);
        sums = [sums[0] + figures.counter(LOST), sums[1] + figures.counter(OPEN_ENDS)];
    }
    sums
}

#[test]
fn what_another_member_of_the_run_got_is_not_lost_whichever_workload_or_process_it_is_in() {
    let of_run = Arc::new(SharedSubscriptions::default());
    let of_workload = |shared_subscriptions: Option<&Arc<_>>, members_elsewhere| {
        let shared_subscriptions = shared_subscriptions.cloned();
        workload(MqttOptions { shared_subscriptions, members_elsewhere, ..options(Qos::AtLeastOnce) })
    };
    let pairs = [
        // Two workloads of one run, and one of each of two agents.
        ([of_workload(Some(&of_run), false), of_workload(Some(&of_run), false)], [1, 0]),
        ([of_workload(None, true), of_workload(None, true)], [0, 0]),
    ];
    for (workloads, lost) in pairs {
        let mut members = [member(&workloads[0]), member(&workloads[1])];
        for number in (0..100).filter(|number| *number != 50) {
            hear(&mut members[number as usize % 2], number, number == 99);
        }
        assert_eq!(stopped(members), lost, "50 is known to be lost where both are seen");
    }
}

#[test]
fn what_is_on_its_way_to_a_member_that_leaves_is_waited_for_and_what_follows_it_is_not_lost() {
    let workload = workload(MqttOptions { linger: LINGER, ..options(Qos::AtLeastOnce) });
    let mut members = [(); 2].map(|()| member(&workload));
    for (receiver, number) in [(0, 0), (1, 1), (1, 3)] {
        hear(&mut members[receiver], number, false);
    }
    members[0].dispatch(Event::Stop);
    members[0].handle_timeout(100);
    assert!(!members[0].rig.closed, "2 is on its way");
    hear(&mut members[0], 2, false);
    members[0].handle_timeout(100);
    assert!(members[0].rig.closed);
    // 4 was on its way to it when it left.
    hear(&mut members[1], 5, false);
    let [mut first, second] = members;
    assert_eq!((first.ended().1.counter(LOST), stopped([second])), (0, [0, 1]));
}

#[test]
fn a_subscription_whose_only_member_leaves_is_over_and_the_next_one_begins_another() {
    let workload = workload(MqttOptions { linger: LINGER, ..options(Qos::AtLeastOnce) });
    let mut leaving = member(&workload);
    for number in [10, 11, 13] {
        hear(&mut leaving, number, false);
    }
    assert_eq!(stopped([leaving]), [1, 1], "12 never came");
    let mut next = member(&workload);
    for number in [40, 41, 43] {
        hear(&mut next, number, number == 43);
    }
    assert_eq!(stopped([next]), [1, 0], "42 never came");
}

#[test]
fn what_goes_with_links_that_the_run_cuts_is_not_lost() {
    let every = Duration::from_secs(1);
    // A member that comes back before another is cut goes on with the old account, in which nothing that is missing counts.
    for (together, lost) in [(true, 1), (false, 0)] {
        let workload = workload(MqttOptions { break_every: Some(every), ..options(Qos::AtLeastOnce) });
        let mut members = [(); 2].map(|()| member(&workload));
        for (receiver, number) in [(0, 0), (1, 1), (1, 3)] {
            hear(&mut members[receiver], number, false);
        }
        if together {
            members.iter_mut().for_each(|it| it.handle_timeout(1_000));
        }
        for it in &mut members {
            it.handle_timeout(if together { 0 } else { 1_000 });
            it.rig.take_sent();
            it.forget_input();
            it.comes_back();
            it.said();
            it.hear(&CONNACK);
            it.grant();
        }
        for (receiver, number) in [(0, 20), (1, 21), (0, 23)] {
            hear(&mut members[receiver], number, number == 23);
        }
        assert_eq!(members[0].figure("units"), 3);
        assert_eq!(stopped(members)[0], lost, "22 was published when both had subscribed again");
    }
}
