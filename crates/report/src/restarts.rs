//! What restarts of the server did to clients, a sentence each.

use crate::document::{Fact, Part, Section, Tone};
use crate::plot::Event;
use crate::quantity::{seconds, several, span};
use crate::quote::quote;
use weir_engine::summary::{RestartSummary, Summary};

/// The section of them; `None` if a run had no restart.
pub(crate) fn section(summary: &Summary) -> Option<Section> {
    let fact = |restart: &RestartSummary| {
        let is_whole = restart.reconnected_seconds.is_some();
        Fact::new(quote(&restart.server, 60), sentence(restart)).tone(if is_whole {
            Tone::Plain
        } else {
            Tone::Doubtful
        })
    };
    let facts: Vec<Fact> = summary.restarts.iter().map(fact).collect();
    (!facts.is_empty()).then(|| Section::new("Restarts", vec![Part::Facts(facts)]))
}

/// The moments at which restarts began, as the plots mark them.
pub(crate) fn events(summary: &Summary) -> Vec<Event> {
    let event = |restart: &RestartSummary| Event {
        at: restart.at_seconds,
        label: "restart",
        words: format!("{} was restarted at {}", quote(&restart.server, 60), span(restart.at_seconds)),
    };
    summary.restarts.iter().map(event).collect()
}

/// `ended at 10 s and started again 2.00 s later; 40 links were lost, and all clients were connected again after 2.31 s`.
fn sentence(restart: &RestartSummary) -> String {
    let again = match restart.down_seconds {
        Some(down) => format!("and started again {} later", seconds(down)),
        None => "and not started again".to_owned(),
    };
    let lost = several(restart.cut_off, "link");
    let were = if restart.cut_off == 1 { "was" } else { "were" };
    let clients = match restart.reconnected_seconds {
        Some(time) => {
            format!("{lost} {were} lost, and all clients were connected again after {}", seconds(time))
        }
        None if restart.cut_off == 0 => "no client tried to connect again".to_owned(),
        None if restart.away == 0 => {
            format!("{lost} {were} lost, of clients that left before they had another")
        }
        None => format!("{lost} {were} lost, and {} did not come back", several(restart.away, "client")),
    };
    format!("ended at {} {again}; {clients}", span(restart.at_seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::TIE;

    fn said(cut_off: u64, away: u64, reconnected: Option<f64>) -> String {
        let restart = RestartSummary {
            server: "mosquitto".to_owned(),
            at_seconds: 10.0,
            down_seconds: Some(2.0),
            cut_off,
            away,
            reconnected_seconds: reconnected,
        };
        sentence(&restart).replace(TIE, " ")
    }

    #[test]
    fn who_came_back_is_told_and_who_did_not() {
        let begin = "ended at 10 s and started again 2.00 s later; ";
        let fine = said(40, 0, Some(2.314));
        assert_eq!(
            fine,
            format!("{begin}40 links were lost, and all clients were connected again after 2.31 s")
        );
        assert_eq!(said(40, 3, None), format!("{begin}40 links were lost, and 3 clients did not come back"));
        assert_eq!(said(0, 0, None), format!("{begin}no client tried to connect again"));
    }
}
