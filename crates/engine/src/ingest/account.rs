//! What became of each message: pure sums, and where they do not come out even.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many messages of a run were counted where. A message holds one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageBalance {
    /// Messages that were to be published.
    pub planned: u64,
    /// Messages handed to the link to the broker.
    pub published: u64,
    /// Of these, those that the broker acknowledged. At QoS 0 none are.
    pub acknowledged: u64,
    /// Messages that the broker delivered, those that came again included.
    pub received: u64,
    /// Messages published that the broker did not deliver: published − (received − duplicate).
    pub lost: u64,
    /// Records committed to the table.
    pub saved: u64,
    /// Messages committed to the table of dead letters.
    pub dead_lettered: u64,
    /// Messages that had been saved before.
    pub duplicate: u64,
    /// Rows in the table at the end: `SELECT count(*)`.
    pub counted: u64,
    /// Rows in the table of dead letters at the end.
    pub counted_dead: u64,
}

/// Where messages are counted, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Stage")]
pub enum IngestStage {
    /// From the publisher to the broker.
    Publish,
    /// In the broker.
    Broker,
    /// From the broker's delivery to the decision what becomes of it.
    Ingest,
    /// From the broker to the table, by another program.
    Consumer,
    /// In the table.
    Table,
}

/// A sum that does not come out even.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imbalance {
    /// The part of the way from publisher to table that it is about.
    pub stage: IngestStage,
    /// One line for people: how many, and between which counts.
    pub text: String,
}

impl MessageBalance {
    /// With `lost` out of the others.
    pub fn settled(self) -> Self {
        Self { lost: self.published.saturating_sub(self.received.saturating_sub(self.duplicate)), ..self }
    }

    /// What was not sent, or not acknowledged. `broker` is how it is called.
    pub fn unpublished(&self, acknowledges: bool, broker: &str) -> Vec<Imbalance> {
        let mut found = Vec::new();
        let mut say = |text| found.push(Imbalance { stage: IngestStage::Publish, text });
        let Self { planned, published, acknowledged, .. } = *self;
        if published < planned {
            say(format!("{} of {planned} messages were not sent", planned - published));
        }
        if acknowledges && acknowledged < published {
            let missing = published - acknowledged;
            say(format!("{broker} did not acknowledge {missing} of {published} messages"));
        }
        found
    }

    /// Every sum behind that does not come out even, in the order of the stages.
    pub fn unsettled(&self, broker: &str, store: &str) -> Vec<Imbalance> {
        let mut found = Vec::new();
        let mut say = |stage, text| found.push(Imbalance { stage, text });
        let Self { published, received, lost, saved, dead_lettered, duplicate, .. } = *self;
        if lost > 0 {
            say(IngestStage::Broker, format!("{broker} did not deliver {lost} of {published} messages"));
        }
        let different = received.saturating_sub(duplicate);
        if different > published {
            let more = different - published;
            say(
                IngestStage::Broker,
                format!(
                    "{broker} delivered {more} more messages than were published; is another publisher there?"
                ),
            );
        }
        let settled = saved + dead_lettered + duplicate;
        if settled != received {
            say(
                IngestStage::Ingest,
                format!("{received} messages were received, and {settled} saved, dead-lettered or duplicate"),
            );
        }
        for (what, said, found) in
            [("rows", saved, self.counted), ("dead letters", dead_lettered, self.counted_dead)]
        {
            if said != found {
                say(IngestStage::Table, format!("{store} holds {found} {what}, and {said} were saved"));
            }
        }
        found
    }
}

impl IngestStage {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Broker => "broker",
            Self::Ingest => "ingest",
            Self::Consumer => "consumer",
            Self::Table => "table",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: MessageBalance = MessageBalance {
        planned: 100,
        published: 100,
        acknowledged: 100,
        received: 103,
        lost: 0,
        saved: 98,
        dead_lettered: 2,
        duplicate: 3,
        counted: 98,
        counted_dead: 2,
    };

    fn stages(account: MessageBalance) -> Vec<IngestStage> {
        let account = account.settled();
        let mut found = account.unpublished(true, "mqtt://b");
        found.extend(account.unsettled("mqtt://b", "sqlite:f"));
        found.into_iter().map(|imbalance| imbalance.stage).collect()
    }

    #[test]
    fn what_comes_out_even_has_no_imbalance() {
        assert_eq!(stages(WHOLE), []);
        assert!(MessageBalance { acknowledged: 0, ..WHOLE }.unpublished(false, "").is_empty());
    }

    #[test]
    fn each_imbalance_is_named_with_the_stage_where_it_happened() {
        assert_eq!(stages(MessageBalance { planned: 101, ..WHOLE }), [IngestStage::Publish]);
        assert_eq!(stages(MessageBalance { acknowledged: 99, ..WHOLE }), [IngestStage::Publish]);
        let lossy = MessageBalance { received: 93, saved: 88, counted: 88, ..WHOLE };
        assert_eq!((stages(lossy), lossy.settled().lost), (vec![IngestStage::Broker], 10));
        let text = &lossy.settled().unsettled("mqtt://b", "sqlite:f")[0].text;
        assert_eq!(text, "mqtt://b did not deliver 10 of 100 messages");
        assert_eq!(
            stages(MessageBalance { duplicate: 2, saved: 99, counted: 99, ..WHOLE }),
            [IngestStage::Broker]
        );
        assert_eq!(stages(MessageBalance { saved: 97, counted: 97, ..WHOLE }), [IngestStage::Ingest]);
        assert_eq!(stages(MessageBalance { counted: 97, ..WHOLE }), [IngestStage::Table]);
        assert_eq!(stages(MessageBalance { counted_dead: 0, ..WHOLE }), [IngestStage::Table]);
    }
}
