//! Topics that are sent by number (MQTT 5 section 3.3.2.3.4).

use crate::error::Violation;
use crate::packet::Publish;

/// The topics that the peer of one connection has given a number to; they do not outlive it (MQTT-3.3.2-7).
#[derive(Clone, Debug, Default)]
pub struct Aliases(Vec<String>);

impl Aliases {
    /// The topic of a message; remembers it if the message gives it a number, which is at most `maximum`.
    ///
    /// # Errors
    /// A number above that, or one that stands for nothing yet.
    #[inline]
    pub fn resolve<'a>(&'a mut self, publish: &Publish<'a>, maximum: u16) -> Result<&'a str, Violation> {
        let Some(alias) = publish.properties.topic_alias() else { return Ok(publish.topic) };
        if alias.get() > maximum {
            return Err(Violation::TopicAliasTooHigh);
        }
        let position = usize::from(alias.get()) - 1;
        if publish.topic.is_empty() {
            let topic = self.0.get(position).filter(|topic| !topic.is_empty());
            return topic.map(String::as_str).ok_or(Violation::TopicAliasUnknown);
        }
        if self.0.len() <= position {
            self.0.resize(position + 1, String::new());
        }
        publish.topic.clone_into(&mut self.0[position]);
        Ok(publish.topic)
    }

    pub(crate) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<String>() + self.0.iter().map(String::capacity).sum::<usize>()
    }
}
