//! What every test needs: weir as a process, a stream to play, servers of others, and the machine to oneself.
//!
//! Nothing here knows what a test expects, except what holds for every run: see [`Run::check`].

mod agents;
mod air;
mod brokers;
mod browser;
mod browser_tab;
pub(crate) mod experiment;
mod exporter;
mod gateway;
mod go;
mod ingester;
mod live_tab;
mod machines;
mod namespace;
mod node_media_server;
mod npm;
mod pion;
mod process;
mod run;
mod turn;
mod web;
pub(crate) mod webrtc;

pub(crate) use agents::Crew;
pub(crate) use air::{Air, Publishing, air, config};
pub(crate) use brokers::{OtherBroker, mqtt_js, paho, paho_publisher, paho_responder};
pub(crate) use browser::Browser;
pub(crate) use browser_tab::BrowserTab;
pub(crate) use exporter::{NodeExporter, Prometheus};
pub(crate) use gateway::Gateway;
pub(crate) use ingester::Ingester;
pub(crate) use live_tab::{A_RUN, Watched, row_of, says_on_its_page, start_watched};
pub(crate) use machines::{FIRST, Machines};
pub(crate) use namespace::Wire;
pub(crate) use node_media_server::NodeMediaServer;
pub(crate) use npm::npm_folder;
pub(crate) use pion::Pion;
pub(crate) use process::{Said, origin_process, says, weir};
pub(crate) use run::{CHECKS_OF_THE_MACHINE, Measuring, Run, measure, play, report, start_measuring};
pub(crate) use turn::{alone, quiet, shared};
pub(crate) use web::WebServer;
pub(crate) use weir_testing::{
    ClickHouseServer, KAFKA, Kafka, KilledOnDrop, Listener, Mosquitto, NatsServer, Nginx, Postgresql,
    free_port, interrupt, no_file_has, program, self_signed, soon, undisturbed,
};
